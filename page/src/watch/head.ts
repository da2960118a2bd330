// Inside a bot's head. (Stub: to be replaced.)
import { h } from "../dom";
import type { Context } from "../context";
import type { Moment, Recording } from "../recording";

export interface Decision {
  action: number;
  top: [number, number][];
  value: number | null;
  rewards: Record<string, number>;
  observation?: [string, number][];
  memory?: Record<string, number[]> | null;
}

/** The panel beside the picture. The view calls its methods; it calls `ask` when it wants another car (null: none). */
export class HeadPanel {
  readonly element: HTMLElement = h("section", { class: "head-panel", "aria-label": "Inside the bot's head" });

  constructor(_context: Context, readonly ask: (car: number | null, observation: boolean) => void) {}

  /** Another game or recording is shown; null: none. */
  opened(_recording: Recording | null, _live: boolean): void {}

  /** The car that the camera follows; null: none. */
  follow(_car: number | null): void {}

  /** The moment that is shown now: fields cars.value, cars.top_action and so on. Called for every picture, so it must be cheap. */
  show(_moment: Moment): void {}

  /** What the stage says of the car asked for (live only). */
  decision(_car: number, _decision: Decision): void {}
}
