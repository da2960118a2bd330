// The lines on the floor: outline, halves, center circle, boxes of the goals. The end of a team has its colour.
import { Vector3 } from "three";
import { place } from "./coordinates";
import { BACK, GOAL_HALF_WIDTH, outline, RAMP } from "./field";
import type { Palette } from "./palette";
import { Builder, shade, type Point } from "./shapes";

const WIDTH = 22;
const HEIGHT = 1.5;

type Flat = [number, number];

/** A stripe along points. Neighbours share the corners of a bend, so that nothing is drawn twice where it is translucent. */
function ribbon(builder: Builder, points: Flat[], colour: ReturnType<typeof shade>, width = WIDTH): void {
  const last = points.length - 1;
  const closed = Math.hypot(points[0][0] - points[last][0], points[0][1] - points[last][1]) < 1;
  const way = (from: number, to: number): Flat => {
    const [x, y] = [points[to][0] - points[from][0], points[to][1] - points[from][1]];
    const length = Math.hypot(x, y) || 1;
    return [x / length, y / length];
  };
  const edges = points.map((point, index): [Flat, Flat] => {
    const before = index ? way(index - 1, index) : closed ? way(last - 1, last) : way(0, 1);
    const after = index < last ? way(index, index + 1) : closed ? way(0, 1) : before;
    const [x, y] = [-(before[1] + after[1]), before[0] + after[0]];
    const reach = width / Math.max(x * x + y * y, 0.5);
    return [[point[0] + x * reach, point[1] + y * reach], [point[0] - x * reach, point[1] - y * reach]];
  });
  for (let index = 0; index < last; index++) upward(builder, [edges[index][0], edges[index + 1][0], edges[index + 1][1], edges[index][1]], colour);
}

function upward(builder: Builder, corners: Flat[], colour: ReturnType<typeof shade>): void {
  const points = corners.map(([x, y]) => place(x, y, HEIGHT));
  const normal = new Vector3().subVectors(points[1], points[0]).cross(new Vector3().subVectors(points[2], points[0]));
  const list = points.map((point): Point => [point.x, point.y, point.z]);
  if (normal.y < 0) list.reverse();
  builder.quad(list[0], list[1], list[2], list[3], colour);
}

function arc(x: number, y: number, radius: number, from: number, to: number, parts: number): Flat[] {
  return Array.from({ length: parts + 1 }, (_, index): Flat => {
    const angle = from + ((to - from) * index) / parts;
    return [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
  });
}

/** All lines as one geometry. */
export function linesOfField(look: Palette): Builder {
  const builder = new Builder();
  const white = shade(look.lines, 0.62);
  const ring = outline(RAMP + 60);
  ribbon(builder, [...ring, ring[0]].map(([x, y]): Flat => [x, y]), shade(look.lines, 0.3), 14);
  ribbon(builder, [[-3840, 0], [3840, 0]], white);
  ribbon(builder, arc(0, 0, 980, 0, 2 * Math.PI, 64), white);
  ribbon(builder, arc(0, 0, 130, 0, 2 * Math.PI, 24), white, 16);
  for (const team of [0, 1]) {
    const sign = team ? 1 : -1;
    const own = shade(look.teams[team], 0.95);
    const front = sign * BACK;
    ribbon(builder, [[-GOAL_HALF_WIDTH, front], [GOAL_HALF_WIDTH, front]], own, 46);
    const wide: Flat[] = [[-1900, sign * (BACK - RAMP)], [-1900, sign * 3500], [1900, sign * 3500], [1900, sign * (BACK - RAMP)]];
    ribbon(builder, wide, own);
    const narrow: Flat[] = [[-1120, sign * (BACK - RAMP)], [-1120, sign * 4380], [1120, sign * 4380], [1120, sign * (BACK - RAMP)]];
    ribbon(builder, narrow, shade(look.teams[team], 0.6), 16);
    const start = sign < 0 ? 0 : Math.PI;
    ribbon(builder, arc(0, sign * 3500, 620, start, start + Math.PI, 24), own);
  }
  return builder;
}
