// A time in a recording: two frames and how far between them it is.
import type { Recording } from "./recording";

/** A time in a recording. Bodies move between frames along cubic curves through positions and velocities. */
export class Moment {
  constructor(
    readonly recording: Recording,
    readonly frame: number,
    readonly next: number,
    readonly fraction: number,
    readonly gap: number,
    readonly time: number,
  ) {}

  /** All values of a field as they were at the frame before. */
  read(name: string): number[] {
    return this.recording.read(name, this.frame);
  }

  number(name: string, index = 0, missing = 0): number {
    return this.recording.number(name, this.frame, index, missing);
  }

  /** Whether body `index` jumped (kick-off, demolition, placed by hand): then nothing is interpolated. */
  jumped(position: string, velocity: string | null, index: number, reach: number): boolean {
    if (this.frame === this.next) return false;
    let square = 0;
    let speed = 0;
    for (let axis = 0; axis < 3; axis++) {
      const at = 3 * index + axis;
      square += (this.recording.number(position, this.next, at) - this.number(position, at)) ** 2;
      if (velocity) speed += Math.max(Math.abs(this.number(velocity, at)), Math.abs(this.recording.number(velocity, this.next, at)));
    }
    return Math.sqrt(square) > speed * this.gap * 1.5 + reach;
  }

  /** Position `index` of a field [.., 3], on the cubic curve given by the velocities. */
  point(position: string, velocity: string | null, index: number, reach: number, out: number[]): number[] {
    const t = this.jumped(position, velocity, index, reach) ? 0 : this.fraction;
    const curved = velocity !== null && this.recording.has(velocity);
    const h1 = t * t * (3 - 2 * t);
    const h2 = t * (1 - t) * (1 - t) * this.gap;
    const h3 = t * t * (t - 1) * this.gap;
    for (let axis = 0; axis < 3; axis++) {
      const at = 3 * index + axis;
      const from = this.number(position, at);
      const to = this.recording.number(position, this.next, at);
      if (curved) {
        out[axis] = from + (to - from) * h1 + this.number(velocity, at) * h2 + this.recording.number(velocity, this.next, at) * h3;
      } else {
        out[axis] = from + (to - from) * t;
      }
    }
    return out;
  }

  /** Quaternion `index` of a field [.., 4], on the shorter arc; the order of its parts does not matter. */
  turn(name: string, index: number, out: number[], still = false): number[] {
    const t = still ? 0 : this.fraction;
    let dot = 0;
    for (let part = 0; part < 4; part++) {
      dot += this.number(name, 4 * index + part) * this.recording.number(name, this.next, 4 * index + part);
    }
    const sign = dot < 0 ? -1 : 1;
    const angle = Math.acos(Math.min(Math.abs(dot), 1));
    const sine = Math.sin(angle);
    const a = sine > 1e-4 ? Math.sin((1 - t) * angle) / sine : 1 - t;
    const b = (sine > 1e-4 ? Math.sin(t * angle) / sine : t) * sign;
    let square = 0;
    for (let part = 0; part < 4; part++) {
      out[part] = a * this.number(name, 4 * index + part) + b * this.recording.number(name, this.next, 4 * index + part);
      square += out[part] ** 2;
    }
    const length = Math.sqrt(square) || 1;
    for (let part = 0; part < 4; part++) out[part] /= length;
    return out;
  }

  /** Value `index` of a field on the straight line between the frames. */
  line(name: string, index = 0, missing = 0): number {
    const from = this.number(name, index, missing);
    return from + (this.recording.number(name, this.next, index, missing) - from) * this.fraction;
  }
}
