// Measures of the field in uu, from wavedash/rocket/constants.py (tests/page compares them), and its outline.

export const SIDE = 4096;
export const BACK = 5120;
export const CEILING = 2044;
export const CORNER = 8064;
export const GOAL_HALF_WIDTH = 892.755;
export const GOAL_HEIGHT = 642.775;
export const GOAL_DEPTH = 880;
export const BALL_RADIUS = 91.25;
export const RAMP = 256;

/** Pads of blue's half; the others are these rotated by half a turn, in reverse order. */
const OWN_PADS: [number, number, number][] = [
  [0, -4240, 0], [-1792, -4184, 0], [1792, -4184, 0], [-3072, -4096, 1], [3072, -4096, 1], [-940, -3308, 0],
  [940, -3308, 0], [0, -2816, 0], [-3584, -2484, 0], [3584, -2484, 0], [-1788, -2300, 0], [1788, -2300, 0],
  [-2048, -1036, 0], [0, -1024, 0], [2048, -1036, 0], [-3584, 0, 1], [-1024, 0, 0],
];
export interface Pad { x: number; y: number; z: number; big: boolean }
export const PADS: Pad[] = [
  ...OWN_PADS.map(([x, y, big]) => ({ x, y, z: big ? 73 : 70, big: !!big })),
  ...[...OWN_PADS].reverse().map(([x, y, big]) => ({ x: -x, y: -y, z: big ? 73 : 70, big: !!big })),
];

export interface Hitbox { size: [number, number, number]; offset: [number, number, number] }
export const HITBOXES: Record<string, Hitbox> = {
  octane: { size: [120.507, 86.6994, 38.6591], offset: [13.8757, 0, 20.755] },
  dominus: { size: [130.427, 85.7799, 33.8], offset: [9, 0, 15.75] },
  plank: { size: [131.32, 87.1704, 31.8944], offset: [9.00857, 0, 12.0942] },
  breakout: { size: [133.992, 83.021, 32.8], offset: [12.5, 0, 11.75] },
  hybrid: { size: [129.519, 84.6879, 36.6591], offset: [13.8757, 0, 20.755] },
  merc: { size: [123.22, 79.2103, 44.1591], offset: [11.3757, 0, 21.505] },
};

/**
 * Points around the field at a distance `inset` inwards of the walls, with as many for every inset so that rings can be joined.
 * Corners of the octagon are rounded a little; the posts of both goals are among the points.
 */
export function outline(inset: number): [number, number][] {
  const x = SIDE - inset;
  const y = BACK - inset;
  const c = CORNER - inset * Math.SQRT2;
  const corners: [number, number][] = [[c - y, y], [x, c - x], [x, x - c], [c - y, -y], [y - c, -y], [-x, x - c], [-x, c - x], [y - c, y]];
  const points: [number, number][] = [];
  const round = 0.22;
  corners.forEach((corner, index) => {
    const before = corners[(index + 7) % 8];
    const after = corners[(index + 1) % 8];
    const bend = (other: [number, number]): [number, number] => {
      const length = Math.hypot(other[0] - corner[0], other[1] - corner[1]);
      const part = Math.min(round * 1629, length * 0.3) / length;
      return [corner[0] + (other[0] - corner[0]) * part, corner[1] + (other[1] - corner[1]) * part];
    };
    const [from, to] = [bend(before), bend(after)];
    for (const t of [0, 0.25, 0.5, 0.75, 1]) {
      const [a, b, d] = [(1 - t) ** 2, 2 * t * (1 - t), t * t];
      points.push([a * from[0] + b * corner[0] + d * to[0], a * from[1] + b * corner[1] + d * to[1]]);
    }
    const next = corners[(index + 1) % 8];
    if (Math.abs(corner[1] - next[1]) < 1) {  // A back wall: its posts.
      const sign = Math.sign(next[0] - corner[0]);
      points.push([-sign * GOAL_HALF_WIDTH, corner[1]], [0, corner[1]], [sign * GOAL_HALF_WIDTH, corner[1]]);
    } else if (Math.abs(corner[0] - next[0]) < 1) {  // A side wall.
      for (const part of [0.25, 0.5, 0.75]) points.push([corner[0], corner[1] + (next[1] - corner[1]) * part]);
    }
  });
  return points;
}

/** Whether the stretch from one point of the outline to the next is between the posts of a goal. */
export function isMouth(a: [number, number], b: [number, number]): boolean {
  return Math.abs(a[0]) <= GOAL_HALF_WIDTH + 1 && Math.abs(b[0]) <= GOAL_HALF_WIDTH + 1;
}

/** The height of the floor at a place, which rises in the ramps below the walls. */
export function floorHeight(x: number, y: number): number {
  const mouth = Math.abs(x) < GOAL_HALF_WIDTH ? Infinity : BACK - Math.abs(y);
  const wall = Math.max(Math.min(SIDE - Math.abs(x), mouth, (CORNER - Math.abs(x) - Math.abs(y)) / Math.SQRT2), 0);
  return wall >= RAMP ? 0 : RAMP - Math.sqrt(RAMP * RAMP - (RAMP - wall) ** 2);
}
