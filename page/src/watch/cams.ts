// Buttons of the cameras, and cameras as words of the address: 2 (behind car 2), 2p (without ball-cam), 9, 0, f_x_y_z_yaw_pitch.
import { h, replace } from "../dom";
import { shortName } from "../names";
import type { Header } from "../recording";
import type { Cameras, Flight, Mode } from "../scene/cameras";
import { iconButton } from "./icons";

/** The camera as a word of the address. */
export function cameraWord(cameras: Cameras): string {
  if (cameras.mode === "car") return `${cameras.car + 1}${cameras.ballCam ? "" : "p"}`;
  if (cameras.mode === "free") return ["f", ...cameras.flight.map((value) => String(Math.round(value * 100) / 100))].join("_");
  return cameras.mode === "top" ? "0" : "9";
}

/** Chooses the camera that a word of the address means; words that mean none change nothing. */
export function readCamera(cameras: Cameras, word: string): void {
  const behind = /^([1-8])(p?)$/.exec(word);
  if (behind) {
    cameras.ballCam = !behind[2];
    cameras.choose("car", Number(behind[1]) - 1);
  } else if (word === "9" || word === "0") {
    cameras.choose(word === "0" ? "top" : "director");
  } else if (word.startsWith("f")) {
    const flight = word.split("_").slice(1).map(Number);
    if (flight.length === 5 && flight.every(Number.isFinite)) cameras.fly(flight as Flight);
    else cameras.choose("free");
  }
}

export interface CameraHooks {
  /** The camera is another one, or looks from elsewhere. */
  moved(): void;
  /** How many cars there are. */
  cars(): number;
  /** Metres of the whole scene. */
  far(): number;
}

/** The row of buttons, and all that moves the camera by hand. */
export class CameraBar {
  readonly element: HTMLElement;
  private readonly modes: Map<Mode, HTMLButtonElement>;
  private readonly which: HTMLSelectElement;
  private readonly ball: HTMLButtonElement;

  constructor(private readonly cameras: Cameras, private readonly hooks: CameraHooks) {
    this.modes = new Map([
      ["director", iconButton("director", "Director", () => this.choose("director"), { key: "9", pressed: false, id: "cam-director" })],
      ["top", iconButton("top", "From above", () => this.choose("top"), { key: "0", pressed: false, id: "cam-top" })],
      ["free", iconButton("free", "Free camera", () => this.choose("free"), { key: "F", pressed: false, id: "cam-free" })],
      ["car", iconButton("car", "Behind a car", () => this.choose("car"), { key: "1 to 8", pressed: false, id: "cam-car" })],
    ]);
    this.which = h("select", { class: "input which", "aria-label": "Which car", title: "Which car", id: "cam-which", onchange: () => this.choose("car", Number(this.which.value)) });
    this.ball = iconButton("ball", "Ball-cam", () => this.ballCam(), { key: "B", pressed: true, id: "cam-ball" });
    this.element = h("div", { class: "group cams", role: "group", "aria-label": "Camera" }, ...this.modes.values(), this.which, this.ball);
  }

  /** Another game is shown. */
  open(header: Header | null): void {
    const players = header?.players ?? [];
    if (this.cameras.car >= players.length) this.cameras.car = 0;
    replace(this.which, ...players.map((player, car) => h("option", { value: car }, `${car + 1} ${shortName(player.name)}`)));
    this.which.hidden = players.length < 2;
    this.ball.hidden = header?.kind === "walk";
    this.update();
  }

  /** The car that the camera follows; null: none. */
  get followed(): number | null {
    return this.cameras.mode === "car" ? this.cameras.car : null;
  }

  choose(mode: Mode, car = this.cameras.car): void {
    if (car >= this.hooks.cars()) return;
    this.cameras.choose(mode, car);
    this.moved();
  }

  /** Chooses the camera of the address. */
  read(word: string): void {
    if (word === cameraWord(this.cameras)) return;
    readCamera(this.cameras, word);
    this.moved();
  }

  ballCam(): void {
    this.cameras.ballCam = !this.cameras.ballCam;
    this.moved();
  }

  drag(dx: number, dy: number): void {
    this.cameras.drag(dx, dy);
    this.moved();
  }

  dolly(factor: number): void {
    this.cameras.dolly(factor, this.hooks.far());
    this.moved();
  }

  /** Holds a key of the free camera, or lets it go. Returns whether it means something now. */
  fly(key: string, held: boolean): boolean {
    if (held && this.cameras.mode !== "free") return false;
    if (held) this.cameras.held.add(key);
    else if (!this.cameras.held.delete(key)) return false;
    this.moved();
    return true;
  }

  private moved(): void {
    this.update();
    this.hooks.moved();
  }

  private update(): void {
    for (const [mode, button] of this.modes) button.setAttribute("aria-pressed", String(mode === this.cameras.mode));
    this.which.value = String(this.cameras.car);
    this.ball.setAttribute("aria-pressed", String(this.cameras.ballCam));
    this.ball.disabled = this.cameras.mode !== "car";
  }
}
