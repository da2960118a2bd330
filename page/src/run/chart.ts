// One chart: lines of uPlot, phases as bands with names, events as marks, the healthy band shaded.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Context } from "../context";
import { count, h } from "../dom";
import { label, type ChartPlan } from "./groups";
import { shares, smooth, type RunSeries } from "./series";

export const PALETTE = ["#3d7bf5", "#e8762c", "#1fa971", "#b455d6", "#d9a406", "#e0476b", "#14a3b8", "#8a7a63", "#7a88ff", "#66a61e"];
const HEIGHT = 190;

export interface Look { smoothing: number; log: boolean; time: boolean }

export class Chart {
  readonly element: HTMLElement;
  private readonly box = h("div", { class: "chart-box" });
  private readonly note = h("div", { class: "chart-note", "aria-live": "off" });
  private readonly table = h("details", { class: "chart-table" }, h("summary", null, "Table"));
  private plot: uPlot | null = null;
  private runs: RunSeries[] = [];
  private look: Look = { smoothing: 0, log: false, time: false };
  private drawn: { name: string; run: string }[] = [];

  constructor(private readonly context: Context, readonly plan: ChartPlan, private readonly sync: string,
    private readonly healthy: () => Record<string, [number | null, number | null]>) {
    this.element = h("figure", { class: "chart card", "aria-label": plan.title },
      h("figcaption", null, h("h3", null, plan.title), this.note), this.box, this.table);
    this.table.addEventListener("toggle", () => this.fillTable());
  }

  /** What the chart holds, for tests. */
  get held(): Record<string, unknown> {
    return {
      title: this.plan.title, names: this.plan.names, series: this.drawn,
      data: this.plot ? this.plot.data.map((column) => [...column]) : [],
      phases: this.runs[0]?.phases ?? [], marks: this.runs.flatMap((run) => run.events),
    };
  }

  /** Draws these runs. Lines that stay the same keep the zoom. */
  draw(runs: RunSeries[], look: Look): void {
    const anew = !this.plot || runs.length !== this.runs.length || runs.some((run, i) => run !== this.runs[i])
      || look.log !== this.look.log || look.time !== this.look.time;
    this.runs = runs;
    this.look = { ...look };
    const data = this.data();
    if (anew) this.make(data);
    else this.keepZoom(data);
    if (this.table.open) this.fillTable();
  }

  resize(): void {
    const width = this.box.clientWidth;
    if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
  }

  remake(): void {
    if (this.plot) this.make(this.data());
  }

  destroy(): void {
    this.plot?.destroy();
    this.plot = null;
  }

  /** All metrics of the plan, of all runs, on one axis. */
  private data(): uPlot.AlignedData {
    const { plan, look } = this;
    this.drawn = [];
    const names = plan.interval ? [...plan.names, ...plan.interval] : plan.names;
    const tables = this.runs.map((run) => {
      let columns = names.map((name) => run.columns[name] ?? run.steps.map(() => null));
      if (plan.share) columns = shares(columns);
      columns = columns.map((column) => smooth(column, look.smoothing));
      if (look.log) columns = columns.map((column) => column.map((value) => (value !== null && value > 0 ? value : null)));
      names.forEach((name) => this.drawn.push({ name, run: run.id }));
      return [look.time ? run.hours() : run.steps, ...columns] as uPlot.AlignedData;
    });
    return tables.length === 1 ? tables[0] : tables.length ? uPlot.join(tables) : [[]];
  }

  private make(data: uPlot.AlignedData): void {
    this.destroy();
    const width = this.box.clientWidth || 320;
    this.plot = new uPlot(this.options(width), data, this.box);
    this.plot.over.addEventListener("dblclick", () => this.plot?.setData(this.plot.data, true));
  }

  private keepZoom(data: uPlot.AlignedData): void {
    const plot = this.plot!;
    const before = plot.data[0];
    const { min, max } = plot.scales.x;
    const whole = !before.length || (min === before[0] && max === before[before.length - 1]);
    plot.setData(data, whole);
    if (!whole) plot.setScale("x", { min: min!, max: max! });
  }

