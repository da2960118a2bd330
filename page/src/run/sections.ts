// The parts of a run as tabs inside the tab: curves, events, checkpoints, configuration, log.
import type { Route } from "../context";
import { h, say } from "../dom";

export class Sections {
  readonly element: HTMLElement;
  private readonly buttons = new Map<string, HTMLButtonElement>();
  private readonly panes = new Map<string, HTMLElement>();
  private readonly counts = new Map<string, HTMLElement>();
  shown = "";

  /** `changed` is called when a user has chosen another part. */
  constructor(private readonly route: Route, private readonly changed: () => void, parts: [string, string, HTMLElement][]) {
    const list = h("div", { class: "sections", role: "tablist", "aria-label": "Parts of the run", onkeydown: (event: Event) => this.pressed(event as KeyboardEvent) });
    for (const [id, title, element] of parts) {
      const number = h("span", { class: "quiet small" });
      const button = h("button", { type: "button", role: "tab", id: `section-${id}`, "aria-controls": `section-pane-${id}`, onclick: () => this.choose(id) }, title, number);
      list.append(button);
      this.buttons.set(id, button);
      this.counts.set(id, number);
      this.panes.set(id, h("div", { role: "tabpanel", id: `section-pane-${id}`, "aria-labelledby": `section-${id}` }, element));
    }
    this.element = h("div", { class: "section-frame" }, list, ...this.panes.values());
    const asked = route.get("part");
    this.show(asked && this.panes.has(asked) ? asked : parts[0][0]);
  }

  /** Writes a number beside the name of a part. */
  count(id: string, number: number): void {
    say(this.counts.get(id)!, number ? ` ${number}` : "");
  }

  private choose(id: string): void {
    this.show(id);
    this.changed();
  }

  show(id: string): void {
    if (id === this.shown) return;
    this.shown = id;
    for (const [one, pane] of this.panes) {
      pane.hidden = one !== id;
      const button = this.buttons.get(one)!;
      button.setAttribute("aria-selected", String(one === id));
      button.tabIndex = one === id ? 0 : -1;
    }
    if (this.route.get("part") || id !== [...this.panes.keys()][0]) this.route.set({ part: id === [...this.panes.keys()][0] ? null : id });
  }

  private pressed(event: KeyboardEvent): void {
    const way = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!way) return;
    event.stopPropagation();
    const ids = [...this.panes.keys()];
    this.choose(ids[(ids.indexOf(this.shown) + way + ids.length) % ids.length]);
    this.buttons.get(this.shown)!.focus();
  }
}
