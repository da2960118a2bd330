// The timeline: a slider over the time of a recording, with marks of what happened to click.
import { clock, h, property, replace } from "../dom";
import { leadTo, Marks, type Mark } from "./marks";
import type { Player } from "./player";

export class Timeline {
  readonly element: HTMLElement;
  readonly marks = new Marks();
  private readonly track: HTMLElement;
  private readonly layer = h("div", { class: "marks" });
  private readonly played = h("div", { class: "played" });
  private readonly thumb = h("div", { class: "thumb" });
  private readonly tip = h("div", { class: "tip", hidden: true });
  private shown = "";
  private ranged = "";
  private marked = 0;

  /** `seek` is called with times that the user chooses. */
  constructor(private readonly player: Player, private readonly seek: (time: number) => void) {
    this.track = h("div", {
      class: "track", role: "slider", tabindex: 0, "aria-label": "Time", "aria-valuemin": 0,
      onpointerdown: (event: PointerEvent) => this.hold(event),
      onpointermove: (event: PointerEvent) => this.point(event),
      onpointerleave: () => (this.tip.hidden = true),
    }, h("div", { class: "rail" }, this.played), this.layer, this.thumb);
    this.element = h("div", { class: "timeline" }, this.track, this.tip);
  }

  /** Seconds at a place of the page. */
  private timeAt(x: number): number {
    const box = this.track.getBoundingClientRect();
    const { start, span } = this.range();
    return start + Math.min(Math.max((x - box.left) / box.width, 0), 1) * span;
  }

  private range(): { start: number; span: number } {
    const start = this.player.recording?.start ?? 0;
    return { start, span: Math.max(this.player.duration - start, 1e-3) };
  }

  private hold(event: PointerEvent): void {
    if (event.button !== 0 || !this.player.recording) return;
    const mark = this.under(event.clientX);
    if (mark) {
      this.seek(leadTo(mark));
      return;
    }
    this.track.setPointerCapture(event.pointerId);
    this.seek(this.timeAt(event.clientX));
  }

  private point(event: PointerEvent): void {
    if (!this.player.recording) return;
    if (this.track.hasPointerCapture(event.pointerId)) this.seek(this.timeAt(event.clientX));
    const mark = this.under(event.clientX);
    this.tip.hidden = false;
    const time = mark?.time ?? this.timeAt(event.clientX);
    replace(this.tip, h("b", { class: "number" }, clock(time, 1)), mark ? ` ${mark.text}` : null);
    const box = this.track.getBoundingClientRect();
    property(this.tip, "--x", `${Math.min(Math.max(event.clientX - box.left, 60), box.width - 60)}px`);
  }

  /** The mark under a place of the page: the most important one within a few pixels. */
  private under(x: number): Mark | null {
    const width = this.track.getBoundingClientRect().width;
    const { span } = this.range();
    const reach = (6 / Math.max(width, 1)) * span;
    const time = this.timeAt(x);
    const order = (mark: Mark): number => (mark.kind === "goal" ? 3 : mark.kind === "touch" || mark.kind === "bump" ? 1 : 2);
    let best: Mark | null = null;
    for (const mark of this.marks.list) {
      if (mark.kind === "bump") continue;  // There are many, and none is drawn.
      const distance = Math.abs(mark.time - time);
      if (distance > (mark.kind === "touch" ? reach * 0.6 : reach)) continue;
      if (!best || order(mark) > order(best) || (order(mark) === order(best) && distance < Math.abs(best.time - time))) best = mark;
    }
    return best;
  }

  /** Shows the time of the player and marks that are new. It is called for every picture. */
  update(): void {
    const { start, span } = this.range();
    const changed = this.marks.update(this.player.recording);
    if (changed === "new") {
      replace(this.layer);
      this.marked = 0;
    }
    if (changed !== "same") this.draw();
    const time = Math.min(Math.max(this.player.time, start), start + span);
    const shown = `${time.toFixed(3)} ${start.toFixed(3)} ${span.toFixed(3)}`;
    if (shown === this.shown) return;
    this.shown = shown;
    for (const element of [this.played, this.thumb]) property(element, "--now", ((time - start) / span).toFixed(5));
    // Marks stand where these two say; they change only while a recording grows.
    const range = `${start.toFixed(3)} ${span.toFixed(3)}`;
    if (range !== this.ranged) {
      this.ranged = range;
      property(this.layer, "--start", start.toFixed(4));
      property(this.layer, "--span", span.toFixed(4));
      this.track.setAttribute("aria-valuemax", (start + span).toFixed(2));
    }
    this.track.setAttribute("aria-valuenow", time.toFixed(2));
    this.track.setAttribute("aria-valuetext", `${clock(time, 1)} of ${clock(start + span, 1)}`);
  }

  private draw(): void {
    const drawn = this.marks.drawn();
    if (drawn.length < this.marked || drawn.length > 200) {
      replace(this.layer);
      this.marked = 0;
    }
    for (const mark of drawn.slice(this.marked)) {
      const team = mark.team === null ? "" : mark.team ? " orange" : " blue";
      const element = h("span", { class: `mark ${mark.kind}${team}`, "data-kind": mark.kind, "data-time": mark.time.toFixed(2), "data-text": mark.text });
      property(element, "--t", mark.time.toFixed(4));
      this.layer.append(element);
    }
    this.marked = drawn.length;
  }
}
