// The picture: a canvas that fills its place and is drawn only while something moves. Without WebGL a sentence stands there.
import { h } from "../dom";
import type { Moment } from "../recording";
import { Stage } from "../scene/stage";

const NO_WEBGL = "This browser has no WebGL, so the game cannot be drawn. Score, timeline and everything else still work. Switch on hardware acceleration, or open this address in another browser.";

/** Seconds between two pictures that look jerky. */
const SLOW = 0.04;

export interface PictureSource {
  /** Lets so many seconds pass and says what is shown then; null: nothing. */
  advance(elapsed: number): Moment | null;
  /** How fast the time of the picture passes, for cameras. */
  rate(): number;
  /** A moment is drawn. */
  drawn(moment: Moment): void;
  /** Whether the next picture will be another one. */
  moves(): boolean;
}

export class Picture {
  readonly element: HTMLElement;
  readonly stage: Stage | null;
  private shown = false;
  private scheduled = 0;
  private last = 0;
  private slow = 0;
  private overlay: HTMLElement | null = null;
  private readonly overlays = h("div", { class: "overlays" });

  constructor(dark: boolean, private readonly source: PictureSource) {
    this.element = h("div", { class: "picture" });
    this.stage = makeStage(dark);
    if (this.stage) {
      const { canvas } = this.stage;
      canvas.tabIndex = 0;
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", "The game in 3D");
      canvas.addEventListener("webglcontextrestored", () => this.request());
      this.element.append(canvas, this.overlays);
      new ResizeObserver(() => this.resize()).observe(this.element);
    } else {
      this.element.append(h("p", { class: "no-webgl", role: "alert" }, NO_WEBGL), this.overlays);
    }
    document.addEventListener("visibilitychange", () => this.request());
  }

  /** Draws from now on, or stops. */
  show(shown: boolean): void {
    this.shown = shown;
    this.last = 0;
    if (shown) this.request();
  }

  /** Draws a picture soon. */
  request(): void {
    if (this.scheduled || !this.shown || document.hidden) return;
    this.scheduled = requestAnimationFrame((now) => this.draw(now));
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.element;
    if (!clientWidth || !clientHeight) return;
    this.stage?.resize(clientWidth, clientHeight);
    this.drawNow();  // At once: a canvas is empty after it was resized.
  }

  private drawNow(): void {
    const moment = this.source.advance(0);
    if (moment && this.shown) this.stage?.draw(moment, 0);
    this.request();
  }

  private draw(now: number): void {
    this.scheduled = 0;
    if (!this.shown || document.hidden) return;
    const elapsed = this.last ? Math.min((now - this.last) / 1000, 0.25) : 0;
    this.last = now;
    this.judge(elapsed);
    const moment = this.source.advance(elapsed);
    let turns = false;
    if (moment) {
      turns = this.stage?.draw(moment, elapsed * Math.max(1, this.source.rate())) ?? false;
      this.mountOverlay();
      this.source.drawn(moment);
    }
    if (turns || this.source.moves()) this.request();
    else this.last = 0;
  }

  /** Pictures that come too slowly again and again are drawn less finely. */
  private judge(elapsed: number): void {
    this.slow = elapsed > SLOW ? this.slow + 1 : Math.max(0, this.slow - 2);
    if (this.slow < 40) return;
    this.slow = 0;
    this.stage?.simplify();
  }

  /** HTML of the scene, such as the depth image of a robot, lies over the picture. */
  private mountOverlay(): void {
    const overlay = this.stage?.kind?.overlay ?? null;
    if (overlay === this.overlay) return;
    this.overlay?.remove();
    this.overlay = overlay;
    if (overlay) this.overlays.append(overlay);
  }
}

function makeStage(dark: boolean): Stage | null {
  try {
    return new Stage(dark);
  } catch {
    return null;
  }
}
