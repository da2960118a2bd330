// The address behind `#` as keys and values.
import type { Route } from "./context";

/** Other parts of the page may write into it at any time: only their own keys change. */
export class HashRoute implements Route {
  private readonly listeners: (() => void)[] = [];

  constructor() {
    window.addEventListener("hashchange", () => this.listeners.forEach((listener) => listener()));
  }

  get(key: string): string | null {
    return new URLSearchParams(location.hash.slice(1)).get(key);
  }

  set(values: Record<string, string | number | null>): void {
    const hash = new URLSearchParams(location.hash.slice(1));
    for (const [key, value] of Object.entries(values)) {
      if (value === null) hash.delete(key);
      else hash.set(key, String(value));
    }
    const text = String(hash);
    history.replaceState(null, "", location.pathname + location.search + (text ? `#${text}` : ""));
  }

  changed(listener: () => void): void {
    this.listeners.push(listener);
  }
}
