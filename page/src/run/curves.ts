// The curves of the chosen runs: groups of charts with one cursor, one zoom each, and controls for all of them.
import type { RunDetails } from "../api";
import type { Context } from "../context";
import { h, replace } from "../dom";
import { Chart, type Look } from "./chart";
import { groupsFor, label, type Group } from "./groups";
import type { RunSeries } from "./series";

export class Curves {
  readonly element: HTMLElement;
  private readonly body = h("div", { class: "chart-groups" });
  private readonly options = h("datalist", { id: "metric-names" });
  private readonly look: Look = { smoothing: 0, log: false, time: false };
  private readonly added: string[] = [];
  private charts: Chart[] = [];
  private runs: RunSeries[] = [];
  private key = "";
  healthy: RunDetails["healthy"] = {};

  constructor(private readonly context: Context, private readonly changed: () => void) {
    const search = h("input", { class: "input", list: "metric-names", type: "search", placeholder: "Any metric…", "aria-label": "Add a metric by its name",
      onchange: () => { if (this.add(search.value)) search.value = ""; } });
    this.element = h("section", { class: "curves", "aria-label": "Curves" },
      h("div", { class: "row curve-controls" },
        h("label", { class: "field" }, "Against", h("select", { class: "input", id: "curve-x", onchange: (event: Event) => {
          this.look.time = (event.target as HTMLSelectElement).value === "time";
          this.redraw();
        } }, h("option", { value: "steps" }, "steps"), h("option", { value: "time" }, "training time"))),
        h("label", { class: "field" }, "Smoothing", h("input", { type: "range", min: 0, max: 0.98, step: 0.02, value: 0, id: "curve-smooth",
          oninput: (event: Event) => { this.look.smoothing = Number((event.target as HTMLInputElement).value); this.redraw(); } })),
        h("label", { class: "check" }, h("input", { type: "checkbox", id: "curve-log", onchange: (event: Event) => {
          this.look.log = (event.target as HTMLInputElement).checked;
          this.redraw();
        } }), "Logarithmic"),
        h("div", { class: "grow" }, search), this.options),
      h("p", { class: "quiet hint" }, "Drag to zoom, double click to see everything. Dashed lines are changes: the text is above the curve when the pointer is near."),
      this.body);
    context.themed(() => this.charts.forEach((chart) => chart.remake()));
    new ResizeObserver(() => this.charts.forEach((chart) => chart.resize())).observe(this.body);
    context.expose("curves", () => this.charts.map((chart) => chart.held));
  }

  /** The metrics that the charts need of a run with these names. */
  wanted(names: string[]): string[] {
    return this.groups(names).flatMap((group) => group.charts.flatMap((chart) => [...chart.names, ...(chart.interval ?? [])]));
  }

  draw(runs: RunSeries[]): void {
    this.runs = runs;
    const names = [...new Set(runs.flatMap((run) => run.names))].sort();
    const groups = this.groups(names);
    const key = JSON.stringify(groups);
    if (key !== this.key) {
      this.key = key;
      this.charts.forEach((chart) => chart.destroy());
      this.charts = [];
      replace(this.options, ...names.map((name) => h("option", { value: name })));
      replace(this.body, ...groups.map((group) => this.group(group)));
    }
    this.redraw();
  }

  private groups(names: string[]): Group[] {
    const own = this.added.filter((name) => names.includes(name)).map((name) => ({ title: `${label(name)} (${name})`, names: [name] }));
    return [...(own.length ? [{ title: "Chosen", charts: own }] : []), ...groupsFor(names)];
  }

  private group(group: Group): HTMLElement {
    const charts = group.charts.map((plan) => new Chart(this.context, plan, "wavedash-curves", () => this.healthy));
    this.charts.push(...charts);
    return h("details", { class: "chart-group", open: true, ontoggle: () => charts.forEach((chart) => chart.resize()) },
      h("summary", null, h("h2", null, group.title)), h("div", { class: "chart-grid" }, ...charts.map((chart) => chart.element)));
  }

  private add(name: string): boolean {
    if (!this.runs.some((run) => run.names.includes(name)) || this.added.includes(name)) return false;
    this.added.unshift(name);
    this.changed();
    return true;
  }

  private redraw(): void {
    if (this.runs.length) this.charts.forEach((chart) => chart.draw(this.runs, this.look));
  }
}
