// What every tab gets: questions to the server, the address, the theme, and a way to say something to the user.
import type { Api, About } from "./api";

export type Theme = "light" | "dark";

/** A tab after it was mounted. Tabs fetch and draw only between `shown` and `hidden`. */
export interface Tab {
  shown(): void;
  hidden(): void;
}

/** The part of the address behind `#`, as keys and values: `#t=31.5&cam=2&tab=run&run=ID&rec=ID`. */
export interface Route {
  get(key: string): string | null;
  /** Changes keys (null removes one) without a new entry in the history. */
  set(values: Record<string, string | number | null>): void;
  /** Calls back when the user changes the address; not after `set`. */
  changed(listener: () => void): void;
}

export interface Context {
  readonly api: Api;
  readonly about: About;
  readonly route: Route;
  /** "light" or "dark", as shown now. */
  theme(): Theme;
  /** Calls back when the theme changes; canvases must be drawn again then. */
  themed(listener: () => void): void;
  /** The value of a CSS variable such as "--blue", for canvases. */
  colour(variable: string): string;
  /** Shows a short message for some seconds. */
  say(text: string, kind?: "info" | "good" | "bad"): void;
  /** Opens a tab: "watch", "run", "ladder" or "steer". */
  open(tab: string): void;
  /** Adds values to what `window.wavedash.state()` returns, for tests. */
  expose(name: string, value: () => unknown): void;
}
