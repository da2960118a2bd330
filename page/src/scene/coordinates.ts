// From the game's coordinates (left-handed, z up, uu) to three's (right-handed, y up, metres).
// The map must be a reflection: a rotation would show everything mirrored. tests/page/test_handedness.py proves it on pixels.
import { Matrix4, Vector3 } from "three";

/** Rows give three's x, y and z in terms of the game's x, y and z. */
const AXES = [[1, 0, 0], [0, 0, 1], [0, 1, 0]];
export const METRES = 0.01;

/** A direction of the game as a direction of three. */
export function direction(x: number, y: number, z: number, out = new Vector3()): Vector3 {
  const [a, b, c] = AXES;
  return out.set(a[0] * x + a[1] * y + a[2] * z, b[0] * x + b[1] * y + b[2] * z, c[0] * x + c[1] * y + c[2] * z);
}

/** A position or velocity of the game in metres. */
export function place(x: number, y: number, z: number, out = new Vector3()): Vector3 {
  return direction(x, y, z, out).multiplyScalar(METRES);
}

/** A position of three in uu of the game: the map is its own inverse but for the unit. */
export function toGame(point: Vector3): [number, number, number] {
  const { x, y, z } = point;
  return AXES[0].map((_, column) => (AXES[0][column] * x + AXES[1][column] * y + AXES[2][column] * z) / METRES) as [number, number, number];
}

/** Columns forward, right and up of a rotation of the game given as a quaternion x, y, z, w. */
export function basis(q: number[], forward: Vector3, right: Vector3, up: Vector3): void {
  const [x, y, z, w] = q;
  direction(1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w), forward);
  direction(2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w), right);
  direction(2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y), up);
}

/** Models are drawn with x forward, y up and z to the right, which is right-handed, as the reflected axes of a car are. */
export function pose(matrix: Matrix4, position: Vector3, forward: Vector3, right: Vector3, up: Vector3): Matrix4 {
  return matrix.makeBasis(forward, up, right).setPosition(position);
}
