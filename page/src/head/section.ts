// A part of the head panel that can be closed, and that says why it is empty.
import { h, say } from "../dom";

export class Section {
  readonly element: HTMLDetailsElement;
  private readonly why = h("p", { class: "quiet small head-why", hidden: true });
  private readonly note = h("span", { class: "head-note number" });

  constructor(id: string, title: string, private readonly body: HTMLElement, open: boolean, toggled: () => void = () => {}) {
    this.element = h("details", { class: "head-section", open, id: `head-${id}` },
      h("summary", null, h("h3", null, title), this.note), this.why, body);
    this.element.addEventListener("toggle", toggled);
  }

  get open(): boolean {
    return this.element.open;
  }

  /** A few letters beside the title, also while it is closed. */
  remark(text: string): void {
    say(this.note, text);
  }

  /** Shows what the section holds or, with a reason, why it holds nothing. */
  explain(why: string | null): void {
    this.why.hidden = why === null;
    this.body.hidden = why !== null;
    if (why !== null) say(this.why, why);
  }

  get reason(): string | null {
    return this.why.hidden ? null : this.why.textContent;
  }
}
