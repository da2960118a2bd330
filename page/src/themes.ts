// Light or dark.
import type { Theme } from "./context";

const KEPT = "wavedash.theme";

/** The choice of the user, or else of the system. */
export class Themes {
  private readonly listeners: (() => void)[] = [];
  private readonly system = matchMedia("(prefers-color-scheme: dark)");
  private chosen: Theme | null = null;

  constructor() {
    try {
      const kept = localStorage.getItem(KEPT);
      if (kept === "light" || kept === "dark") this.chosen = kept;
    } catch { /* Storage is closed; the system decides. */ }
    this.system.addEventListener("change", () => this.apply());
    this.apply();
  }

  get shown(): Theme {
    return this.chosen ?? (this.system.matches ? "dark" : "light");
  }

  toggle(): void {
    this.chosen = this.shown === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEPT, this.chosen);
    } catch { /* It lasts as long as the page. */ }
    this.apply();
  }

  changed(listener: () => void): void {
    this.listeners.push(listener);
  }

  private apply(): void {
    document.documentElement.dataset.theme = this.shown;
    this.listeners.forEach((listener) => listener());
  }
}
