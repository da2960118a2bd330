// The scene of a walk as its header describes it: the ground and the shapes of the robot. Nothing in a file is believed.
import type { Header } from "../recording";

export interface Shape {
  kind: "sphere" | "capsule" | "cylinder" | "box";
  /** MuJoCo's: radius; radius and half length; half lengths of the edges. */
  size: [number, number, number];
  colour: [number, number, number];
}

/** Heights in metres at the corners of square cells; rows go along y and columns along x, both ascending. */
export interface Heights {
  rows: number;
  columns: number;
  resolution: number;
  /** x and y of the first corner. */
  origin: [number, number];
  values: Float32Array;
  flat: boolean;
}

export interface WalkHeader {
  terrain: string;
  level: number | null;
  layout: string;
  /** Metres of the largest depth. */
  far: number;
  heights: Heights;
  shapes: Shape[];
  /** What is wrong with the header, in words; empty: nothing. */
  damage: string;
}

const MOST_CORNERS = 4_000_000;
const KINDS = ["sphere", "capsule", "cylinder", "box"];
const FLAT: Heights = { rows: 2, columns: 2, resolution: 20, origin: [-10, -10], values: new Float32Array(4), flat: true };

/** Reads the header. What cannot be used is replaced by flat ground or left out, and `damage` says so. */
export function readWalk(header: Header): WalkHeader {
  const scene = header.scene;
  const heights = readHeights(scene);
  const given = Array.isArray(scene.geoms) ? (scene.geoms as unknown[]) : [];
  const shapes = given.map(readShape);
  const damage = [heights ? "" : "the ground of this recording is damaged: it is drawn flat", shapes.includes(null) ? "some parts of the robot are not known here" : ""];
  return {
    terrain: typeof scene.terrain === "string" ? scene.terrain.replaceAll("_", " ") : "",
    level: number(scene.level),
    layout: typeof scene.layout === "string" ? scene.layout : "",
    far: number(scene.far) ?? 2,
    heights: heights ?? FLAT,
    shapes: shapes.map((shape) => shape ?? { kind: "sphere", size: [0.001, 0, 0], colour: [0.5, 0.5, 0.5] }),
    damage: damage.filter(Boolean).join("; "),
  };
}

function readHeights(scene: Record<string, unknown>): Heights | null {
  const [rows, columns, resolution] = [scene.rows, scene.columns, scene.resolution].map(number);
  const origin = Array.isArray(scene.origin) ? scene.origin.map(number) : [];
  if (!rows || !columns || !resolution || rows < 2 || columns < 2 || rows * columns > MOST_CORNERS || typeof scene.heights !== "string") return null;
  if (typeof origin[0] !== "number" || typeof origin[1] !== "number") return null;
  let text: string;
  try {
    text = atob(scene.heights);
  } catch {
    return null;
  }
  if (text.length !== rows * columns * 2) return null;
  const bytes = new DataView(Uint8Array.from(text, (letter) => letter.charCodeAt(0)).buffer);
  const values = Float32Array.from({ length: rows * columns }, (_, index) => bytes.getInt16(2 * index, true) / 1000);
  return { rows, columns, resolution, origin: [origin[0], origin[1]], values, flat: values.every((value) => value === 0) };
}

function readShape(given: unknown): Shape | null {
  const one = (given ?? {}) as Record<string, unknown>;
  const size = Array.isArray(one.size) ? one.size.map(number) : [];
  const colour = Array.isArray(one.colour) ? one.colour.map(number) : [];
  if (!KINDS.includes(String(one.kind)) || !size.length || size.some((value) => value === null || value < 0 || value > 10)) return null;
  return {
    kind: one.kind as Shape["kind"],
    size: [size[0] ?? 0, size[1] ?? 0, size[2] ?? 0],
    colour: [colour[0] ?? 0.5, colour[1] ?? 0.5, colour[2] ?? 0.5],
  };
}

function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** The height of the ground below a point, on MuJoCo's triangles: each cell is cut from its first corner to the opposite one. */
export function heightAt(ground: Heights, x: number, y: number): number {
  const { rows, columns, resolution, origin, values } = ground;
  const u = Math.min(Math.max((x - origin[0]) / resolution, 0), columns - 1);
  const v = Math.min(Math.max((y - origin[1]) / resolution, 0), rows - 1);
  const column = Math.min(Math.floor(u), columns - 2);
  const row = Math.min(Math.floor(v), rows - 2);
  const [a, b] = [u - column, v - row];
  const first = row * columns + column;
  const near = values[first];
  const middle = values[first + (a >= b ? 1 : columns)];
  const far = values[first + columns + 1];
  return near + (middle - near) * Math.max(a, b) + (far - middle) * Math.min(a, b);
}
