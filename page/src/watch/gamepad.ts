// A gamepad as controls of a car, by the standard mapping: sticks, triggers, A jumps, B boosts, X slides and rolls.

const DEAD = 0.12;

/** Controls of a car: throttle, steer, pitch, yaw, roll, jump, boost, handbrake. */
export type Controls = [number, number, number, number, number, number, number, number];

/** A stick without the play of its middle; outside of that it goes on from 0. */
export function withoutPlay(value: number): number {
  const size = Math.abs(value);
  return size < DEAD ? 0 : Math.sign(value) * Math.min((size - DEAD) / (1 - DEAD), 1);
}

/** What the first gamepad says that has a standard mapping; null: there is none, or nothing is pressed. */
export function readGamepad(): { controls: Controls; ballCam: boolean } | null {
  const pads = typeof navigator.getGamepads === "function" ? navigator.getGamepads() : [];
  for (const pad of pads) {
    if (!pad?.connected || (pad.mapping !== "standard" && pad.axes.length < 2)) continue;
    const button = (index: number): number => pad.buttons[index]?.value ?? 0;
    const [x, y] = [withoutPlay(pad.axes[0] ?? 0), withoutPlay(pad.axes[1] ?? 0)];
    const slides = button(2) > 0.5;
    const roll = button(5) - button(4);
    const controls: Controls = [
      withoutPlay(button(7)) - withoutPlay(button(6)), x, y, slides ? 0 : x, slides ? x : roll, Number(button(0) > 0.5), Number(button(1) > 0.5), Number(slides),
    ];
    return { controls, ballCam: button(3) > 0.5 };
  }
  return null;
}
