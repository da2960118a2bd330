// The metrics of one run as they arrive: rows are added, and put against steps or training time.
import type { Api, Metrics } from "../api";

export const POINTS = 1500;
/** Rows past this number are thinned by asking for the whole run again. */
const MOST = 2 * POINTS;
const RATE = "time/steps_per_second";

export type Column = (number | null)[];

export class RunSeries {
  names: string[] = [];
  steps: number[] = [];
  columns: Record<string, Column> = {};
  phases: Metrics["phases"] = [];
  events: Metrics["events"] = [];
  private asked = new Set<string>();
  private edition: number | null = null;
  private clock: number[] | null = null;

  /** Set anew whenever other runs are chosen: it tells them apart in few letters. */
  title = "";

  constructor(readonly id: string, readonly colour: string) {}

  /** Asks for the metrics that `wanted` chooses among all names; later calls ask only for what is new. */
  async load(api: Api, wanted: (names: string[]) => string[]): Promise<void> {
    if (!this.names.length) this.names = (await api.metrics(this.id, { names: [RATE], points: 1 })).names;
    const names = [...new Set([...wanted(this.names), RATE])].filter((name) => this.names.includes(name));
    const whole = !this.steps.length || this.steps.length > MOST || names.some((name) => !this.asked.has(name));
    const last = this.steps[this.steps.length - 1];
    const answer = await api.metrics(this.id, whole ? { names, points: POINTS } : { names: [...this.asked], points: POINTS, after: last });
    // A run that was killed and resumed writes its last steps anew, and the server then says another edition.
    if (whole) this.take(answer, names);
    else if ((answer.edition ?? null) !== this.edition) this.take(await api.metrics(this.id, { names, points: POINTS }), names);
    else this.add(answer, last);
    this.clock = null;
  }

  private take(answer: Metrics, names: string[]): void {
    this.names = answer.names;
    this.edition = answer.edition ?? null;
    this.steps = [...answer.steps];
    this.columns = Object.fromEntries(names.map((name) => [name, [...(answer.columns[name] ?? answer.steps.map(() => null))]]));
    this.phases = answer.phases;
    this.events = answer.events;
    this.asked = new Set(names);
  }

  private add(answer: Metrics, last: number): void {
    this.names = answer.names;
    this.events = answer.events;
    this.phases = answer.phases;
    answer.steps.forEach((step, row) => {
      if (step <= last) return;
      this.steps.push(step);
      for (const name of this.asked) this.columns[name].push(answer.columns[name]?.[row] ?? null);
    });
  }

  /** Seconds of training at each row, from the steps per second; pauses between sittings do not count. */
  seconds(): number[] {
    if (this.clock) return this.clock;
    const rate = this.columns[RATE] ?? [];
    let sum = 0;
    let known = rate.find((value) => value) ?? 1;
    return this.clock = this.steps.map((step, row) => {
      known = rate[row] || known;
      return sum += (step - (row ? this.steps[row - 1] : 0)) / known;
    });
  }

  /** Seconds of training at a step. */
  secondsAt(step: number): number {
    const seconds = this.seconds();
    const row = this.steps.findIndex((one) => one >= step);
    return seconds.length ? seconds[row < 0 ? seconds.length - 1 : row] : 0;
  }
}
