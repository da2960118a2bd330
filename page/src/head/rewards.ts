// What each reward term pays: in the last second, and in the game so far.
import { h, say } from "../dom";
import { short } from "../words";
import { SignedBar } from "./action";

interface Row { now: SignedBar; nowText: HTMLElement; sum: SignedBar; sumText: HTMLElement }

export class Rewards {
  readonly element = h("div", { class: "head-rewards" });
  private rows: Row[] = [];
  private names: string[] = [];
  /** The largest payment of a second so far, so that bars can be compared over time. */
  private scale = 0;

  /** Begins anew with these terms. */
  open(names: string[]): void {
    this.names = names;
    this.scale = 0;
    this.rows = names.map(() => ({ now: new SignedBar(), nowText: h("output", { class: "number" }), sum: new SignedBar(), sumText: h("output", { class: "number" }) }));
    this.element.textContent = "";
    this.element.append(h("div", { class: "reward-row quiet" }, h("span"), h("span", null, "last 1 s"), h("span", null, "so far")),
      ...this.rows.map((row, i) => h("div", { class: "reward-row", "data-term": names[i] }, h("span", { class: "reward-name", title: names[i] }, names[i].replace(/_/g, " ")),
        h("span", { class: "reward-cell" }, row.nowText, row.now.element), h("span", { class: "reward-cell" }, row.sumText, row.sum.element))));
  }

  show(now: number[], sums: number[]): void {
    const largest = (values: number[]) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    this.scale = Math.max(this.scale, largest(now)) || 1;
    const whole = largest(sums) || 1;
    this.rows.forEach((row, i) => {
      // Small terms stay visible beside a goal: the root keeps their order.
      row.now.show(Math.sign(now[i]) * Math.sqrt(Math.abs(now[i]) / this.scale));
      row.sum.show(sums[i] / whole);
      say(row.nowText, short(tidy(now[i]), 3));
      say(row.sumText, short(tidy(sums[i]), 3));
    });
  }

  get shown(): Record<string, string> {
    return Object.fromEntries(this.names.map((name, i) => [name, this.rows[i].sumText.textContent ?? ""]));
  }
}

/** Without the dust that sums of floats leave. */
function tidy(value: number): number {
  return Math.abs(value) < 1e-6 ? 0 : value;
}
