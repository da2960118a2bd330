// Shapes of cars, computed from their hitboxes: x is forward, y up, z right, in metres, from the car's origin.
import { BufferGeometry } from "three";
import { HITBOXES, type Hitbox } from "./field";
import { Builder, shade } from "./shapes";

const TEAM = shade(0xffffff);
const DARK = shade(0x1b202b);
const GLASS = shade(0x0d1420);
const LIGHT = shade(0xfff6d8);
const REAR = shade(0xff3b30);
const STRIPE = shade(0xe9eef8);
/** Height of the origin of a car on its wheels. */
export const REST = 0.17;

export interface Wheel { x: number; y: number; z: number; radius: number; steers: boolean }

export function hitbox(name: string): Hitbox {
  const known = name.toLowerCase();
  return Object.hasOwn(HITBOXES, known) ? HITBOXES[known] : HITBOXES.octane;
}

/** The four wheels; they stand on the ground when the car is at rest. */
export function wheels(name: string): Wheel[] {
  const { size, offset } = hitbox(name);
  const front = (offset[0] + size[0] * 0.31) / 100;
  const back = (offset[0] - size[0] * 0.36) / 100;
  const side = (size[1] * 0.43) / 100;
  return [[front, 0.135, true], [back, 0.155, false]].flatMap(([x, radius, steers]) =>
    [-1, 1].map((sign) => ({ x: x as number, y: (radius as number) - REST, z: sign * side, radius: radius as number, steers: steers as boolean })));
}

/** A section of the body: half widths at the bottom, the belt and the top, and their heights. */
function ring(low: number, belt: number, top: number, wide: number, narrow: number): [number, number][] {
  return [[low, -wide * 0.86], [belt, -wide], [top, -narrow], [top, narrow], [belt, wide], [low, wide * 0.86]];
}

/** Body, cabin, lights and spoiler; white parts take the team's colour. */
export function carBody(name: string): BufferGeometry {
  const { size, offset } = hitbox(name);
  const [length, width, height] = size.map((value) => value / 100);
  const x = (part: number): number => offset[0] / 100 + (part - 0.5) * length;
  const low = 0.075 - REST;
  const top = offset[2] / 100 + height / 2;
  const y = (part: number): number => low + part * (top - low);
  const wide = width / 2;
  const builder = new Builder();
  builder.loft([
    { x: x(0), ring: ring(y(0.2), y(0.42), y(0.58), wide * 0.78, wide * 0.66) },
    { x: x(0.07), ring: ring(y(0.1), y(0.42), y(0.66), wide * 0.95, wide * 0.78) },
    { x: x(0.4), ring: ring(y(0.06), y(0.4), y(0.62), wide * 0.9, wide * 0.74) },
    { x: x(0.68), ring: ring(y(0.06), y(0.36), y(0.55), wide * 0.93, wide * 0.7) },
    { x: x(0.92), ring: ring(y(0.08), y(0.28), y(0.4), wide * 0.8, wide * 0.55) },
    { x: x(1), ring: ring(y(0.12), y(0.22), y(0.3), wide * 0.55, wide * 0.42) },
  ], (section, side) => (side === 5 ? DARK : section === 3 && side === 2 ? STRIPE : TEAM));
  builder.loft([
    { x: x(0.12), ring: ring(y(0.6), y(0.66), y(0.7), wide * 0.62, wide * 0.5) },
    { x: x(0.26), ring: ring(y(0.58), y(0.8), y(0.97), wide * 0.66, wide * 0.48) },
    { x: x(0.47), ring: ring(y(0.56), y(0.8), y(1), wide * 0.66, wide * 0.46) },
    { x: x(0.7), ring: ring(y(0.5), y(0.55), y(0.58), wide * 0.58, wide * 0.42) },
  ], (section, side) => (section === 1 && side === 2 ? TEAM : GLASS));
  for (const sign of [-1, 1]) {
    const near = (z: number): [number, number] => (sign > 0 ? [z * 0.62, z] : [-z, -z * 0.62]);
    const [a, b] = near(wide * 0.8);
    builder.box([x(0.9), y(0.3), a], [x(0.955), y(0.4), b], LIGHT);
    builder.box([x(0) - 0.01, y(0.44), a * 0.95], [x(0.03), y(0.56), b * 0.95], REAR);
    const [c, d] = sign > 0 ? [wide * 0.5, wide * 0.6] : [-wide * 0.6, -wide * 0.5];
    builder.box([x(0.02), y(0.6), c], [x(0.07), y(0.86), d], DARK);
    const [e, f] = sign > 0 ? [wide * 0.12, wide * 0.34] : [-wide * 0.34, -wide * 0.12];
    builder.box([x(-0.035), y(0.22), e], [x(0.03), y(0.42), f], DARK);
  }
  builder.box([x(0), y(0.86), -wide * 0.88], [x(0.1), y(0.94), wide * 0.88], TEAM);
  return builder.build();
}

/** A wheel of radius 1 about z, with spokes so that its spin is seen. */
export function wheelShape(): BufferGeometry {
  const builder = new Builder();
  const parts = 14;
  const [tyre, rim, hub] = [shade(0x12151c), shade(0xb9c2d4), shade(0x4a5468)];
  const at = (index: number, radius: number, z: number): [number, number, number] => {
    const angle = (index / parts) * 2 * Math.PI;
    return [radius * Math.cos(angle), radius * Math.sin(angle), z];
  };
  for (let index = 0; index < parts; index++) {
    builder.quad(at(index, 1, 0.42), at(index, 1, -0.42), at(index + 1, 1, -0.42), at(index + 1, 1, 0.42), tyre);
    for (const z of [0.42, -0.42]) {
      const [p, q] = z > 0 ? [index, index + 1] : [index + 1, index];
      builder.quad(at(p, 0.62, z), at(p, 1, z), at(q, 1, z), at(q, 0.62, z), tyre);
      builder.triangle([0, 0, z * 0.9], at(p, 0.62, z), at(q, 0.62, z), index % 3 ? rim : hub);
    }
  }
  return builder.build();
}
