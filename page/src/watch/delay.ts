// Which time of a live game is shown: a little behind the newest frame, so that late frames are there when they are needed.

const WINDOW = 64;
/** Frames that are always waited for: with fewer, bodies would stop between two frames. */
const FRAMES = 2;
const MOST_SECONDS = 0.4;
/** At high speeds frames are close together; this is about two pictures of a display. */
const LEAST_SECONDS = 0.03;

/** Follows the newest frame smoothly. The delay adapts to how irregularly frames arrive. All times are in seconds. */
export class Delay {
  private readonly late: number[] = [];
  private base = 0;

  /** Forgets what it knows about arrivals: another game, or another speed. */
  reset(): void {
    this.late.length = 0;
  }

  /** A frame of this time of the game has arrived now. */
  arrived(time: number, now: number, speed: number): void {
    const due = time / speed;
    if (!this.late.length) this.base = now - due;
    this.late.push(now - due - this.base);
    if (this.late.length > WINDOW) this.late.shift();
  }

  /** Seconds of the clock by which the picture is behind the newest frame. */
  wanted(interval: number, speed: number): number {
    const least = Math.max((FRAMES * interval) / speed, LEAST_SECONDS);
    if (this.late.length < 4) return least;
    const jitter = Math.max(...this.late) - Math.min(...this.late);
    return Math.min(Math.max(least, interval / speed + jitter), Math.max(least, MOST_SECONDS));
  }

  /** The time to show, `elapsed` seconds after `shown` was. `moving`: whether more frames are to come. */
  advance(shown: number, newest: number, elapsed: number, speed: number, interval: number, moving: boolean): number {
    if (!moving) return Math.min(newest, shown + elapsed * Math.max(speed, 1));
    const behind = (newest - shown) / speed - this.wanted(interval, speed);
    if (behind > 1) return newest - this.wanted(interval, speed) * speed;
    // Where frames are far apart, the distance to the newest one jumps with every frame, and must not be followed closely.
    const rate = 1 + Math.max(-0.3, Math.min(0.3, Math.min(2, (0.1 * speed) / interval) * behind));
    return Math.min(newest, Math.max(shown, shown + elapsed * speed * rate));
  }
}
