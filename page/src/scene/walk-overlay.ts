// What is written beside the robot, and what its camera sees.
import "../../style/walk.css";
import { h } from "../dom";
import type { Moment } from "../recording";
import type { WalkHeader } from "./walk-header";

/** Colours of depths from near to far, which get darker steadily. */
const SHADES: [number, number, number][] = [[255, 246, 196], [253, 187, 92], [231, 100, 74], [150, 43, 107], [66, 18, 92], [10, 8, 24]];

function shade(depth: number): [number, number, number] {
  const place = Math.min(Math.max(depth, 0), 1) * (SHADES.length - 1);
  const index = Math.min(Math.floor(place), SHADES.length - 2);
  const part = place - index;
  return [0, 1, 2].map((channel) => SHADES[index][channel] + (SHADES[index + 1][channel] - SHADES[index][channel]) * part) as [number, number, number];
}

const PALETTE = Uint8ClampedArray.from({ length: 1024 }, (_, index) => (index % 4 === 3 ? 255 : shade((index >> 2) / 255)[index % 4]));

/** The image of the robot's depth camera; near is bright. */
class DepthImage {
  readonly element: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly image: ImageData;
  private shown: Moment | null = null;

  constructor(rows: number, columns: number, far: number) {
    this.canvas = h("canvas", { width: columns, height: rows, class: "walk-depth", role: "img", "aria-label": `What the robot's depth camera sees: near is bright, dark is ${far} metres away or more` });
    this.image = new ImageData(columns, rows);
    const scale = h("canvas", { width: 256, height: 1, class: "walk-scale", "aria-hidden": "true" });
    const pixels = new ImageData(256, 1);
    pixels.data.set(PALETTE);
    scale.getContext("2d")!.putImageData(pixels, 0, 0);
    this.element = h("figure", { class: "walk-camera" }, this.canvas,
      h("figcaption", null, h("span", null, "depth camera"), h("span", { class: "walk-legend" }, "0", scale, `${Number(far.toPrecision(3))} m`)));
  }

  show(moment: Moment): void {
    if (moment.frame === this.shown?.frame && moment.recording === this.shown.recording) return;
    this.shown = moment;
    const depth = moment.read("depth");
    const pixels = this.image.data;
    for (let index = 0; index < depth.length; index++) {
      const colour = 4 * Math.round(Math.min(Math.max(depth[index], 0), 1) * 255);
      for (let channel = 0; channel < 4; channel++) pixels[4 * index + channel] = PALETTE[colour + channel];
    }
    this.canvas.getContext("2d")!.putImageData(this.image, 0, 0);
  }
}

export class WalkOverlay {
  readonly element: HTMLElement;
  private readonly facts = new Map<string, HTMLElement>();
  private readonly list = h("dl", { class: "walk-facts" });
  private depth: DepthImage | null = null;

  constructor(private readonly header: WalkHeader) {
    const where = header.level === null ? header.terrain : `${header.terrain}, level ${header.level}`;
    this.element = h("div", { class: "walk-overlay" },
      h("section", { class: "walk-card", "aria-label": "The walk" },
        h("div", { class: "walk-where" }, where), header.layout && h("div", { class: "quiet" }, header.layout),
        this.list, header.damage && h("p", { class: "walk-damage", role: "status" }, header.damage)));
  }

  /** `speed` is that forward now, `walked` how far it is from where it began. */
  show(moment: Moment, speed: number, walked: number): void {
    const turning = moment.number("command", 2) * (180 / Math.PI);
    this.fact("wanted", `${moment.number("command", 0).toFixed(2)} m/s`, "wanted");
    this.fact("real", `${(Math.round(speed * 100) / 100 || 0).toFixed(2)} m/s`, "real");  // There is no minus zero.
    this.fact("turn", Math.abs(turning) < 1 ? "none" : `${Math.abs(turning).toFixed(0)}°/s ${turning > 0 ? "left" : "right"}`);
    this.fact("walked", `${walked.toFixed(1)} m`);
    if (moment.recording.has("value")) this.fact("value", moment.line("value").toFixed(2));
    const shape = moment.recording.shape("depth");
    if (shape?.length === 2) {
      if (!this.depth) {
        this.depth = new DepthImage(shape[0], shape[1], this.header.far);
        this.element.append(this.depth.element);
      }
      this.depth.show(moment);
    }
  }

  private fact(name: string, text: string, mark = ""): void {
    let value = this.facts.get(name);
    if (!value) {
      value = h("dd", { class: "number" });
      this.facts.set(name, value);
      this.list.append(h("div", { class: mark ? `walk-mark ${mark}` : "walk-mark" }, h("dt", null, name), value));
    }
    if (value.textContent !== text) value.textContent = text;
  }
}
