// The list of runs: one is looked at, others may be laid over it.
import type { RunRow } from "../api";
import { count, h, property, replace } from "../dom";
import { PALETTE } from "./chart";
import { when } from "./events";

const MOST = 8;

/** Runs that are chosen; the first one is looked at. Colours stay with a run while it is chosen. */
export class RunList {
  readonly element: HTMLElement;
  private readonly body = h("ul", { class: "run-list" });
  private readonly filter = h("input", { class: "input", type: "search", placeholder: "Filter runs…", "aria-label": "Filter runs", oninput: () => this.draw() });
  private readonly colours = new Map<string, string>();
  private drawn = "";
  rows: RunRow[] = [];
  chosen: string[] = [];

  constructor(private readonly changed: () => void) {
    this.element = h("nav", { class: "card runs", "aria-label": "Runs" }, this.filter, this.body);
  }

  show(rows: RunRow[]): void {
    this.rows = rows;
    this.draw();
  }

  choose(id: string): void {
    this.chosen = [id];
    this.draw();
    this.changed();
  }

  row(id: string): RunRow | undefined {
    return this.rows.find((row) => row.id === id);
  }

  colour(id: string): string {
    if (!this.colours.has(id)) {
      const taken = this.chosen.map((one) => this.colours.get(one));
      this.colours.set(id, PALETTE.find((colour) => !taken.includes(colour)) ?? PALETTE[0]);
    }
    return this.colours.get(id)!;
  }

  private toggle(id: string, on: boolean): void {
    if (on && !this.chosen.includes(id)) {
      this.colours.delete(id);
      this.chosen = [...this.chosen, id].slice(0, MOST);
    } else if (!on && this.chosen.length > 1) {
      this.chosen = this.chosen.filter((one) => one !== id);
    }
    this.draw();
    this.changed();
  }

  private draw(): void {
    const wanted = this.filter.value.toLowerCase();
    const rows = this.rows.filter((row) => `${row.title} ${row.name}`.toLowerCase().includes(wanted));
    const key = JSON.stringify([rows, this.chosen]);
    if (key === this.drawn) return;
    this.drawn = key;
    const focused = document.activeElement?.id;
    replace(this.body, ...rows.map((row) => this.item(row)));
    if (!rows.length) this.body.append(h("li", { class: "quiet" }, this.rows.length ? "No run has this name." : "There are no runs yet: wavedash train rocket-1v1"));
    if (focused?.startsWith("run-")) document.getElementById(focused)?.focus();
  }

  private item(row: RunRow): HTMLElement {
    const on = this.chosen.includes(row.id);
    const box = h("input", { type: "checkbox", id: `run-over-${row.id}`, "aria-label": `Lay ${row.title} over`, title: "Lay over the others",
      onchange: () => this.toggle(row.id, box.checked) });
    box.checked = on;
    const item = h("li", { class: this.chosen[0] === row.id ? "run-row current" : "run-row", "data-run": row.id }, box,
      h("button", { type: "button", id: `run-pick-${row.id}`, "aria-current": this.chosen[0] === row.id ? "true" : null, onclick: () => this.choose(row.id) },
        h("span", { class: "run-title" }, row.title),
        h("span", { class: "run-facts" }, h("span", { class: `chip ${row.state === "running" ? "good" : row.state === "stopped" ? "warn" : ""}` }, row.state),
          h("span", { class: "number" }, `${count(row.steps)} steps`), row.rating === null ? null : h("span", { class: "number" }, `${Math.round(row.rating)} Elo`),
          row.rating !== null || row.return === null ? null : h("span", { class: "number" }, `return ${count(row.return)}`)),
        h("span", { class: "quiet small" }, when(row.started))));
    property(item, "--run", on ? this.colour(row.id) : "transparent");
    return item;
  }
}
