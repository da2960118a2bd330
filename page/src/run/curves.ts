// The curves of the chosen runs: groups of charts with one cursor and one zoom, and controls for all of them.
import type { RunDetails } from "../api";
import type { Context } from "../context";
import { h, property, replace } from "../dom";
import { Chart, type Shared } from "./chart";
import { DASHES } from "./colours";
import { groupsFor, matching, type Group } from "./groups";
import type { Look } from "./lines";
import type { RunSeries } from "./series";

const KEPT = "wavedash.curves";
const RANGES: [string, string, number][] = [["all", "all", 1], ["half", "last half", 0.5], ["fifth", "last fifth", 0.2], ["twentieth", "last twentieth", 0.05]];

export class Curves {
  readonly element: HTMLElement;
  healthy: RunDetails["healthy"] = {};
  private readonly look: Look = remembered();
  private readonly body = h("div", { class: "chart-groups" });
  private readonly key = h("div", { class: "row run-key" });
  private readonly find = h("input", { class: "input", type: "search", id: "curve-find", placeholder: "Find metrics…", "aria-label": "Find metrics by their names",
    oninput: () => { this.draw(this.runs); this.asked(); } });
  private readonly whole = h("button", { class: "button", type: "button", id: "curve-reset", onclick: () => this.reset() }, "Zoom out");
  private readonly range = h("select", { class: "input", id: "curve-range", onchange: () => this.reset(this.range.value) },
    ...RANGES.map(([value, name]) => h("option", { value }, name)));
  private readonly opened = new Map<string, boolean>();
  private readonly seen = new Set<Chart>();
  private readonly watch: IntersectionObserver;
  private readonly shared: Shared;
  private charts: Chart[] = [];
  private runs: RunSeries[] = [];
  private made = "";
  private zoomed: [number, number] | null = null;

  /** `asked` is called when metrics are needed that were not asked for before. */
  constructor(context: Context, private readonly asked: () => void) {
    this.shared = {
      context, look: this.look, healthy: () => this.healthy, window: (min, max) => this.window(min, max),
      zoom: (min, max) => { this.zoomed = [min, max]; this.redraw(); }, reset: () => this.reset(),
    };
    this.element = h("section", { class: "curves", "aria-label": "Curves" }, this.controls(), this.key, this.body);
    // Only charts on the screen are drawn; the others when they come into sight.
    this.watch = new IntersectionObserver((entries) => entries.forEach((entry) => {
      const chart = this.charts.find((one) => one.element === entry.target);
      if (!chart) return;
      if (!entry.isIntersecting) this.seen.delete(chart);
      else {
        this.seen.add(chart);
        this.drawOne(chart);
      }
    }), { rootMargin: "250px" });
    context.themed(() => this.charts.forEach((chart) => chart.remake()));
    new ResizeObserver(() => this.charts.forEach((chart) => chart.resize())).observe(this.body);
    context.expose("curves", () => this.charts.map((chart) => chart.held(this.runs)));
    context.expose("look", () => ({ ...this.look, find: this.find.value, range: this.range.value, zoomed: this.zoomed }));
  }

  /** The metrics that the open groups need of a run with these names. */
  wanted = (names: string[]): string[] => this.groups(names).filter((group) => this.isOpen(group))
    .flatMap((group) => group.charts.flatMap((chart) => [...chart.names, ...(chart.interval ?? [])]));

  draw(runs: RunSeries[]): void {
    this.runs = runs;
    const names = [...new Set(runs.flatMap((run) => run.names))];
    const groups = this.groups(names);
    const made = JSON.stringify(groups);
    if (made !== this.made) this.make(groups, made);
    this.drawKey();
    this.redraw();
  }

  private make(groups: Group[], made: string): void {
    this.made = made;
    this.watch.disconnect();
    this.seen.clear();
    this.charts.forEach((chart) => chart.destroy());
    this.charts = [];
    replace(this.body, ...groups.map((group) => this.group(group)));
    if (!groups.length) this.body.append(h("p", { class: "quiet" }, this.find.value ? "No metric has this name." : "This run has no metrics yet: they come with its first iteration."));
    this.charts.forEach((chart) => this.watch.observe(chart.element));
  }

