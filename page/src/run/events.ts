// What was done to a run, and what it has logged: a list with a filter.
import type { RunEvent } from "../api";
import { count, h, replace } from "../dom";

function words(event: RunEvent): string {
  if (typeof event.text === "string") return event.text;
  const key = String(event.key ?? "");
  if (event.refused) return `${key} refused: ${String(event.refused)}`;
  if ("old" in event) return `${key}: ${JSON.stringify(event.old)} → ${JSON.stringify(event.new)}`;
  return event.argument === undefined ? key : `${key}: ${String(event.argument)}`;
}

/** A time as people write it; the text itself where it is none. */
export function when(time: unknown): string {
  if (time === null || time === undefined) return "";
  const date = new Date(typeof time === "number" ? time * (time < 1e12 ? 1000 : 1) : String(time));
  return Number.isNaN(date.getTime()) ? String(time) : date.toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" });
}

export class Events {
  readonly element: HTMLElement;
  private readonly list = h("ol", { class: "event-list" });
  private readonly filter = h("input", { class: "input", type: "search", placeholder: "Filter…", "aria-label": "Filter events", oninput: () => this.draw() });
  private rows: RunEvent[] = [];

  constructor() {
    this.element = h("section", { class: "card", "aria-label": "Events" }, h("div", { class: "row" }, h("h2", { class: "grow" }, "Events"), this.filter), this.list);
  }

  show(rows: RunEvent[]): void {
    this.rows = rows;
    this.draw();
  }

  private draw(): void {
    const wanted = this.filter.value.toLowerCase();
    const rows = this.rows.filter((row) => `${words(row)} ${String(row.by ?? "")}`.toLowerCase().includes(wanted)).slice(-300).reverse();
    replace(this.list, ...rows.map((row) => h("li", { class: row.refused ? "refused" : null },
      h("span", { class: "number quiet" }, row.step === undefined || row.step === null ? "" : count(Number(row.step), 4)),
      h("span", { class: "grow" }, words(row), row.by ? h("span", { class: "quiet" }, ` by ${String(row.by)}`) : null),
      h("time", { class: "quiet" }, when(row.time)))));
    if (!rows.length) this.list.append(h("li", { class: "quiet" }, this.rows.length ? "No event has these words." : "Nothing was changed in this run."));
  }
}
