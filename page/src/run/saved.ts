// Checkpoints and milestones of a run, as a table.
import type { RunDetails } from "../api";
import { bytes, count, h, replace } from "../dom";
import { short, since, span, when } from "../words";

interface Row { name: string; kind: string; step: number; at: unknown; bytes: number | null; facts: string }

/** The numbers that a milestone keeps of its moment. */
function facts(one: Record<string, unknown>): string {
  const rating = one.rating as { elo?: number } | null | undefined;
  return [typeof one.mean_return === "number" ? `return ${short(one.mean_return)}` : null,
    typeof rating?.elo === "number" ? `${Math.round(rating.elo)} Elo` : null].filter(Boolean).join(", ");
}

export class Saved {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly empty = h("p", { class: "quiet" }, "Nothing is saved yet: `checkpoint.every` says after how many steps a run saves itself.");
  private readonly table: HTMLElement;
  private drawn = "";

  constructor() {
    this.table = h("table", { class: "table", hidden: true },
      h("thead", null, h("tr", null, ...["Name", "Kind", "Step", "Age", "Size", ""].map((name) => h("th", { scope: "col" }, name)))), this.body);
    this.element = h("section", { class: "card", "aria-label": "Checkpoints" }, h("h2", null, "Checkpoints and milestones"), this.empty, h("div", { class: "scroll" }, this.table));
  }

  show(run: RunDetails): void {
    const rows: Row[] = [
      ...run.milestones.map((one) => ({ name: one.name, kind: "milestone", step: one.step, at: one.time, bytes: null, facts: facts(one) })),
      ...run.checkpoints.map((one) => ({ name: one.name.split("/").pop()!, kind: one.name.split("/")[0].replace("checkpoints", "checkpoint"), step: one.step, at: one.saved_at, bytes: one.bytes, facts: "" })),
    ].sort((a, b) => b.step - a.step);
    this.empty.hidden = rows.length > 0;
    this.table.hidden = !rows.length;
    const drawn = JSON.stringify(rows.map((row) => [row.name, row.kind, span(since(row.at))]));
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    replace(this.body, ...rows.map((row) => h("tr", null, h("td", { class: "number" }, row.name), h("td", null, row.kind), h("td", { class: "number" }, count(row.step, 4)),
      h("td", { title: when(row.at) }, span(since(row.at))), h("td", { class: "number" }, row.bytes === null ? "" : bytes(row.bytes)), h("td", { class: "quiet" }, row.facts))));
  }
}