  private controls(): HTMLElement {
    const { look } = this;
    const against = h("select", { class: "input", id: "curve-x", onchange: () => { look.time = against.value === "time"; this.reset(); } },
      h("option", { value: "steps" }, "steps"), h("option", { value: "time" }, "training time"));
    against.value = look.time ? "time" : "steps";
    const smoothed = h("output", { class: "number", for: "curve-smooth" }, look.smoothing.toFixed(2));
    const smoothing = h("input", { type: "range", min: 0, max: 0.98, step: 0.02, id: "curve-smooth", oninput: () => {
      look.smoothing = Number(smoothing.value);
      smoothed.textContent = look.smoothing.toFixed(2);
      this.changed();
    } });
    smoothing.value = String(look.smoothing);
    const check = (id: string, text: string, title: string, key: "log" | "usual") => {
      const box = h("input", { type: "checkbox", id, onchange: () => { look[key] = box.checked; this.changed(); } });
      box.checked = look[key];
      return h("label", { class: "check", title }, box, text);
    };
    this.whole.hidden = true;
    return h("div", { class: "row curve-controls", role: "group", "aria-label": "How curves are drawn" },
      h("div", { class: "curve-find" }, this.find),
      h("label", { class: "inline-field" }, "against", against),
      h("label", { class: "inline-field" }, "show", this.range),
      h("label", { class: "inline-field" }, "smooth", smoothing, smoothed),
      check("curve-log", "log", "A logarithmic axis: values above 0 only", "log"),
      check("curve-usual", "cut outliers", "The axis fits 98 % of the values", "usual"), this.whole);
  }

  /** Which colour, or dash, is which run. */
  private drawKey(): void {
    const runs = this.runs.length > 1 ? this.runs : [];
    const made = JSON.stringify(runs.map((run) => [run.title, run.colour]));
    if (this.key.dataset.made === made) return;
    this.key.dataset.made = made;
    replace(this.key, ...runs.map((run, place) => {
      const mark = h("i", { class: "swatch" });
      property(mark, "--swatch", run.colour);
      return h("span", { class: "chip" }, mark, run.title, place && DASHES[place % DASHES.length] ? h("span", { class: "key-note" }, "dashed where colours mean metrics") : null);
    }));
  }

  private groups(names: string[]): Group[] {
    return matching(groupsFor(names), this.find.value);
  }

  private isOpen(group: Group): boolean {
    return this.opened.get(group.title) ?? !group.closed;
  }

  private group(group: Group): HTMLElement {
    const charts = group.charts.map((plan) => new Chart(this.shared, plan, "wavedash-curves"));
    this.charts.push(...charts);
    const element = h("details", { class: "chart-group", open: this.isOpen(group), "data-group": group.title },
      h("summary", null, h("h2", null, group.title), h("span", { class: "quiet small" }, `${charts.length} ${charts.length === 1 ? "chart" : "charts"}`)),
      h("div", { class: "chart-grid" }, ...charts.map((chart) => chart.element)));
    element.addEventListener("toggle", () => {
      if (this.isOpen(group) === element.open) return;
      this.opened.set(group.title, element.open);
      if (element.open) this.asked();
    });
    return element;
  }

  private window(min: number, max: number): [number, number] {
    if (this.zoomed) return this.zoomed;
    const share = RANGES.find(([value]) => value === this.range.value)?.[2] ?? 1;
    return min === max ? [min - 1, max + 1] : [max - share * (max - min), max];
  }

  private reset(range = "all"): void {
    this.range.value = range;
    this.zoomed = null;
    this.changed();
  }

  private changed(): void {
    try {
      localStorage.setItem(KEPT, JSON.stringify(this.look));
    } catch { /* Storage is closed; it lasts as long as the page. */ }
    this.redraw();
  }

  private redraw(): void {
    this.whole.hidden = this.zoomed === null && this.range.value === "all";
    for (const chart of this.seen) this.drawOne(chart);
  }

  private drawOne(chart: Chart): void {
    if (this.runs.length && chart.element.clientWidth) chart.draw(this.runs);
  }
}

/** How this browser drew curves the last time. */
function remembered(): Look {
  const look: Look = { smoothing: 0, log: false, time: false, usual: false };
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT) ?? "{}") as Partial<Look>;
    if (typeof kept.smoothing === "number" && kept.smoothing >= 0 && kept.smoothing < 1) look.smoothing = kept.smoothing;
    look.log = kept.log === true;
    look.time = kept.time === true;
    look.usual = kept.usual === true;
  } catch { /* Nothing was kept. */ }
  return look;
}
