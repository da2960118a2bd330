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

/** The row of buttons; `choose` and `ballCam` are called when the user wants something else. */
export class CameraBar {
  readonly element: HTMLElement;
  private readonly modes: Map<Mode, HTMLButtonElement>;
  private readonly cars: HTMLSelectElement;
  private readonly ball: HTMLButtonElement;

  constructor(private readonly cameras: Cameras, choose: (mode: Mode, car?: number) => void, ballCam: () => void) {
    this.modes = new Map([
      ["director", iconButton("director", "Director", () => choose("director"), { key: "9", pressed: false, id: "cam-director" })],
      ["top", iconButton("top", "From above", () => choose("top"), { key: "0", pressed: false, id: "cam-top" })],
      ["free", iconButton("free", "Free camera", () => choose("free"), { key: "F", pressed: false, id: "cam-free" })],
      ["car", iconButton("car", "Behind a car", () => choose("car"), { key: "1 to 8", pressed: false, id: "cam-car" })],
    ]);
    this.cars = h("select", { class: "input which", "aria-label": "Which car", title: "Which car", id: "cam-which", onchange: () => choose("car", Number(this.cars.value)) });
    this.ball = iconButton("ball", "Ball-cam", ballCam, { key: "B", pressed: true, id: "cam-ball" });
    this.element = h("div", { class: "group cams", role: "group", "aria-label": "Camera" }, ...this.modes.values(), this.cars, this.ball);
  }

  open(header: Header | null): void {
    const players = header?.players ?? [];
    replace(this.cars, ...players.map((player, car) => h("option", { value: car }, `${car + 1} ${shortName(player.name)}`)));
    this.cars.hidden = players.length < 2;
    this.ball.hidden = header?.kind === "walk";
    this.update();
  }

  update(): void {
    for (const [mode, button] of this.modes) button.setAttribute("aria-pressed", String(mode === this.cameras.mode));
    this.cars.value = String(this.cameras.car);
    this.ball.setAttribute("aria-pressed", String(this.cameras.ballCam));
    this.ball.disabled = this.cameras.mode !== "car";
  }
}
