// Ratings over steps: a line with its intervals for each run, and fixed players as level lines with their names.
import uPlot from "uplot";
import type { Ladder, Rated } from "../api";
import type { Context } from "../context";
import { h, property, replace } from "../dom";
import { nearest } from "../run/columns";
import { Tip } from "../run/tip";
import { ticks } from "../words";
import { fixedPlayers, inWords, shortName } from "./versions";

const HEIGHT = 340;
/** Intervals are drawn this far beyond all ratings: those of a bot that only loses reach far into nothing. */
const REACH = 350;
const NAME_HEIGHT = 13;

export interface Curve { title: string; colour: string; points: ({ steps: number } & Rated)[] }

export class RatingChart {
  readonly element: HTMLElement;
  private readonly box = h("div", { class: "chart-box rating-box", tabindex: 0, role: "group", "aria-label": "Ratings over steps: arrow keys move the cursor",
    onkeydown: (event: Event) => this.pressed(event as KeyboardEvent), onblur: () => this.leave() });
  private readonly legend = h("div", { class: "row chart-legend" });
  private readonly whole = h("button", { class: "button small-button", type: "button", hidden: true, onclick: () => this.reset() }, "Zoom out");
  private readonly tip = new Tip();
  private plot: uPlot | null = null;
  private curves: Curve[] = [];
  private fixed: ({ player: string } & Rated)[] = [];
  private made = "";
  private zoomed: [number, number] | null = null;
  private inside = false;

  constructor(private readonly context: Context) {
    this.element = h("figure", { class: "card chart ladder-chart", "aria-label": "Ratings over steps" },
      h("figcaption", null, h("h2", { class: "grow" }, "Rating over steps"), this.whole), this.box, this.legend);
    this.box.append(this.tip.element);
    context.themed(() => this.draw(true));
    new ResizeObserver(() => {
      const width = this.box.clientWidth;
      if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
    }).observe(this.box);
  }

  /** `ladder` says who the fixed players are. */
  show(ladder: Ladder, curves: Curve[]): void {
    this.curves = curves.filter((curve) => curve.points.length);
    this.fixed = fixedPlayers(ladder);
    this.draw();
  }

  clear(): void {
    this.plot?.destroy();
    this.plot = null;
    this.made = "";
    this.zoomed = null;
  }

  private draw(anew = false): void {
    if (!this.curves.length || !this.box.clientWidth) return;
    const made = JSON.stringify([this.curves.map((curve) => [curve.title, curve.colour]), this.fixed.map(({ player }) => player)]);
    if (anew || !this.plot || made !== this.made) {
      this.made = made;
      this.plot?.destroy();
      this.plot = new uPlot(this.options(), this.data(), this.box);
      const { over } = this.plot;
      over.addEventListener("dblclick", () => this.reset());
      over.addEventListener("mouseenter", () => { this.inside = true; });
      over.addEventListener("mouseleave", () => this.leave());
      this.drawLegend();
    } else {
      this.plot.setData(this.data());
    }
    this.whole.hidden = this.zoomed === null;
  }

