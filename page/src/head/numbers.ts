// Many named numbers: what a policy sees, or what it tells its joints. Rows stay, their numbers change.
import { h, say } from "../dom";
import { SignedBar } from "./action";

export class Numbers {
  readonly element: HTMLElement;
  private readonly list = h("div", { class: "numbers", role: "table", "aria-label": "Numbers by name" });
  private readonly filter: HTMLInputElement;
  private readonly none = h("p", { class: "quiet small", hidden: true }, "No name has these words.");
  private names: string[] = [];
  private rows: { element: HTMLElement; bar: SignedBar; text: HTMLElement; most: number }[] = [];

  constructor(searched: boolean) {
    this.filter = h("input", { class: "input", type: "search", placeholder: "Find by name…", "aria-label": "Find what the policy sees", oninput: () => this.sift() });
    this.element = h("div", null, searched ? this.filter : null, this.list, this.none);
  }

  get count(): number {
    return this.rows.filter((row) => !row.element.hidden).length;
  }

  show(pairs: [string, number | null][]): void {
    if (pairs.length !== this.names.length || pairs.some(([name], i) => name !== this.names[i])) this.make(pairs.map(([name]) => name));
    pairs.forEach(([, value], i) => {
      const row = this.rows[i];
      if (row.element.hidden) return;
      const size = Math.abs(value ?? 0);
      // Most are about 1 at most; those that are not are shown beside the largest that was seen.
      row.most = Math.max(row.most, size);
      row.bar.show((value ?? 0) / row.most);
      say(row.text, value === null ? "–" : size < 5e-4 ? "0" : value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 3));
    });
  }

  private make(names: string[]): void {
    this.names = names;
    this.list.textContent = "";
    this.rows = names.map((name) => {
      const bar = new SignedBar();
      const text = h("span", { class: "number", role: "cell" });
      const element = h("div", { class: "number-row", role: "row" }, h("span", { class: "number-name", role: "cell", title: name }, name), bar.element, text);
      this.list.append(element);
      return { element, bar, text, most: 1 };
    });
    this.sift();
  }

  private sift(): void {
    const wanted = this.filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    this.rows.forEach((row, i) => { row.element.hidden = !wanted.every((word) => this.names[i].toLowerCase().includes(word)); });
    this.none.hidden = !this.names.length || this.count > 0;
  }
}
