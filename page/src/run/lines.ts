// Which lines a chart has, and which part of its vertical axis they need.
import uPlot from "uplot";
import { DASHES, PALETTE } from "./colours";
import { positive, shares, smooth, usual } from "./columns";
import type { ChartPlan } from "./groups";
import type { Column, RunSeries } from "./series";

export interface Look { smoothing: number; log: boolean; time: boolean; usual: boolean }

/** "raw": what is behind a smoothed line. "edge": an end of an interval, which is not drawn itself. */
export interface Line { run: RunSeries; name: string; kind: "line" | "raw" | "edge"; colour: string; dash?: number[] }

/** All metrics of all runs on one axis, those behind others first. */
export function lineUp(plan: ChartPlan, runs: RunSeries[], look: Look): { lines: Line[]; data: uPlot.AlignedData } {
  const several = plan.names.length > 1;
  const lines: Line[] = [];
  const tables = runs.map((run, place) => {
    const of = (names: readonly string[]) => names.map((name) => run.columns[name] ?? run.steps.map(() => null));
    const raw = plan.share ? shares(of(plan.names)) : of(plan.names);
    const columns: Column[] = [];
    const add = (kind: Line["kind"], names: readonly string[], values: Column[]) => names.forEach((name, i) => {
      lines.push({ run, name, kind, colour: several ? PALETTE[i % PALETTE.length] : run.colour, dash: several ? DASHES[place % DASHES.length] : undefined });
      columns.push(look.log ? positive(values[i]) : values[i]);
    });
    if (look.smoothing && !plan.share) add("raw", plan.names, raw);
    if (plan.interval) add("edge", plan.interval, of(plan.interval).map((column) => smooth(column, look.smoothing)));
    add("line", plan.names, raw.map((column) => smooth(column, look.smoothing)));
    return [look.time ? run.seconds() : run.steps, ...columns] as uPlot.AlignedData;
  });
  return { lines, data: tables.length === 1 ? tables[0] : tables.length ? uPlot.join(tables) : [[]] };
}

/** The values of columns in a part of the axis. */
export function valuesWithin(data: uPlot.AlignedData, columns: number[], [min, max]: [number, number]): number[] {
  const steps = data[0];
  const found: number[] = [];
  for (const column of columns) {
    for (let row = 0; row < steps.length; row++) {
      const value = data[column][row];
      if (value !== null && value !== undefined && steps[row] >= min && steps[row] <= max) found.push(value);
    }
  }
  return found;
}

/** The part of the vertical axis that these values need. */
export function rangeOf(values: number[], plan: ChartPlan, look: Look, band: [number | null, number | null] | undefined): [number, number] {
  let [min, max] = (look.usual ? usual(values) : ends(values)) ?? [0, 1];
  if (look.log) return uPlot.rangeLog(min > 0 ? min : 1e-3, max > 0 ? max : 1, 10, false) as [number, number];
  if (plan.percent && !look.usual) [min, max] = [Math.min(min, 0), Math.max(max, 1)];
  // An interval may be far wider than what is known about the line, which would then be flat.
  if (plan.interval) [min, max] = [min - 150, max + 150];
  // The nearer end of the healthy band is shown, unless the line would become flat.
  for (const end of band ?? []) {
    if (end === null) continue;
    const reach = 1.5 * (max - min || Math.abs(max) || 1);
    if (end < min && min - end < reach) min = end;
    if (end > max && end - max < reach) max = end;
  }
  if (min === max) [min, max] = min === 0 ? [-0.5, 1] : [min - Math.abs(min) / 2, max + Math.abs(max) / 2];
  return uPlot.rangeNum(min, max, 0.06, true) as [number, number];
}

/** Without spreading: a call has no room for so many arguments. */
function ends(values: number[]): [number, number] | null {
  return values.length ? [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))] : null;
}
