// Orders that a run obeys, as buttons. An order that ends it is asked for twice.
import { h, replace } from "../dom";

const EXPLAINED: Record<string, string> = {
  save: "Writes a checkpoint of this step now", pause: "Waits between two iterations, and holds what it has", continue: "Goes on after a pause",
  stop: "Saves the run and ends it", milestone: "Keeps this version for ever, under a name",
};
const NAMES: Record<string, string> = { save: "Save now", pause: "Pause", continue: "Continue", stop: "Stop…", milestone: "Keep a milestone" };
const FIRST = ["save", "milestone", "pause", "continue", "phase", "stop"];

export class Orders {
  readonly element: HTMLElement;
  private readonly buttons = h("div", { class: "row orders" });
  private readonly label = h("input", { class: "input", "aria-label": "Label of the milestone", placeholder: "label (optional)", maxlength: 60, id: "steer-label", spellcheck: "false" });
  private readonly sure = h("dialog", { "aria-labelledby": "steer-sure" });
  private made = "";
  private paused = false;

  constructor(private readonly send: (words: string[]) => void) {
    this.element = h("section", { class: "card", "aria-label": "Orders" }, h("h2", null, "Orders"), this.buttons, this.sure);
  }

  show(words: string[], paused: boolean): void {
    const known = words.filter((word) => word !== "list").sort((a, b) => place(a) - place(b));
    const made = JSON.stringify([known, paused]);
    if (made === this.made) return;
    this.made = made;
    this.paused = paused;
    replace(this.buttons, ...known.map((word) => this.order(word)));
  }

  private order(word: string): HTMLElement {
    const plain = (name: string, title: string, id: string, go: () => void, kind = "") => h("button", { class: `button ${kind}`, type: "button", title, id: `steer-${id}`, onclick: go }, name);
    if (word === "stop") return plain(NAMES.stop, EXPLAINED.stop, "stop", () => this.confirm(), "danger");
    if (word === "milestone") {
      return h("form", { class: "row order-group", onsubmit: (event: Event) => {
        event.preventDefault();
        const name = this.label.value.trim();
        this.send([name ? `milestone=${name}` : "milestone"]);
        this.label.value = "";
      } }, h("button", { class: "button", type: "submit", title: EXPLAINED.milestone, id: "steer-milestone" }, NAMES.milestone), this.label);
    }
    if (word === "phase") {
      return h("span", { class: "row order-group", role: "group", "aria-label": "Phases" }, ...[["‹ Phase back", "phase=back", "phase-back"], ["Phase?", "phase", "phase"], ["Phase next ›", "phase=next", "phase-next"]]
        .map(([name, order, id]) => plain(name, `wavedash set RUN ${order}`, id, () => this.send([order]))));
    }
    const emphasis = (word === "continue" && this.paused) || (word === "save" && !this.paused) ? "primary" : "";
    return plain(NAMES[word] ?? word, EXPLAINED[word] ?? `wavedash set RUN ${word}`, word, () => this.send([word]), emphasis);
  }

  private confirm(): void {
    replace(this.sure, h("h2", { id: "steer-sure" }, "Stop the run?"), h("p", null, "It is saved and ends after this iteration. `wavedash resume` goes on with it."),
      h("div", { class: "row" }, h("button", { class: "button danger", type: "button", id: "steer-stop-yes", onclick: () => {
        this.sure.close();
        this.send(["stop"]);
      } }, "Stop it"), h("button", { class: "button", type: "button", onclick: () => this.sure.close() }, "Let it run")));
    this.sure.showModal();
  }
}

function place(word: string): number {
  return FIRST.includes(word) ? FIRST.indexOf(word) : FIRST.length;
}
