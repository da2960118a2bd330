// The likeliest actions of a policy, as bars with their controls in words.
import { h, property, say } from "../dom";
import { percent } from "../words";
import { inWords } from "./action";

export class Choices {
  readonly element = h("ol", { class: "choices" });
  private rows: { element: HTMLElement; text: HTMLElement; share: HTMLElement }[] = [];
  shown: { action: number; words: string; share: number; chosen: boolean }[] = [];

  /** `top`: pairs of an action and its probability. `table`: the controls of each action. */
  show(top: [number, number][], chosen: number, table: number[][] | null): void {
    const pairs = [...top].sort((a, b) => b[1] - a[1]);
    this.shown = pairs.map(([action, share]) => ({ action, share, chosen: action === chosen, words: table?.[action] ? inWords(table[action]) : `action ${action}` }));
    while (this.rows.length < pairs.length) this.add();
    this.rows.forEach((row, i) => {
      const one = this.shown[i];
      row.element.hidden = !one;
      if (!one) return;
      say(row.text, one.words);
      row.text.title = one.words;
      say(row.share, percent(one.share));
      row.element.classList.toggle("chosen", one.chosen);
      row.element.setAttribute("aria-label", `${one.words}: ${percent(one.share)}${one.chosen ? ", chosen" : ""}`);
      property(row.element, "--size", Math.round(one.share * 500) / 500);
    });
  }

  private add(): void {
    const row = { text: h("span", { class: "choice-text" }), share: h("span", { class: "number" }), element: h("li", { class: "choice" }) };
    row.element.append(row.text, row.share);
    this.rows.push(row);
    this.element.append(row.element);
  }
}
