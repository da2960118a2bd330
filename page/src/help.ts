// The list of keys, shown by `?`.
import { h } from "./dom";

const KEYS: [string, string][] = [
  ["Space", "pause or continue"],
  [",  .", "one frame back or on"],
  ["← →", "5 seconds back or on"],
  ["-  +", "slower or faster"],
  ["L", "loop"],
  ["[  ]", "the event before or after"],
  ["1 … 8", "behind that car"],
  ["B", "ball-cam on or off"],
  ["9", "director"],
  ["0", "from above"],
  ["F", "free camera"],
  ["W A S D, Q E", "fly (free camera)"],
  ["H", "inside the bot's head"],
  ["?", "this help"],
];

let dialog: HTMLDialogElement | null = null;

/** Opens the help, or closes it. */
export function showHelp(): void {
  if (dialog?.open) {
    dialog.close();
    return;
  }
  if (!dialog) {
    dialog = h("dialog", { "aria-label": "Keyboard help", class: "help" },
      h("h2", null, "Keys"),
      h("div", { class: "keys" }, ...KEYS.map(([key, text]) => h("div", null, h("span", null, text), h("kbd", null, key)))),
      h("p", { class: "quiet" }, "Drag turns the camera, the wheel or two fingers move it. Recordings (.wdr) can be dropped anywhere; they stay in this browser."),
      h("button", { class: "button primary", type: "button", onclick: () => dialog?.close() }, "Close"));
    document.body.append(dialog);
  }
  dialog.showModal();
}
