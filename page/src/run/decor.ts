// What is drawn around the lines of a chart: phases, the healthy band, and marks where something was done to the run.
import type uPlot from "uplot";
import type { RunEvent } from "../api";
import type { RunSeries } from "./series";

/** Room above the lines for the names of phases, in CSS pixels. */
export const PHASE_ROOM = 16;

export interface Decor {
  runs: RunSeries[];
  band: [number | null, number | null] | undefined;
  x(run: RunSeries, step: number): number;
  colour(variable: string): string;
}

/** Changes that are marks: those of phases are drawn as phases. */
export function marksOf(run: RunSeries): RunEvent[] {
  return run.events.filter((event) => event.step !== null && event.key !== "phase");
}

/** Phases of the first run, and the healthy band. */
export function drawBehind(plot: uPlot, decor: Decor): void {
  const { ctx, bbox: box } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.left, 0, box.width, box.top + box.height);
  ctx.clip();
  if (decor.band) {
    const [from, to] = decor.band;
    const low = from === null ? box.top + box.height : clamped(plot, from);
    const high = to === null ? box.top : clamped(plot, to);
    ctx.globalAlpha = 0.14;
    ctx.fillStyle = decor.colour("--good");
    ctx.fillRect(box.left, high, box.width, low - high);
  }
  const run = decor.runs[0];
  const phases = run && run.phases.length > 1 ? run.phases : [];
  ctx.font = `${10.5 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  phases.forEach((phase, i) => {
    const left = Math.max(box.left, plot.valToPos(decor.x(run, phase.step), "x", true));
    const next = phases[i + 1];
    const right = next ? Math.min(box.left + box.width, plot.valToPos(decor.x(run, next.step), "x", true)) : box.left + box.width;
    if (right <= left) return;
    ctx.globalAlpha = i % 2 ? 0.1 : 0.04;
    ctx.fillStyle = decor.colour("--accent");
    ctx.fillRect(left, box.top, right - left, box.height);
    ctx.globalAlpha = 1;
    ctx.fillStyle = decor.colour("--line");
    if (i) ctx.fillRect(Math.round(left), box.top - (PHASE_ROOM - 4) * ratio, ratio, box.height + (PHASE_ROOM - 4) * ratio);
    ctx.fillStyle = decor.colour("--quiet");
    const room = right - left - 8 * ratio;
    const name = [phase.name, phase.name.split(" ")[0]].find((text) => ctx.measureText(text).width < room);
    if (name) ctx.fillText(name, left + 4 * ratio, box.top - 4 * ratio);
  });
  ctx.restore();
}

/** Dashed lines with a flag. */
export function drawMarks(plot: uPlot, decor: Decor): void {
  const { ctx, bbox: box } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.setLineDash([3 * ratio, 3 * ratio]);
  ctx.lineWidth = ratio;
  for (const run of decor.runs) {
    ctx.strokeStyle = ctx.fillStyle = decor.runs.length > 1 ? run.colour : decor.colour("--warn");
    for (const event of marksOf(run)) {
      const x = Math.round(plot.valToPos(decor.x(run, event.step!), "x", true));
      if (x < box.left || x > box.left + box.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, box.top);
      ctx.lineTo(x, box.top + box.height);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(x, box.top);
      ctx.lineTo(x + 6 * ratio, box.top + 3 * ratio);
      ctx.lineTo(x, box.top + 6 * ratio);
      ctx.fill();
    }
  }
  ctx.restore();
}

/** What was done near a place on the axis, in CSS pixels from the left of the plot. */
export function marksNear(plot: uPlot, decor: Decor, left: number, reach = 6): RunEvent[] {
  return decor.runs.flatMap((run) => marksOf(run).filter((event) => Math.abs(plot.valToPos(decor.x(run, event.step!), "x") - left) <= reach));
}

/** The phase of a run at a step. */
export function phaseAt(run: RunSeries, step: number): string | null {
  let name: string | null = null;
  for (const phase of run.phases) if (phase.step <= step) name = phase.name;
  return name;
}

function clamped(plot: uPlot, value: number): number {
  const { min, max } = plot.scales.y;
  if (min === undefined || max === undefined || min === null || max === null) return plot.bbox.top;
  return plot.valToPos(Math.min(Math.max(value, min), max), "y", true);
}
