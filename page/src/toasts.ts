// Short messages at the bottom of the page, for some seconds.
import { h } from "./dom";

const MOST = 4;

export class Toasts {
  readonly element = h("div", { class: "toasts", role: "status", "aria-live": "polite" });

  /** What is shown now, for tests. */
  get said(): string[] {
    return [...this.element.children].map((toast) => toast.textContent ?? "");
  }

  say(text: string, kind: "info" | "good" | "bad"): void {
    for (const toast of [...this.element.children]) if (toast.textContent === text) toast.remove();
    const toast = h("div", { class: `toast ${kind}` }, text);
    this.element.append(toast);
    while (this.element.children.length > MOST) this.element.firstElementChild!.remove();
    setTimeout(() => toast.remove(), kind === "bad" ? 8000 : 3500);
  }
}
