// One chart: lines of uPlot, with its caption, the box at the cursor, a legend, and a table for those who see no picture.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Context } from "../context";
import { h, property, replace } from "../dom";
import { eachTick, percent, short, span, ticks } from "../words";
import { PALETTE } from "./colours";
import { last, nearest } from "./columns";
import { drawBehind, drawMarks, marksNear, marksOf, phaseAt, PHASE_ROOM, type Decor } from "./decor";
import { label, meaning, type ChartPlan } from "./groups";
import { lineUp, rangeOf, valuesWithin, type Line, type Look } from "./lines";
import type { Column, RunSeries } from "./series";
import { fillTable } from "./table";
import { Tip } from "./tip";

const HEIGHT = 190;
const LARGE = 420;

/** What all charts of a page share. */
export interface Shared {
  context: Context;
  look: Look;
  healthy(): Record<string, [number | null, number | null]>;
  /** The part of the axis that is shown, of all that there is. */
  window(min: number, max: number): [number, number];
  zoom(min: number, max: number): void;
  reset(): void;
}

export class Chart {
  readonly element: HTMLElement;
  private readonly box: HTMLElement;
  private readonly note = h("span", { class: "chart-note number" });
  private readonly legend = h("div", { class: "chart-legend" });
  private readonly table = h("div", { class: "chart-table scroll", hidden: true });
  private readonly tip = new Tip();
  private readonly hidden = new Set<string>();
  private plot: uPlot | null = null;
  private runs: RunSeries[] = [];
  private lines: Line[] = [];
  private key = "";
  private large = false;
  private inside = false;

  constructor(private readonly shared: Shared, readonly plan: ChartPlan, private readonly sync: string) {
    const enlarge = h("button", { class: "chart-button", type: "button", "aria-pressed": "false", "aria-label": `Enlarge ${plan.title}`, title: "Enlarge",
      onclick: () => this.enlarge(enlarge) }, "⤢");
    const list = h("button", { class: "chart-button", type: "button", "aria-pressed": "false", "aria-label": `Table of ${plan.title}`, title: "As a table",
      onclick: () => this.toggleTable(list) }, "≡");
    this.box = h("div", { class: "chart-box", tabindex: 0, role: "group", "aria-label": `${plan.title}: arrow keys move the cursor`,
      onkeydown: (event: Event) => this.pressed(event as KeyboardEvent), onblur: () => this.leave() }, this.tip.element);
    this.element = h("figure", { class: "chart card", "aria-label": plan.title, "data-metrics": plan.names.join(" ") },
      h("figcaption", null, h("h3", { title: plan.names.map((name) => [name, meaning(name)].filter(Boolean).join(": ")).join("\n") }, plan.title),
        this.note, list, enlarge),
      this.box, this.legend, this.table);
  }

  /** What the chart shows of these runs, or would show if it were on the screen; for tests. */
  held(runs: RunSeries[]): Record<string, unknown> {
    const { plan } = this;
    return {
      title: plan.title, names: plan.names, runs: runs.map((run) => run.id), drawn: this.plot !== null,
      points: runs.map((run) => run.columns[plan.names[0]]?.filter((value) => value !== null).length ?? 0),
      last: Object.fromEntries(plan.names.map((name) => [name, last(runs[0]?.columns[name])])),
      phases: runs[0]?.phases ?? [], marks: runs.flatMap((run) => marksOf(run).map((event) => event.text)),
      lines: this.lines.map(({ name, run, kind }) => ({ name, run: run.id, kind })), hidden: [...this.hidden],
      x: this.plot ? [this.plot.scales.x.min, this.plot.scales.x.max] : null, y: this.plot ? [this.plot.scales.y.min, this.plot.scales.y.max] : null,
    };
  }

  /** Draws these runs. Where the lines are the same as before, only their data is replaced. */
  draw(runs: RunSeries[]): void {
    this.runs = runs;
    const { look } = this.shared;
    const { lines, data } = lineUp(this.plan, runs, look);
    const key = JSON.stringify([lines.map((line) => [line.run.id, line.name, line.kind, line.colour]), look.log, look.time, this.phased]);
    this.lines = lines;
    if (!this.plot || key !== this.key) {
      this.key = key;
      this.make(data);
    } else {
      this.plot.setData(data);
    }
    if (!this.inside) this.caption(null);
    if (!this.table.hidden) this.drawTable();
  }

  resize(): void {
    const width = this.box.clientWidth;
    const height = this.large ? LARGE : HEIGHT;
    if (this.plot && width && (width !== this.plot.width || height !== this.plot.height)) this.plot.setSize({ width, height });
  }

  /** Draws with the colours of now. */
  remake(): void {
    if (this.plot) this.make(this.plot.data);
  }

  destroy(): void {
    this.plot?.destroy();
    this.plot = null;
  }