  private options(width: number): uPlot.Options {
    const { context, plan, look } = this;
    const several = plan.names.length > 1;
    const each = plan.names.length + (plan.interval ? 2 : 0);
    const line = context.colour("--line");
    const quiet = context.colour("--quiet");
    const axis = { stroke: quiet, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 }, font: "11px system-ui" };
    const lines: uPlot.Series[] = this.drawn.map(({ name }, i) => {
      const run = Math.floor(i / each);
      const edge = i % each >= plan.names.length;
      const colour = several ? PALETTE[(i % each) % PALETTE.length] : this.runs[run].colour;
      return {
        label: name, stroke: edge ? "transparent" : colour, width: 1.6, spanGaps: true, scale: "y",
        dash: several && run ? [[6, 3], [2, 3], [8, 3, 2, 3]][(run - 1) % 3] : undefined,
        points: { show: edge ? false : undefined, size: 5 },
      };
    });
    const bands = plan.interval
      ? this.runs.map((run, i) => ({ series: [i * each + each, i * each + each - 1] as [number, number], fill: `${run.colour}2e` })) : [];
    return {
      width, height: HEIGHT, legend: { show: false }, bands,
      cursor: { sync: { key: this.sync, setSeries: false }, drag: { x: true, y: false }, points: { size: 6 } },
      scales: { x: { time: false }, y: { distr: look.log ? 3 : 1 } },
      axes: [
        { ...axis, size: 30, values: (_u, ticks) => ticks.map((tick) => (look.time ? `${+tick.toPrecision(3)} h` : count(tick))) },
        { ...axis, size: 54, values: (_u, ticks) => ticks.map((tick) => (tick === null ? "" : plan.share ? `${Math.round(tick * 100)} %` : count(tick))) },
      ],
      series: [{}, ...lines],
      hooks: { drawClear: [(plot) => this.behind(plot)], draw: [(plot) => this.marks(plot)], setCursor: [(plot) => this.say(plot)] },
    };
  }

  private x(run: RunSeries, step: number): number {
    return this.look.time ? run.hoursAt(step) : step;
  }

  /** Phases of the first run, and the healthy band. */
  private behind(plot: uPlot): void {
    const { ctx } = plot;
    const box = plot.bbox;
    const run = this.runs[0];
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.left, box.top, box.width, box.height);
    ctx.clip();
    const band = this.plan.band ? this.healthy()[this.plan.band] : undefined;
    if (band) {
      const low = band[0] === null ? box.top + box.height : plot.valToPos(band[0], "y", true);
      const high = band[1] === null ? box.top : plot.valToPos(band[1], "y", true);
      ctx.globalAlpha = 0.13;
      ctx.fillStyle = this.context.colour("--good");
      ctx.fillRect(box.left, high, box.width, low - high);
    }
    run?.phases.forEach((phase, i) => {
      const left = plot.valToPos(this.x(run, phase.step), "x", true);
      const next = run.phases[i + 1];
      const right = next ? plot.valToPos(this.x(run, next.step), "x", true) : box.left + box.width;
      ctx.globalAlpha = i % 2 ? 0 : 0.07;
      ctx.fillStyle = this.context.colour("--accent");
      ctx.fillRect(left, box.top, right - left, box.height);
      ctx.globalAlpha = 0.9;
      ctx.fillStyle = this.context.colour("--faint");
      ctx.font = `${10 * devicePixelRatio}px system-ui`;
      const name = phase.name.replace(/^Phase/, "").replace("-", " ");
      const shown = ctx.measureText(name).width < right - left - 8 ? name : name.split(" ")[0];
      if (ctx.measureText(shown).width < right - left) ctx.fillText(shown, Math.max(left, box.left) + 4, box.top + 11 * devicePixelRatio);
    });
    ctx.restore();
  }

  private marks(plot: uPlot): void {
    const { ctx } = plot;
    const box = plot.bbox;
    ctx.save();
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.lineWidth = devicePixelRatio;
    for (const run of this.runs) {
      ctx.strokeStyle = this.runs.length > 1 ? run.colour : this.context.colour("--warn");
      for (const event of run.events) {
        if (event.step === null) continue;
        const x = plot.valToPos(this.x(run, event.step), "x", true);
        if (x < box.left || x > box.left + box.width) continue;
        ctx.beginPath();
        ctx.moveTo(x, box.top);
        ctx.lineTo(x, box.top + box.height);
        ctx.stroke();
      }
    }
    ctx.restore();
  }

  /** Values under the cursor, and what was done to the run near it. */
  private say(plot: uPlot): void {
    const { idx, left } = plot.cursor;
    if (idx === null || idx === undefined || left === undefined || left < 0) {
      this.note.textContent = this.newest(plot);
      return;
    }
    const at = plot.data[0][idx];
    const parts = [this.look.time ? `${+at.toPrecision(4)} h` : count(at, 4)];
    this.drawn.forEach(({ name, run }, i) => {
      const value = plot.data[i + 1]?.[idx];
      if (value === null || value === undefined) return;
      const who = this.runs.length > 1 ? `${this.runs.find((one) => one.id === run)?.title ?? ""} ` : "";
      const what = this.plan.names.length > 1 || this.plan.interval ? `${label(name)} ` : "";
      parts.push(`${who}${what}${this.plan.share ? `${(value * 100).toFixed(1)} %` : count(value, 4)}`);
    });
    for (const run of this.runs) {
      for (const event of run.events) {
        if (event.step !== null && Math.abs(plot.valToPos(this.x(run, event.step), "x") - left) < 5) parts.push(`⚑ ${event.text}`);
      }
    }
    this.note.textContent = parts.join(" · ");
  }

  private newest(plot: uPlot): string {
    if (this.plan.names.length > 1 || this.runs.length !== 1) return "";
    const value = [...(plot.data[1] ?? [])].reverse().find((one) => one !== null && one !== undefined);
    return value === null || value === undefined ? "no values yet" : count(value, 4);
  }

  /** The last rows as text, for readers that see no picture. */
  private fillTable(): void {
    this.table.querySelector("div")?.remove();
    if (!this.table.open || !this.plot) return;
    const data = this.plot.data;
    const rows = Array.from({ length: Math.min(12, data[0].length) }, (_, i) => data[0].length - 1 - i);
    this.table.append(h("div", { class: "scroll" }, h("table", { class: "table number" },
      h("thead", null, h("tr", null, h("th", null, this.look.time ? "hours" : "steps"), ...this.drawn.map(({ name }) => h("th", null, label(name))))),
      h("tbody", null, ...rows.map((row) => h("tr", null, h("td", null, data[0][row].toLocaleString("en")),
        ...this.drawn.map((_, i) => h("td", null, count(data[i + 1]?.[row], 5)))))))));
  }
}
