// The memory of a recurrent policy as a heat map: one square per number, blue above zero, orange below.
import type { Context } from "../context";
import { h, say } from "../dom";
import { short } from "../words";

const COLUMNS = 32;
const SIZE = 9;

interface Map_ { element: HTMLElement; canvas: HTMLCanvasElement; text: HTMLElement }

export class Memory {
  readonly element = h("div", { class: "head-memory" });
  private readonly maps = new Map<string, Map_>();

  constructor(private readonly context: Context) {}

  get names(): string[] {
    return [...this.maps.keys()];
  }

  show(memory: Record<string, number[]>): void {
    for (const name of this.maps.keys()) {
      if (name in memory) continue;
      this.maps.get(name)!.element.remove();
      this.maps.delete(name);
    }
    for (const [name, values] of Object.entries(memory)) this.draw(this.maps.get(name) ?? this.add(name), name, values);
  }

  private add(name: string): Map_ {
    const canvas = h("canvas", { class: "memory-map", role: "img" });
    const text = h("span", { class: "quiet small" });
    const map = { canvas, text, element: h("div", null, h("div", { class: "row" }, h("code", null, name), text), canvas) };
    this.maps.set(name, map);
    this.element.append(map.element);
    return map;
  }

  private draw({ canvas, text }: Map_, name: string, values: number[]): void {
    const most = values.reduce((size, value) => Math.max(size, Math.abs(value)), 0);
    const busy = values.filter((value) => Math.abs(value) > 0.5).length;
    const said = `${values.length} numbers, ${busy} beyond ±0.5, largest ${short(most, 3)}`;
    say(text, said);
    canvas.setAttribute("aria-label", `Memory ${name}: ${said}`);
    const width = COLUMNS * SIZE;
    const height = Math.ceil(values.length / COLUMNS) * SIZE;
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, width, height);
    const above = this.context.colour("--blue");
    const below = this.context.colour("--orange");
    const scale = Math.max(1, most);
    values.forEach((value, i) => {
      context.globalAlpha = Math.min(1, 0.06 + Math.abs(value) / scale);
      context.fillStyle = value < 0 ? below : above;
      context.fillRect((i % COLUMNS) * SIZE, Math.floor(i / COLUMNS) * SIZE, SIZE - 1, SIZE - 1);
    });
    context.globalAlpha = 1;
  }
}