  private get phased(): boolean {
    return (this.runs[0]?.phases.length ?? 0) > 1;
  }

  private get band(): [number | null, number | null] | undefined {
    return this.plan.names.length === 1 ? this.shared.healthy()[this.plan.names[0]] : undefined;
  }

  /** The part of the vertical axis that the shown part of the horizontal one needs. */
  private range(data: uPlot.AlignedData): [number, number] {
    const { look } = this.shared;
    const steps = data[0];
    const shown = this.lines.flatMap((line, i) => (line.kind === "edge" || this.hidden.has(line.name) || (look.usual && line.kind === "raw") ? [] : [i + 1]));
    const values = steps.length ? valuesWithin(data, shown, this.shared.window(steps[0], steps[steps.length - 1])) : [];
    return rangeOf(values, this.plan, look, this.band);
  }

  // --- the picture ---------------------------------------------------------------------------------------------------

  private make(data: uPlot.AlignedData): void {
    this.destroy();
    this.plot = new uPlot(this.options(this.box.clientWidth || 320), data, this.box);
    const { over } = this.plot;
    over.addEventListener("dblclick", () => this.shared.reset());
    over.addEventListener("mouseenter", () => { this.inside = true; });
    over.addEventListener("mouseleave", () => this.leave());
    this.drawLegend();
  }

