// Driving a car of the live game with the keyboard or a gamepad. Controls are sent when they change, and often enough to count.
import { h } from "../dom";
import { readGamepad, type Controls } from "./gamepad";

/** Controls are looked at this often, which is also the shortest time between two messages. */
const EVERY_MS = 17;
/** The stage forgets controls after half a second. */
const KEEP_ALIVE_MS = 200;
/** Keys, by the place that they have on a keyboard, so that they are where WASD is on every layout. */
const KEYS = new Set(["KeyW", "KeyA", "KeyS", "KeyD", "KeyQ", "KeyE", "KeyX", "Space", "ShiftLeft", "ShiftRight", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]);

/** What keys that are held mean. W also tips the nose down and S up, as in the game; arrows do only that, and steer. */
export function readKeys(held: ReadonlySet<string>): Controls {
  const axis = (plus: string[], minus: string[]): number => Number(plus.some((key) => held.has(key))) - Number(minus.some((key) => held.has(key)));
  const turn = axis(["KeyD", "ArrowRight"], ["KeyA", "ArrowLeft"]);
  const pitch = axis(["KeyS", "ArrowDown"], ["KeyW", "ArrowUp"]);
  return [
    axis(["KeyW"], ["KeyS"]), turn, pitch, turn, axis(["KeyE"], ["KeyQ"]), Number(held.has("Space")),
    Number(held.has("ShiftLeft") || held.has("ShiftRight")), Number(held.has("KeyX")),
  ];
}

export interface DrivingActions {
  send(command: Record<string, unknown>): boolean;
  /** The ball-cam button of a gamepad was pressed. */
  ballCam(): void;
  left(): void;
}

export class Driving {
  /** The car that is driven; null: none. */
  car: number | null = null;
  /** What was sent last. */
  controls: Controls = [0, 0, 0, 0, 0, 0, 0, 0];
  readonly banner: HTMLElement;
  private readonly held = new Set<string>();
  private timer = 0;
  private sent = 0;
  private ballPressed = false;

  constructor(private readonly actions: DrivingActions) {
    this.banner = h("div", { class: "banner glass", hidden: true, role: "status" },
      h("span", null, "You drive. ", h("kbd", null, "W A S D"), " drive, ", h("kbd", null, "Space"), " jump, ", h("kbd", null, "Shift"), " boost, ", h("kbd", null, "Q E"), " roll, ", h("kbd", null, "X"), " slide, or a gamepad"),
      h("button", { class: "button", type: "button", id: "leave", onclick: () => this.stop() }, "Leave (Esc)"));
    window.addEventListener("blur", () => this.held.clear());
    for (const kind of ["keydown", "keyup"] as const) window.addEventListener(kind, (event) => this.key(event), true);
  }

  start(car: number): boolean {
    if (!this.actions.send({ do: "drive", car })) return false;
    this.car = car;
    this.held.clear();
    this.sent = 0;
    this.banner.hidden = false;
    clearInterval(this.timer);
    this.timer = window.setInterval(() => this.look(), EVERY_MS);
    (document.activeElement as HTMLElement | null)?.blur();
    return true;
  }

  /** Gives the seat back; `tell`: unless the stage knows. */
  stop(tell = true): void {
    if (this.car === null) return;
    clearInterval(this.timer);
    this.car = null;
    this.banner.hidden = true;
    if (tell) this.actions.send({ do: "leave" });
    this.actions.left();
  }

  /** Keys of the car go to nobody else: Space would press a button, arrows would move the time. */
  private key(event: KeyboardEvent): void {
    if (this.car === null || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.code === "Escape" && event.type === "keydown") this.stop();
    else if (!KEYS.has(event.code)) return;
    else if (event.type === "keydown") this.held.add(event.code);
    else this.held.delete(event.code);
    event.preventDefault();
    event.stopPropagation();
  }

  private look(): void {
    const controls = readKeys(this.held);
    const pad = document.hidden ? null : readGamepad();
    if (pad) {
      pad.controls.forEach((value, index) => (controls[index] = Math.abs(value) > Math.abs(controls[index]) ? value : controls[index]));
      if (pad.ballCam && !this.ballPressed) this.actions.ballCam();
      this.ballPressed = pad.ballCam;
    }
    const now = performance.now();
    const same = controls.every((value, index) => Math.abs(value - this.controls[index]) < 0.01);
    if (same && now - this.sent < KEEP_ALIVE_MS) return;
    this.controls = controls;
    this.sent = now;
    this.actions.send({ do: "controls", controls: controls.map((value) => Math.round(value * 1000) / 1000) });
  }
}
