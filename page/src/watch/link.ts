// The address holds the recording, the moment and the camera: #rec=ID&t=31.5&cam=2. It is written seldom, as browsers ask for.
import type { Route } from "../context";

const EVERY_MS = 400;

export interface Place { rec: string | null; t: number | null; cam: string | null }

export class Link {
  private timer = 0;
  private last = "";

  /** `now` says where the view is; null while it is on its way there. */
  constructor(private readonly route: Route, private readonly now: () => Place | null) {}

  /** What the address says. */
  read(): Place {
    const time = this.route.get("t");
    const seconds = time === null ? NaN : Number(time);
    return { rec: this.route.get("rec"), t: Number.isFinite(seconds) ? seconds : null, cam: this.route.get("cam") };
  }

  /** Writes where the view is now, soon. */
  write(): void {
    if (!this.timer) this.timer = window.setTimeout(() => this.flush(), EVERY_MS);
  }

  flush(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    const place = this.now();
    if (!place) return;
    const { rec, t, cam } = place;
    const values = { rec, t: t === null ? null : String(Math.round(t * 100) / 100), cam };
    const text = JSON.stringify(values);
    if (text === this.last) return;
    this.last = text;
    this.route.set(values);
  }
}
