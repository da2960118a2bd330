// What was asked of the run, and what it answered: never what was hoped for.
import { h } from "../dom";

const MOST = 40;

export interface Told { asked: string; said: string; state: "waiting" | "done" | "refused" }

export class Answers {
  readonly element: HTMLElement;
  private readonly list = h("ol", { class: "said", "aria-live": "polite", "aria-label": "What the run answered" });
  private readonly none = h("p", { class: "quiet" }, "What you set or order is listed here, with what the run says to it.");
  readonly told: Told[] = [];

  constructor() {
    this.element = h("section", { class: "card", "aria-label": "Answers" }, h("h2", null, "What the run answered"), this.none, this.list);
  }

  /** Lists a question, and returns what lists its answer. */
  ask(asked: string): (said: string, done: boolean) => void {
    const told: Told = { asked, said: "the run answers between two iterations…", state: "waiting" };
    const text = h("pre", null, told.said);
    const row = h("li", { class: told.state }, h("div", { class: "row" }, h("code", { class: "grow" }, asked), h("time", { class: "quiet small" }, new Date().toLocaleTimeString())), text);
    this.told.unshift(told);
    this.told.splice(MOST);
    this.list.prepend(row);
    while (this.list.children.length > MOST) this.list.lastElementChild!.remove();
    this.none.hidden = true;
    return (said, done) => {
      told.said = said;
      told.state = done ? "done" : "refused";
      text.textContent = said;
      row.className = told.state;
    };
  }
}
