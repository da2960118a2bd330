// Which time of a live game is shown: a little behind the newest frame, so that late frames are there when they are needed.

const WINDOW = 64;
/** Frames that are always waited for: with fewer, bodies would stop between two frames. */
const FRAMES = 2;
const MOST_SECONDS = 0.4;

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
    const least = (FRAMES * interval) / speed;
    if (this.late.length < 4) return least;
    const jitter = Math.max(...this.late) - Math.min(...this.late);
    return Math.min(Math.max(least, interval / speed + jitter), Math.max(least, MOST_SECONDS));
  }

  /** The time to show, `elapsed` seconds after `shown` was. `moving`: whether more frames are to come. */
  advance(shown: number, newest: number, elapsed: number, speed: number, interval: number, moving: boolean): number {
    if (!moving) return Math.min(newest, shown + elapsed * Math.max(speed, 1));
    const behind = (newest - shown) / speed - this.wanted(interval, speed);
    if (behind > 1) return newest - this.wanted(interval, speed) * speed;
    const rate = 1 + Math.max(-0.3, Math.min(0.3, 2 * behind));
    return Math.min(newest, Math.max(shown, shown + elapsed * speed * rate));
  }
}
