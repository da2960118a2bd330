// The value over time, around the moment that is shown, on a canvas.
import type { Context } from "../context";
import { h, say } from "../dom";
import { short } from "../words";
import type { Track } from "./track";

const BEFORE = 8;
const AFTER = 2;
/** Lines of the grid; a strip shows fewer seconds than this. */
const MOST_LINES = 60;
const HEIGHT = 92;
const ROOM = 14;

export class Strip {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { class: "head-strip", role: "img" });
  private readonly caption = h("div", { class: "row head-strip-caption" });
  private readonly low = h("span", { class: "quiet number" });
  private readonly high = h("span", { class: "quiet number" });
  private colours: Record<string, string> = {};

  constructor(private readonly context: Context) {
    this.caption.append(h("span", { class: "quiet" }, "least "), this.low, h("span", { class: "quiet" }, "most "), this.high);
    this.element = h("div", null, this.canvas, this.caption);
    context.themed(() => { this.colours = {}; });
  }

  /** Draws the seconds around a frame. Live games have nothing after it. */
  draw(track: Track, frame: number, time: number, live: boolean): void {
    const { recording } = track;
    const width = this.canvas.clientWidth;
    const context = this.canvas.getContext("2d");
    if (!width || !context) return;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(HEIGHT * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, HEIGHT);
    const from = time - (live ? BEFORE + AFTER : BEFORE);
    const to = live ? time : time + AFTER;
    const room = 0.08 * (track.most - track.least) || Math.abs(track.most) * 0.1 || 1;
    const x = (seconds: number) => ((seconds - from) / (to - from)) * width;
    const y = (value: number) => ROOM + (1 - (value - track.least + room) / (track.most - track.least + 2 * room)) * (HEIGHT - ROOM - 4);
    this.grid(context, width, from, to, x);
    if (track.least < 0 && track.most > 0) this.level(context, width, y(0));
    this.happened(context, track, from, to, x);
    this.line(context, track, frame, from, to, x, y);
    context.fillStyle = this.colour("--text");
    context.fillRect(Math.min(width - 1, Math.round(x(time))), ROOM, 1, HEIGHT - ROOM);
    const value = track.value(frame);
    if (Number.isFinite(value)) {
      context.beginPath();
      context.arc(Math.min(width - 3, x(recording.time(frame))), y(value), 3.5, 0, 2 * Math.PI);
      context.fillStyle = this.colour("--accent");
      context.fill();
    }
    say(this.low, short(track.least, 3));
    say(this.high, short(track.most, 3));
    this.canvas.setAttribute("aria-label", `Value over time: ${short(value, 3)} now, from ${short(track.least, 3)} to ${short(track.most, 3)} in this game`);
  }

  private line(context: CanvasRenderingContext2D, track: Track, frame: number, from: number, to: number, x: (s: number) => number, y: (v: number) => number): void {
    const { recording } = track;
    let begin = frame;
    while (begin > 0 && recording.time(begin) > from) begin -= 1;
    context.lineWidth = 1.6;
    context.lineJoin = "round";
    context.strokeStyle = this.colour("--accent");
    context.beginPath();
    let drawing = false;
    for (let at = begin; at < recording.frames; at++) {
      const seconds = recording.time(at);
      const value = track.value(at);
      if (Number.isFinite(value)) {
        if (drawing) context.lineTo(x(seconds), y(value));
        else context.moveTo(x(seconds), y(value));
      }
      drawing = Number.isFinite(value);
      if (seconds > to) break;
    }
    context.stroke();
  }

  /** A line for every second, and its number. */
  private grid(context: CanvasRenderingContext2D, width: number, from: number, to: number, x: (s: number) => number): void {
    context.strokeStyle = this.colour("--line");
    context.fillStyle = this.colour("--quiet");
    context.lineWidth = 1;
    context.font = "10px system-ui, sans-serif";
    context.textAlign = "left";
    context.textBaseline = "top";
    const first = Math.max(0, Math.ceil(from));
    for (let line = 0; line <= to - first && line <= MOST_LINES; line++) {
      const second = first + line;
      const at = Math.round(x(second)) + 0.5;
      context.beginPath();
      context.moveTo(at, ROOM);
      context.lineTo(at, HEIGHT);
      context.stroke();
      if (second % 2 === 0 && at < width - 16) context.fillText(`${second} s`, at + 2, 1);
    }
  }

  private level(context: CanvasRenderingContext2D, width: number, at: number): void {
    context.strokeStyle = this.colour("--faint");
    context.setLineDash([4, 4]);
    context.beginPath();
    context.moveTo(0, Math.round(at) + 0.5);
    context.lineTo(width, Math.round(at) + 0.5);
    context.stroke();
    context.setLineDash([]);
  }

  /** Goals, shots, saves and what this car did. */
  private happened(context: CanvasRenderingContext2D, track: Track, from: number, to: number, x: (s: number) => number): void {
    const { recording } = track;
    for (const event of recording.events) {
      const seconds = recording.time(event.frame);
      if (seconds < from || seconds > to || (event.kind === "touch" && event.car !== track.car)) continue;
      const team = event.car === null ? null : recording.header.players[event.car]?.team;
      context.fillStyle = this.colour(recording.header.kind === "walk" || team === null || team === undefined ? "--warn" : team === 0 ? "--blue" : "--orange");
      context.globalAlpha = event.kind === "touch" ? 0.45 : 1;
      context.fillRect(Math.round(x(seconds)) - 1, event.kind === "touch" ? HEIGHT - 12 : ROOM, 2, HEIGHT);
      context.globalAlpha = 1;
    }
  }

  private colour(variable: string): string {
    return this.colours[variable] ??= this.context.colour(variable);
  }
}
