// The metrics of one run as they arrive: rows are added, smoothed, and put against steps or training time.
import type { Api, Metrics } from "../api";

export const POINTS = 1500;
/** Rows past this number are thinned by asking for the whole run again. */
const MOST = 2 * POINTS;

type Column = (number | null)[];

export class RunSeries {
  names: string[] = [];
  steps: number[] = [];
  columns: Record<string, Column> = {};
  phases: Metrics["phases"] = [];
  events: Metrics["events"] = [];
  private asked = new Set<string>();

  constructor(readonly id: string, readonly title: string, readonly colour: string) {}

  /** Asks for these metrics; later calls ask only for what is new. True if something has changed. */
  async load(api: Api, wanted: string[]): Promise<boolean> {
    const names = [...new Set([...wanted, "time/steps_per_second"])];
    const whole = !this.steps.length || this.steps.length > MOST || names.some((name) => !this.asked.has(name));
    if (whole) {
      const answer = await api.metrics(this.id, { names, points: POINTS });
      this.take(answer, names);
      return true;
    }
    const last = this.steps[this.steps.length - 1];
    const answer = await api.metrics(this.id, { names, points: POINTS, after: last });
    const rows = answer.steps.map((step, row) => ({ step, row })).filter(({ step }) => step > last);
    const other = answer.events.length !== this.events.length || answer.phases.length !== this.phases.length;
    this.events = answer.events;
    this.phases = answer.phases;
    for (const { step, row } of rows) {
      this.steps.push(step);
      for (const name of names) (this.columns[name] ??= []).push(answer.columns[name]?.[row] ?? null);
    }
    return rows.length > 0 || other;
  }

  /** Forgets what was read: a run that was killed and resumed writes its last steps anew. */
  forget(): void {
    this.steps = [];
  }

  private take(answer: Metrics, names: string[]): void {
    this.names = answer.names;
    this.steps = [...answer.steps];
    this.columns = Object.fromEntries(names.map((name) => [name, [...(answer.columns[name] ?? answer.steps.map(() => null))]]));
    this.phases = answer.phases;
    this.events = answer.events;
    this.asked = new Set(names);
  }

  /** Hours of training at each row, from the steps per second; pauses between sittings do not count. */
  hours(): number[] {
    const rate = this.columns["time/steps_per_second"] ?? [];
    let sum = 0;
    let known = rate.find((value) => value) ?? 1;
    return this.steps.map((step, row) => {
      known = rate[row] || known;
      sum += (step - (row ? this.steps[row - 1] : 0)) / known / 3600;
      return sum;
    });
  }

  /** Hours of training at a step. */
  hoursAt(step: number): number {
    const hours = this.hours();
    const row = this.steps.findIndex((one) => one >= step);
    return hours.length ? hours[row < 0 ? hours.length - 1 : row] : 0;
  }
}

/** Each term as its signed share of the sum of all sizes in the row. */
export function shares(columns: Column[]): Column[] {
  const rows = columns[0]?.length ?? 0;
  const sums = Array.from({ length: rows }, (_, row) => columns.reduce((sum, column) => sum + Math.abs(column[row] ?? 0), 0));
  return columns.map((column) => column.map((value, row) => (value === null || !sums[row] ? null : value / sums[row])));
}

/** An exponential mean without a bias at the beginning; `weight` 0 changes nothing. Missing values stay missing. */
export function smooth(column: Column, weight: number): Column {
  if (!weight) return column;
  let mean = 0;
  let sum = 0;
  return column.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    sum = weight * sum + (1 - weight);
    return mean / sum;
  });
}
