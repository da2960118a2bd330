// The lines on the floor: outline, halves, center circle, boxes of the goals. The end of a team has its colour.
import { Vector3 } from "three";
import { place } from "./coordinates";
import { BACK, GOAL_HALF_WIDTH, outline, RAMP } from "./field";
import type { Palette } from "./palette";
import { Builder, shade, type Point } from "./shapes";

const WIDTH = 22;
const HEIGHT = 1.5;

type Flat = [number, number];

function ribbon(builder: Builder, points: Flat[], colour: ReturnType<typeof shade>, width = WIDTH): void {
  for (let index = 0; index + 1 < points.length; index++) {
    const [a, b] = [points[index], points[index + 1]];
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1;
    const [dx, dy] = [((b[0] - a[0]) / length) * width * 0.5, ((b[1] - a[1]) / length) * width * 0.5];
    upward(builder, [[a[0] - dx - dy, a[1] - dy + dx], [b[0] + dx - dy, b[1] + dy + dx], [b[0] + dx + dy, b[1] + dy - dx], [a[0] - dx + dy, a[1] - dy - dx]], colour);
  }
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
