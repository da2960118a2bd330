// On a page that was exported to a file: since when it is as it is, and what it does not hold.
import "../style/exported.css";
import type { About } from "./api";
import { h } from "./dom";

/** A button that tells about the file; null on a page that a server has sent. */
export function exportedNote(about: About): HTMLElement | null {
  if (!about.exported) return null;
  const date = about.exported.slice(0, 10);
  const dialog = h("dialog", { "aria-label": "About this file", class: "exported-about" },
    h("h2", null, "A run as a file"),
    h("p", null, `Wavedash ${about.version} wrote this on ${about.exported.slice(0, 16).replace("T", " ")} UTC. It shows the run as it was then, and asks no server for anything.`),
    h("p", { class: "quiet" }, "Not in it:"),
    h("ul", null, ...(about.left_out ?? []).map((what) => h("li", null, what)), h("li", null, "live games and steering, which need the run itself: wavedash watch RUN")),
    h("button", { class: "button primary", type: "button", onclick: () => dialog.close() }, "Close"));
  return h("span", { class: "exported" },
    h("button", { class: "chip", type: "button", id: "exported", title: "About this file", "aria-label": `About this file, exported ${date}`, onclick: () => dialog.showModal() }, h("b", null, "i"), h("span", null, ` exported ${date}`)), dialog);
}
