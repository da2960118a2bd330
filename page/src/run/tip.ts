// The box beside the cursor of a chart: the values there, the phase, and what was done to the run.
import type { RunEvent } from "../api";
import { h, property, replace } from "../dom";
import { byWhom } from "./events";

const MOST = 12;

export interface TipRow { text: string; value: string; colour: string; order: number }

export class Tip {
  readonly element = h("div", { class: "chart-tip", hidden: true });

  /** `left` and `width`: of the cursor and of the plot, in CSS pixels of the box that holds this element. */
  show(left: number, width: number, title: string, rows: TipRow[], events: RunEvent[]): void {
    const sorted = [...rows].sort((a, b) => b.order - a.order);
    replace(this.element, h("div", { class: "tip-title" }, title),
      ...sorted.slice(0, MOST).map((row) => {
        const mark = h("i", { class: "swatch" });
        property(mark, "--swatch", row.colour);
        return h("div", { class: "tip-row" }, mark, h("span", { class: "tip-name" }, row.text), h("span", { class: "number" }, row.value));
      }),
      sorted.length > MOST ? h("div", { class: "quiet" }, `and ${sorted.length - MOST} more`) : null,
      ...events.slice(0, 4).map((event) => h("div", { class: "tip-event" }, `⚑ ${event.text}${byWhom(event)}`)),
      events.length > 4 ? h("div", { class: "tip-event" }, `and ${events.length - 4} more`) : null);
    this.element.hidden = false;
    this.element.classList.toggle("left-side", left > width / 2);
    property(this.element, "--at", `${Math.round(left)}px`);
  }

  hide(): void {
    this.element.hidden = true;
  }
}
