// What a car's policy expected and what it was paid, frame by frame: read once, and then only what is new.
import type { Recording } from "../recording";

/** Frames beyond which the oldest half is forgotten. */
const MOST = 40_000;

export class Track {
  private readonly valueField: string | null;
  private readonly rewardField: string | null;
  private readonly terms: number;
  private readonly valueAt: number;
  private readonly rewardAt: number;
  /** Steps that a frame stands for: those of walks are recorded now and then, and stand for those between. */
  private readonly each: number;
  private values: number[] = [];
  /** [frames, terms]: what was paid up to and with each frame. */
  private sums: number[] = [];
  /** The number of the first frame that is held, counted from the beginning of the recording. */
  private first: number;
  least = Infinity;
  most = -Infinity;

  constructor(readonly recording: Recording, readonly car: number) {
    const walk = recording.header.kind === "walk";
    this.valueField = ["cars.value", "value"].find((name) => recording.has(name)) ?? null;
    this.rewardField = ["cars.reward", "reward"].find((name) => recording.has(name)) ?? null;
    this.terms = this.rewardField ? recording.shape(this.rewardField)?.slice(-1)[0] ?? 0 : 0;
    this.valueAt = walk ? 0 : car;
    this.rewardAt = walk ? 0 : car * this.terms;
    this.each = walk ? recording.header.ticks_per_frame : 1;
    this.first = recording.dropped;
    this.update();
  }

  get hasValue(): boolean {
    return this.valueField !== null;
  }

  get hasRewards(): boolean {
    return this.rewardField !== null && this.terms > 0;
  }

  /** Reads the frames that came since the last call. */
  update(): void {
    const { recording } = this;
    const begin = Math.max(0, this.first + this.values.length - recording.dropped);
    for (let frame = begin; frame < recording.frames; frame++) {
      const value = this.valueField ? recording.number(this.valueField, frame, this.valueAt, NaN) : NaN;
      this.values.push(value);
      if (value < this.least) this.least = value;
      if (value > this.most) this.most = value;
      const before = this.sums.length - this.terms;
      for (let term = 0; term < this.terms; term++) {
        const paid = recording.number(this.rewardField!, frame, this.rewardAt + term) * this.each;
        this.sums.push((before >= 0 ? this.sums[before + term] : 0) + (Number.isFinite(paid) ? paid : 0));
      }
    }
    if (this.values.length > MOST) this.forget(MOST / 2);
  }

  private forget(frames: number): void {
    this.values.splice(0, frames);
    this.sums.splice(0, frames * this.terms);
    this.first += frames;
  }

  /** The value at a frame of the recording; NaN where it is not known. */
  value(frame: number): number {
    return this.values[frame + this.recording.dropped - this.first] ?? NaN;
  }

  /** What each term paid up to a frame. */
  paid(frame: number): number[] {
    const row = Math.min(frame + this.recording.dropped - this.first, this.values.length - 1);
    return row < 0 ? new Array<number>(this.terms).fill(0) : this.sums.slice(row * this.terms, (row + 1) * this.terms);
  }

  /** What each term paid between two frames. */
  paidBetween(from: number, to: number): number[] {
    const before = this.paid(from);
    return this.paid(to).map((sum, term) => sum - before[term]);
  }
}