  private options(width: number): uPlot.Options {
    const { shared: { context, look }, plan } = this;
    const line = context.colour("--line");
    const axis = { stroke: context.colour("--quiet"), grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
    const bands = this.runs.flatMap((run) => {
      const edges = this.lines.flatMap((one, i) => (one.run === run && one.kind === "edge" ? [i + 1] : []));
      return edges.length === 2 ? [{ series: [edges[1], edges[0]] as [number, number], fill: `${run.colour}30` }] : [];
    });
    return {
      width, height: this.large ? LARGE : HEIGHT, legend: { show: false }, bands, padding: [this.phased ? PHASE_ROOM : 8, 14, 0, 0],
      cursor: {
        sync: { key: this.sync, setSeries: false, scales: ["x", null] }, drag: { x: true, y: false, setScale: false }, points: { size: 6 }, y: false,
        dataIdx: (plot, series, row) => (series ? nearest(plot.data[series] as Column, row, Math.max(3, plot.data[0].length * 0.04)) ?? row : row),
      },
      scales: {
        x: { time: false, range: (_plot, min, max) => this.shared.window(min ?? 0, max ?? 1) },
        y: { distr: look.log ? 3 : 1, range: (plot) => this.range(plot.data) },
      },
      axes: [
        { ...axis, size: 28, ...(look.time ? { incrs: [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 18000, 43200, 86400, 172800, 604800] } : {}),
          values: (_plot, values, _axis, _space, distance) => (look.time ? values.map((value) => (value ? span(value) : "0")) : ticks(values, distance)) },
        { ...axis, size: 52, values: (_plot, values, _axis, _space, distance) => (plan.share || plan.percent ? values.map((value) => (value === null ? "" : percent(value)))
          : look.log ? eachTick(values) : ticks(values, distance)) },
      ],
      series: [{}, ...this.lines.map((one) => this.series(one))],
      hooks: {
        drawClear: [(plot) => drawBehind(plot, this.decor)], draw: [(plot) => drawMarks(plot, this.decor)],
        setCursor: [(plot) => this.point(plot)], setSelect: [(plot) => this.select(plot)],
      },
    };
  }

  private series(line: Line): uPlot.Series {
    const drawn = line.kind === "line" ? line.colour : line.kind === "raw" ? `${line.colour}40` : "transparent";
    return {
      label: line.name, stroke: drawn, width: line.kind === "raw" ? 1 : 1.7, spanGaps: true, scale: "y", dash: line.dash, show: !this.hidden.has(line.name),
      // Few values, such as ratings, are points; many are only a line.
      points: { size: 5, show: (plot, at) => line.kind === "line" && (plot.data[at] as Column).reduce((sum: number, value) => sum + (value === null || value === undefined ? 0 : 1), 0) * 12 < plot.width },
    };
  }

  private get decor(): Decor {
    return { runs: this.runs, band: this.band, colour: this.shared.context.colour,
      x: (run, step) => (this.shared.look.time ? run.secondsAt(step) : step) };
  }

  private select(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 4) return;
    this.shared.zoom(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  // --- the cursor ----------------------------------------------------------------------------------------------------

  /** Says what is under the cursor: in the caption, and in a box where the pointer is. */
  private point(plot: uPlot): void {
    const { idx, left } = plot.cursor;
    if (idx === null || idx === undefined || left === undefined || left === null || left < 0) {
      this.tip.hide();
      this.caption(null);
      return;
    }
    const at = plot.data[0][idx];
    this.caption(plot.cursor.idxs ?? null);
    if (!this.inside) return this.tip.hide();
    const rows = this.lines.flatMap((line, i) => {
      const value = plot.data[i + 1]?.[plot.cursor.idxs?.[i + 1] ?? idx];
      if (line.kind === "raw" || this.hidden.has(line.name) || value === null || value === undefined) return [];
      return [{ text: this.called(line), value: this.written(value), colour: line.kind === "edge" ? "transparent" : line.colour, order: line.kind === "edge" ? -Infinity : value }];
    });
    const phase = !this.shared.look.time && this.runs[0] ? phaseAt(this.runs[0], at) : null;
    const title = [this.shared.look.time ? span(at) : `${at.toLocaleString("en")} steps`, phase && this.phased ? `phase ${phase}` : null].filter(Boolean).join(" · ");
    const offset = plot.bbox.left / devicePixelRatio;
    this.tip.show(left + offset, plot.width, title, rows, marksNear(plot, this.decor, left));
  }

  private leave(): void {
    this.inside = false;
    this.tip.hide();
    this.caption(null);
  }

  private called(line: Line): string {
    const who = this.runs.length > 1 ? line.run.title : "";
    const what = this.plan.names.length > 1 || this.plan.interval || !who ? label(line.name) : "";
    return [who, line.kind === "edge" ? (line.name.endsWith("low") ? "from" : "to") : what].filter(Boolean).join(": ");
  }

  private written(value: number): string {
    return this.plan.share || this.plan.percent ? percent(value) : short(value);
  }

  /** The value of a chart with one line, and whether it is healthy. */
  private caption(rows: (number | null)[] | null): void {
    const at = this.lines.findIndex((line) => line.kind === "line");
    if (!this.plot || this.plan.names.length > 1 || this.runs.length !== 1 || at < 0) {
      this.note.textContent = "";
      return;
    }
    const row = rows?.[at + 1];
    const value = row === null || row === undefined ? last(this.plot.data[at + 1] as Column) : this.plot.data[at + 1][row] ?? null;
    const [low, high] = this.band ?? [null, null];
    const verdict = value === null || !this.band ? "" : low !== null && value < low ? `below ${short(low)}` : high !== null && value > high ? `above ${short(high)}` : "healthy";
    const text = value === null ? "no values yet" : `${this.written(value)}${verdict ? ` · ${verdict}` : ""}`;
    if (this.note.textContent !== text) this.note.textContent = text;
    this.note.classList.toggle("warn", verdict !== "" && verdict !== "healthy");
    this.note.classList.toggle("good", verdict === "healthy");
  }

  private pressed(event: KeyboardEvent): void {
    const way = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (event.key === "Escape") this.shared.reset();
    if (!way || !this.plot) return;
    event.preventDefault();
    event.stopPropagation();
    const rows = this.plot.data[0].length;
    const now = this.inside ? this.plot.cursor.idx ?? rows - 1 : way > 0 ? -1 : rows;
    const row = Math.min(rows - 1, Math.max(0, now + way * (event.shiftKey ? Math.max(1, Math.round(rows / 20)) : 1)));
    this.inside = true;
    this.plot.setCursor({ left: this.plot.valToPos(this.plot.data[0][row], "x"), top: 20 });
  }

  // --- legend, size and table ----------------------------------------------------------------------------------------

  private drawLegend(): void {
    const { names } = this.plan;
    if (names.length < 2) return;
    replace(this.legend, ...names.map((name, i) => {
      const mark = h("i", { class: "swatch" });
      property(mark, "--swatch", PALETTE[i % PALETTE.length]);
      return h("button", { type: "button", class: "legend-button", "aria-pressed": String(!this.hidden.has(name)), title: `${name}: show or hide`,
        onclick: () => this.toggle(name) }, mark, label(name));
    }));
  }

  private toggle(name: string): void {
    if (!this.hidden.delete(name)) this.hidden.add(name);
    this.lines.forEach((line, i) => { if (line.name === name) this.plot?.setSeries(i + 1, { show: !this.hidden.has(name) }); });
    this.plot?.setData(this.plot.data);
    const place = this.plan.names.indexOf(name);
    this.legend.children[place]?.setAttribute("aria-pressed", String(!this.hidden.has(name)));
  }

  private enlarge(button: HTMLElement): void {
    this.large = !this.large;
    button.setAttribute("aria-pressed", String(this.large));
    this.element.classList.toggle("large", this.large);
    this.resize();
  }

  private toggleTable(button: HTMLElement): void {
    this.table.hidden = !this.table.hidden;
    button.setAttribute("aria-pressed", String(!this.table.hidden));
    if (!this.table.hidden) this.drawTable();
  }

  private drawTable(): void {
    if (this.plot) fillTable(this.table, this.plan.title, this.shared.look.time, this.plot.data, this.lines.map((line) => (line.kind === "raw" ? null : this.called(line))));
  }
}
