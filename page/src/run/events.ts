// What was done to a run: a list with a filter.
import type { RunEvent } from "../api";
import { count, h, replace } from "../dom";
import { when } from "../words";

const MOST = 300;

/** Who did it or, of a move to another phase, why. */
export function byWhom(event: RunEvent): string {
  return !event.by ? "" : event.key === "phase" ? `: ${event.by}` : ` by ${event.by}`;
}

/** Whether a run that runs was last told to pause. */
export function isPaused(events: RunEvent[]): boolean {
  const last = [...events].reverse().find((event) => !event.refused && ["pause", "continue", "stop"].includes(String(event.key)));
  return last?.key === "pause";
}

/** One event as a row of a list. */
export function eventRow(event: RunEvent): HTMLElement {
  return h("li", { class: event.refused ? "event refused" : "event" },
    h("span", { class: "number quiet event-step" }, event.step === null || event.step === undefined ? "" : count(Number(event.step), 4)),
    h("span", { class: "grow" }, event.text, h("span", { class: "quiet" }, byWhom(event))),
    h("time", { class: "quiet small" }, when(event.time)));
}

export class Events {
  readonly element: HTMLElement;
  private readonly list = h("ol", { class: "event-list" });
  private readonly filter = h("input", { class: "input", type: "search", placeholder: "Filter events…", "aria-label": "Filter events", oninput: () => this.draw() });
  private rows: RunEvent[] = [];
  private drawn = "";

  constructor() {
    this.element = h("section", { class: "card", "aria-label": "Events" },
      h("div", { class: "row" }, h("h2", { class: "grow" }, "What was done to the run"), h("div", { class: "find" }, this.filter)), this.list);
  }

  get shown(): number {
    return this.rows.length;
  }

  show(rows: RunEvent[]): void {
    this.rows = rows;
    this.draw();
  }

  private draw(): void {
    const wanted = this.filter.value.toLowerCase();
    const rows = this.rows.filter((row) => `${row.text} ${row.by ?? ""}`.toLowerCase().includes(wanted)).slice(-MOST).reverse();
    const drawn = JSON.stringify(rows);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    replace(this.list, ...rows.map(eventRow));
    if (!rows.length) this.list.append(h("li", { class: "quiet" }, this.rows.length ? "No event has these words." : "Nothing was changed in this run. Changes by `wavedash set` and by the tab Steer are listed here, and phases."));
  }
}