  private data(): uPlot.AlignedData {
    const tables = this.curves.map(({ points }) => [points.map(({ steps }) => steps), points.map(({ value }) => value)] as uPlot.AlignedData);
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  private options(): uPlot.Options {
    const { context } = this;
    const line = context.colour("--line");
    const axis = { stroke: context.colour("--quiet"), grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
    return {
      width: this.box.clientWidth, height: HEIGHT, legend: { show: false }, padding: [10, 14, 0, 0],
      cursor: { drag: { x: true, y: false, setScale: false }, y: false, points: { size: 8 },
        dataIdx: (plot, series, row) => (series ? nearest(plot.data[series] as number[], row, plot.data[0].length) ?? row : row) },
      scales: { x: { time: false, range: (_plot, min, max) => this.zoomed ?? (min === max ? [min - 1, max + 1] : [min, max]) }, y: { range: () => this.range() } },
      axes: [{ ...axis, size: 28, values: (_plot, values, _a, _s, distance) => ticks(values, distance) }, { ...axis, size: 48, values: (_plot, values, _a, _s, distance) => ticks(values, distance) }],
      series: [{}, ...this.curves.map((curve) => ({ label: curve.title, stroke: curve.colour, width: 2, spanGaps: true, points: { show: curve.points.length < 120, size: 6, fill: curve.colour } }))],
      hooks: { drawClear: [(plot) => this.behind(plot)], setCursor: [(plot) => this.point(plot)], setSelect: [(plot) => {
        const { left, width } = plot.select;
        if (width < 4) return;
        this.zoomed = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
        plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        this.draw();
      }] },
    };
  }

  private range(): [number, number] {
    const [from, to] = this.zoomed ?? [-Infinity, Infinity];
    const points = this.curves.flatMap((curve) => curve.points.filter(({ steps }) => steps >= from && steps <= to));
    const values = [...points, ...this.fixed].map(({ value }) => value);
    if (!values.length) return [0, 2000];
    const least = values.reduce((a, b) => Math.min(a, b));
    const most = values.reduce((a, b) => Math.max(a, b));
    const low = points.reduce((a, { low: one }) => Math.min(a, one), least);
    const high = points.reduce((a, { high: one }) => Math.max(a, one), most);
    return [Math.max(low, least - REACH) - 40, Math.min(high, most + REACH) + 60];
  }

  private reset(): void {
    this.zoomed = null;
    this.draw();
  }

  /** Intervals of the runs, and the levels of fixed players. */
  private behind(plot: uPlot): void {
    const { ctx, bbox: box } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.left, box.top, box.width, box.height);
    ctx.clip();
    for (const curve of this.curves) this.intervals(plot, curve);
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.textBaseline = "alphabetic";
    ctx.lineWidth = ratio;
    const used: number[] = [];
    for (const { player, value } of [...this.fixed].sort((a, b) => b.value - a.value)) {
      const y = Math.round(plot.valToPos(value, "y", true)) + 0.5;
      ctx.strokeStyle = this.context.colour("--faint");
      ctx.setLineDash([6 * ratio, 4 * ratio]);
      ctx.beginPath();
      ctx.moveTo(box.left, y);
      ctx.lineTo(box.left + box.width, y);
      ctx.stroke();
      // Names of players of about the same strength stand below each other.
      let at = y - 4 * ratio;
      while (used.some((other) => Math.abs(other - at) < NAME_HEIGHT * ratio)) at += NAME_HEIGHT * ratio;
      used.push(at);
      ctx.fillStyle = this.context.colour("--quiet");
      ctx.fillText(`${shortName(player)} ${Math.round(value)}`, box.left + box.width - 6 * ratio, at);
    }
    ctx.restore();
  }

  private intervals(plot: uPlot, curve: Curve): void {
    const { ctx } = plot;
    const at = curve.points.map(({ steps, low, high }) => ({ x: plot.valToPos(steps, "x", true), low: plot.valToPos(low, "y", true), high: plot.valToPos(high, "y", true) }));
    ctx.setLineDash([]);
    ctx.fillStyle = `${curve.colour}24`;
    ctx.beginPath();
    at.forEach(({ x, high }, i) => (i ? ctx.lineTo(x, high) : ctx.moveTo(x, high)));
    [...at].reverse().forEach(({ x, low }) => ctx.lineTo(x, low));
    ctx.fill();
    if (at.length > 60) return;
    ctx.strokeStyle = `${curve.colour}60`;
    ctx.lineWidth = devicePixelRatio;
    for (const { x, low, high } of at) {
      ctx.beginPath();
      ctx.moveTo(x, low);
      ctx.lineTo(x, high);
      ctx.stroke();
    }
  }

  private point(plot: uPlot): void {
    const { idx, left } = plot.cursor;
    if (!this.inside || idx === null || idx === undefined || left === undefined || left < 0) {
      this.tip.hide();
      return;
    }
    const rows = this.curves.flatMap((curve, i) => {
      const steps = plot.data[0][plot.cursor.idxs?.[i + 1] ?? idx];
      const found = curve.points.find((one) => one.steps === steps);
      return found ? [{ text: `${curve.title}@${found.steps.toLocaleString("en")}`, value: inWords(found), colour: curve.colour, order: found.value }] : [];
    });
    this.tip.show(left + plot.bbox.left / devicePixelRatio, plot.width, `${plot.data[0][idx].toLocaleString("en")} steps`, rows, []);
  }

  private leave(): void {
    this.inside = false;
    this.tip.hide();
  }

  private pressed(event: KeyboardEvent): void {
    const way = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (event.key === "Escape") this.reset();
    if (!way || !this.plot) return;
    event.preventDefault();
    const rows = this.plot.data[0].length;
    const row = Math.min(rows - 1, Math.max(0, (this.inside ? this.plot.cursor.idx ?? rows - 1 : way > 0 ? -1 : rows) + way));
    this.inside = true;
    this.plot.setCursor({ left: this.plot.valToPos(this.plot.data[0][row], "x"), top: 20 });
  }

  private drawLegend(): void {
    replace(this.legend, ...this.curves.map(({ title, colour }) => {
      const mark = h("i", { class: "swatch" });
      property(mark, "--swatch", colour);
      return h("span", { class: "chip" }, mark, title);
    }), h("span", { class: "quiet small" }, "Shaded: 95 % intervals. Dashed: players that do not change. Drag to zoom."));
  }
}
