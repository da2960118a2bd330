// Controls of a car in words, and as bars and lamps.
import { h, property, say } from "../dom";

/** In the order of every list of controls: five sticks from -1 to 1, three buttons. */
const STICKS = ["throttle", "steer", "pitch", "yaw", "roll"];
const BUTTONS = ["jump", "boost", "handbrake"];
const STICK_MEANS = ["back … ahead", "left … right", "nose down … up", "left … right", "left … right"];
const OFF = 0.05;

/** Controls in a few words: "full throttle, left, boost". */
export function inWords(controls: readonly number[]): string {
  const [throttle, steer, pitch, yaw, roll, jump, boost, handbrake] = controls;
  const amount = (value: number, word: string) => (Math.abs(value) < OFF ? null : Math.abs(value) > 0.95 ? word : `${word} ${Math.round(Math.abs(value) * 100)} %`);
  const turn = Math.abs(steer) >= Math.abs(yaw) ? steer : yaw;
  const parts = [
    throttle > OFF ? amount(throttle, throttle > 0.95 ? "full throttle" : "throttle") : amount(throttle, "reverse"), amount(turn, turn < 0 ? "left" : "right"),
    amount(pitch, pitch < 0 ? "nose down" : "nose up"), amount(roll, roll < 0 ? "roll left" : "roll right"),
    jump > 0.5 ? "jump" : null, boost > 0.5 ? "boost" : null, handbrake > 0.5 ? "handbrake" : null,
  ].filter((part) => part !== null);
  return parts.join(", ") || "nothing";
}

/** A bar that begins in the middle: left of it is below zero. */
export class SignedBar {
  readonly element = h("span", { class: "signed", "aria-hidden": "true" }, h("i"));
  private drawn = NaN;

  /** `share`: from -1 to 1. */
  show(share: number): void {
    const value = Math.round(Math.min(1, Math.max(-1, Number.isFinite(share) ? share : 0)) * 200) / 200;
    if (value === this.drawn) return;
    this.drawn = value;
    property(this.element, "--size", Math.abs(value));
    this.element.classList.toggle("below", value < 0);
  }
}

/** The controls of a car as they are. */
export class Controls {
  readonly element: HTMLElement;
  private readonly bars = STICKS.map(() => new SignedBar());
  private readonly numbers = STICKS.map(() => h("output", { class: "number" }));
  private readonly lamps = BUTTONS.map((name) => h("span", { class: "lamp" }, name));

  constructor() {
    this.element = h("div", { class: "head-controls" },
      ...STICKS.map((name, i) => h("div", { class: "head-bar", title: STICK_MEANS[i] }, h("span", null, name), this.bars[i].element, this.numbers[i])),
      h("div", { class: "lamps" }, ...this.lamps));
  }

  show(controls: readonly number[]): void {
    STICKS.forEach((_, i) => {
      this.bars[i].show(controls[i] ?? 0);
      const value = Math.round((controls[i] ?? 0) * 100) / 100;
      say(this.numbers[i], value === 0 ? "0" : value.toFixed(2));
    });
    this.lamps.forEach((lamp, i) => {
      const on = (controls[STICKS.length + i] ?? 0) > 0.5;
      if (lamp.classList.contains("on") === on) return;
      lamp.classList.toggle("on", on);
      lamp.setAttribute("aria-label", `${BUTTONS[i]} ${on ? "on" : "off"}`);
    });
  }
}
