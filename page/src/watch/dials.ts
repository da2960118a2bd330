// Dials of a body that is placed by hand: every one is a number of the draft with its range.
import { BACK, CEILING, SIDE } from "../scene/field";
import { BALL, type Draft } from "./draft";

export interface Dial { name: string; low: number; high: number; step: number; unit: string; get(): number; set(value: number): void }

const DEGREES = 180 / Math.PI;

/** The dials of the ball or a car. */
export function dialsOf(draft: Draft, body: number): Dial[] {
  const axis = (name: string, index: number, low: number, high: number): Dial => ({
    name, low, high, step: 10, unit: "uu", get: () => draft.position(body)[index],
    set: (value) => draft.move(body, draft.position(body).map((old, at) => (at === index ? value : old))),
  });
  const speed = (): number => Math.hypot(draft.velocity(body)[0], draft.velocity(body)[1]);
  const way = (): number => (body === BALL ? ballWay(draft) : draft.yaw(body));
  const push = (size: number, angle: number): void => draft.push(body, [size * Math.cos(angle), size * Math.sin(angle), draft.velocity(body)[2]]);
  const dials: Dial[] = [
    axis("x", 0, -SIDE, SIDE), axis("y", 1, -BACK, BACK), axis("Height", 2, 0, CEILING),
    {
      name: "Direction", low: -180, high: 180, step: 1, unit: "°", get: () => way() * DEGREES,
      set: (value) => (body === BALL ? push(speed(), value / DEGREES) : draft.turn(body, value / DEGREES)),
    },
    { name: "Speed", low: 0, high: body === BALL ? 6000 : 2300, step: 10, unit: "uu/s", get: speed, set: (value) => push(value, way()) },
  ];
  if (body === BALL) {
    const upward = (value: number): void => draft.push(BALL, [draft.velocity(BALL)[0], draft.velocity(BALL)[1], value]);
    dials.push({ name: "Upwards", low: -2500, high: 2500, step: 10, unit: "uu/s", get: () => draft.velocity(BALL)[2], set: upward });
  } else {
    dials.push({ name: "Boost", low: 0, high: 100, step: 1, unit: "", get: () => draft.boost(body), set: (value) => draft.setBoost(body, value) });
  }
  return dials;
}

/** Where the ball flies; one that does not is about to fly to the goal of orange. */
function ballWay(draft: Draft): number {
  const [x, y] = draft.velocity(BALL);
  return Math.hypot(x, y) > 1 ? Math.atan2(y, x) : Math.PI / 2;
}
