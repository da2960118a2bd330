// The robot: every geom of the model where the recording has it. Drawn in MuJoCo's coordinates.
import { BoxGeometry, BufferGeometry, CapsuleGeometry, Color, CylinderGeometry, Group, Mesh, MeshLambertMaterial, SphereGeometry, SRGBColorSpace, Vector3, Vector4 } from "three";
import type { Moment } from "../recording";
import type { Shape } from "./walk-header";

/** Metres that a geom moves between two frames at most, else it has jumped. */
const REACH = 0.4;
const ROUND = 0.3;

/** A box with soft edges: corners are pulled onto spheres around the corners of a smaller box. */
function softBox(x: number, y: number, z: number): BufferGeometry {
  const geometry = new BoxGeometry(2 * x, 2 * y, 2 * z, 8, 8, 8);
  const radius = ROUND * Math.min(x, y, z);
  const [half, corner, inner] = [new Vector3(x, y, z), new Vector3(), new Vector3()];
  const positions = geometry.getAttribute("position");
  const normals = geometry.getAttribute("normal");
  const least = new Vector3(x - radius, y - radius, z - radius);
  for (let index = 0; index < positions.count; index++) {
    corner.fromBufferAttribute(positions, index);
    for (const axis of ["x", "y", "z"] as const) {
      const share = corner[axis] / half[axis];
      const turned = Math.abs(share) > 0.7 ? Math.sign(share) * (least[axis] + radius * Math.sin(((Math.abs(share) - 0.7) / 0.3) * (Math.PI / 2))) : (share / 0.7) * least[axis];
      corner[axis] = turned;
    }
    inner.copy(corner).clamp(least.clone().negate(), least);
    corner.sub(inner);
    if (corner.lengthSq() > 0) corner.setLength(radius);
    normals.setXYZ(index, ...(corner.lengthSq() > 0 ? corner.clone().normalize() : new Vector3().fromBufferAttribute(normals, index)).toArray());
    corner.add(inner);
    positions.setXYZ(index, corner.x, corner.y, corner.z);
  }
  return geometry;
}

/** MuJoCo's capsules and cylinders lie along z, three's along y. */
function geometryOf({ kind, size: [a, b, c] }: Shape): BufferGeometry {
  if (kind === "sphere") return new SphereGeometry(a, 20, 14);
  if (kind === "capsule") return new CapsuleGeometry(a, 2 * b, 6, 16).rotateX(Math.PI / 2);
  if (kind === "cylinder") return new CylinderGeometry(a, a, 2 * b, 24).rotateX(Math.PI / 2);
  return softBox(a, b, c);
}

export class Robot {
  readonly object = new Group();
  private readonly meshes: Mesh<BufferGeometry, MeshLambertMaterial>[];
  /** The numbers of the shapes that cast shadows, and as which spheres: the largest ones. */
  private readonly casting: { shape: number; radius: number }[];

  constructor(shapes: Shape[], casters: number) {
    this.meshes = shapes.map((shape) => {
      const colour = new Color().setRGB(...shape.colour, SRGBColorSpace);
      const mesh = new Mesh(geometryOf(shape), new MeshLambertMaterial({ color: colour }));
      mesh.castShadow = true;
      return mesh;
    });
    this.object.add(...this.meshes);
    const radius = ({ kind, size }: Shape): number => (kind === "box" ? Math.cbrt(size[0] * size[1] * size[2]) * 1.25 : kind === "sphere" ? size[0] * 1.5 : Math.sqrt(size[0] * (size[0] + size[1])));
    const sized = shapes.map((shape, index) => ({ shape: index, radius: Math.max(radius(shape), 0.001), feet: shape.kind === "sphere" }));
    // Feet first: they are small, but their shadows show whether they touch the ground.
    this.casting = sized.sort((one, other) => Number(other.feet) - Number(one.feet) || other.radius - one.radius).slice(0, casters);
  }

  show(moment: Moment, casters: Vector4[]): void {
    const count = Math.min(this.meshes.length, moment.recording.shape("geoms.position")?.[0] ?? 0);
    const [point, turn] = [[0, 0, 0], [1, 0, 0, 0]];
    for (let index = 0; index < count; index++) {
      const still = moment.jumped("geoms.position", null, index, REACH);
      moment.point("geoms.position", null, index, REACH, point);
      moment.turn("geoms.rotation", index, turn, still);
      const { position, quaternion } = this.meshes[index];
      position.set(point[0], point[1], point[2]);
      quaternion.set(turn[1], turn[2], turn[3], turn[0]);
    }
    this.casting.forEach(({ shape, radius }, index) => {
      const { x, y, z } = this.meshes[shape].position;
      casters[index].set(x, y, z, radius);
    });
  }

  dispose(): void {
    for (const mesh of this.meshes) {
      mesh.geometry.dispose();
      mesh.material.dispose();
    }
  }
}
