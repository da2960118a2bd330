// The list of runs: one is looked at, others may be laid over it.
import type { RunRow } from "../api";
import { count, h, property, replace, say } from "../dom";
import { short, when } from "../words";
import { PALETTE } from "./colours";

const MOST_CHOSEN = 8;
const MOST_SHOWN = 200;

/** Runs that are chosen; the first one is looked at. Colours stay with a run while it is chosen. */
export class RunList {
  readonly element: HTMLDetailsElement;
  private readonly body = h("ul", { class: "run-list" });
  private readonly summary = h("summary", null, "Runs");
  private readonly filter = h("input", { class: "input", type: "search", placeholder: "Filter runs…", "aria-label": "Filter runs", oninput: () => this.draw() });
  private readonly colours = new Map<string, string>();
  private drawn = "";
  rows: RunRow[] = [];
  chosen: string[] = [];

  constructor(private readonly changed: () => void) {
    this.element = h("details", { class: "card runs", open: !matchMedia("(max-width: 800px)").matches },
      this.summary, h("nav", { "aria-label": "Runs" }, this.filter, this.body,
        h("p", { class: "quiet small" }, "Click a run to look at it; tick others to lay their curves over it.")));
  }

  show(rows: RunRow[]): void {
    this.rows = rows;
    this.draw();
  }

  /** Chooses these runs, those of them that there are. */
  choose(ids: string[]): void {
    this.chosen = [...new Set(ids)].filter((id) => this.row(id)).slice(0, MOST_CHOSEN);
    for (const id of this.colours.keys()) if (!this.chosen.includes(id)) this.colours.delete(id);
    this.draw();
  }

  row(id: string | undefined): RunRow | undefined {
    return this.rows.find((row) => row.id === id);
  }

  colour(id: string): string {
    if (!this.colours.has(id)) {
      const taken = this.chosen.map((one) => this.colours.get(one));
      this.colours.set(id, PALETTE.find((colour) => !taken.includes(colour)) ?? PALETTE[0]);
    }
    return this.colours.get(id)!;
  }

  private pick(id: string): void {
    this.choose([id]);
    this.changed();
  }

  private toggle(id: string, on: boolean): void {
    if (on) this.choose([...this.chosen, id]);
    else if (this.chosen.length > 1) this.choose(this.chosen.filter((one) => one !== id));
    else this.drawn = "";  // The last one stays chosen, and its box is ticked again.
    this.draw();
    this.changed();
  }

  private draw(): void {
    const wanted = this.filter.value.toLowerCase();
    const rows = this.rows.filter((row) => `${row.title} ${row.name} ${row.state}`.toLowerCase().includes(wanted));
    const drawn = JSON.stringify([rows, this.chosen]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    say(this.summary, this.chosen.length > 1 ? `Runs: ${this.chosen.length} of ${this.rows.length} chosen` : `Runs (${this.rows.length})`);
    const focused = document.activeElement?.id;
    replace(this.body, ...rows.slice(0, MOST_SHOWN).map((row) => this.item(row)));
    if (rows.length > MOST_SHOWN) this.body.append(h("li", { class: "quiet" }, `and ${rows.length - MOST_SHOWN} more: filter by name`));
    if (!rows.length) this.body.append(h("li", { class: "quiet" }, this.rows.length ? "No run has this name." : "There are no runs yet. Begin one: wavedash train rocket-1v1"));
    if (focused?.startsWith("run-")) document.getElementById(focused)?.focus({ preventScroll: true });
  }

  private item(row: RunRow): HTMLElement {
    const on = this.chosen.includes(row.id);
    const current = this.chosen[0] === row.id;
    const box = h("input", { type: "checkbox", id: `run-over-${row.id}`, "aria-label": `Lay ${row.title} over`, title: "Lay over the others",
      onchange: () => this.toggle(row.id, box.checked) });
    box.checked = on;
    const [name, ...stamp] = row.title.split("/");
    const strength = row.rating !== null && row.rating !== undefined ? `${Math.round(row.rating)} Elo` : row.return !== null && row.return !== undefined ? `return ${short(row.return, 3)}` : "";
    const item = h("li", { class: current ? "run-row current" : "run-row", "data-run": row.id }, box,
      h("button", { type: "button", id: `run-pick-${row.id}`, "aria-current": current ? "true" : null, title: `${row.title}, started ${when(row.started, false)}`, onclick: () => this.pick(row.id) },
        h("span", { class: "run-title" }, h("span", { class: `dot ${row.state}` }), name, row.state === "running" ? h("span", { class: "chip good" }, row.state) : h("span", { class: "sr" }, row.state)),
        h("span", { class: "quiet small number" }, stamp.join("/")),
        h("span", { class: "small run-facts" }, [`${count(row.steps)} steps`, strength].filter(Boolean).join(" · "))));
    property(item, "--run", on ? this.colour(row.id) : "transparent");
    return item;
  }
}
