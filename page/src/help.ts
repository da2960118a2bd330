// The list of keys, shown by `?`.
import { h } from "./dom";

const KEYS: [string, [string, string][]][] = [
  ["Time", [
    ["Space", "pause or continue"], [",  .", "one frame back or on"], ["← →", "5 seconds back or on"], ["[  ]", "the event before or after"],
    ["Home  End", "to the beginning, to the end or live"], ["-  +", "slower or faster"], ["L", "loop"],
  ]],
  ["Camera", [
    ["1 … 8", "behind that car"], ["B", "ball-cam on or off"], ["9", "director"], ["0", "from above"], ["F", "free camera"],
    ["W A S D, Q E", "fly (free camera); Shift: faster"],
  ]],
  ["Game", [
    ["P", "choose players"], ["O", "recordings"], ["G", "place ball and cars"], ["V", "drive this car"], ["H", "inside the bot's head"], ["?", "this help"],
  ]],
  ["Driving", [
    ["W  S", "throttle, brake; nose down, up"], ["A  D", "steer, yaw"], ["Space", "jump"], ["Shift", "boost"], ["Q  E", "roll"], ["X", "powerslide"],
    ["Arrows", "pitch and steer"], ["Esc", "leave the car"],
  ]],
  ["Placing", [
    ["Arrows", "move; Shift: little"], ["PgUp  PgDn", "higher, lower"], ["R  T", "turn a car"], ["Shift + wheel", "height"], ["Esc", "cancel"],
  ]],
  ["Tabs, charts and tables", [
    ["← →", "next tab; along a chart"], ["Shift ← →", "larger steps"], ["drag, Esc", "zoom in, out"], ["← ↑ ↓ →", "cells of who beat whom"],
  ]],
];
const GAMEPAD = "A gamepad drives too: left stick steers, triggers give throttle and brake, A jumps, B boosts, X slides and rolls, shoulder buttons roll, Y switches the ball-cam.";
const POINTER = "Drag turns the camera, the wheel or two fingers move it. Recordings (.wdr) can be dropped anywhere; they stay in this browser.";
let dialog: HTMLDialogElement | null = null;

/** Opens the help, or closes it. */
export function showHelp(): void {
  if (dialog?.open) {
    dialog.close();
    return;
  }
  if (!dialog) {
    const key = ([name, text]: [string, string]): HTMLElement => h("div", null, h("span", null, text), h("kbd", null, name));
    dialog = h("dialog", { "aria-label": "Keyboard help", class: "help" },
      h("h2", null, "Keys"),
      h("div", { class: "keys" }, ...KEYS.map(([title, keys]) => h("section", null, h("h3", null, title), ...keys.map(key)))),
      h("p", { class: "quiet" }, POINTER, " ", GAMEPAD),
      h("button", { class: "button primary", type: "button", onclick: () => dialog?.close() }, "Close"));
    document.body.append(dialog);
  }
  dialog.showModal();
}
