// The frame of the page: tabs, the address, the theme, help for keys, and messages.
import "../style/base.css";
import "../style/watch.css";
import "../style/head.css";
import "../style/panels.css";
import "../style/run.css";
import "../style/ladder.css";
import "../style/steer.css";
import { Api, ServerSource, takeToken, type About } from "./api";
import type { Context, Route, Tab, Theme } from "./context";
import { h, replace, svg } from "./dom";
import { exportedNote } from "./exported";
import { showHelp } from "./help";
import { mountLadder } from "./ladder/view";
import { offlineData, OfflineSource } from "./offline";
import { mountRun } from "./run/view";
import { mountSteer } from "./steer/view";
import { mountWatch } from "./watch/view";

const TABS = [
  { id: "watch", title: "Watch", mount: mountWatch, bare: true },
  { id: "run", title: "Run", mount: mountRun, bare: false },
  { id: "ladder", title: "Ladder", mount: mountLadder, bare: false },
  { id: "steer", title: "Steer", mount: mountSteer, bare: false },
];
const THEME = "wavedash.theme";

class HashRoute implements Route {
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

/** The choice of the user, or else of the system. */
class Themes {
  private readonly listeners: (() => void)[] = [];
  private readonly system = matchMedia("(prefers-color-scheme: dark)");
  private chosen: Theme | null = null;

  constructor() {
    try {
      const kept = localStorage.getItem(THEME);
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
      localStorage.setItem(THEME, this.chosen);
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

function logo(): SVGElement {
  return svg("svg", { viewBox: "0 0 32 32", "aria-hidden": "true" },
    svg("path", { d: "M3 21c4 0 4-9 8-9s3 9 7 9 4-13 11-13", fill: "none", stroke: "var(--accent)", "stroke-width": 3.4, "stroke-linecap": "round" }),
    svg("circle", { cx: 27, cy: 22, r: 3.4, fill: "var(--orange)" }));
}

function themeIcon(): SVGElement {
  return svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg("path", { d: "M12 3a9 9 0 1 0 0 18zM12 1a11 11 0 1 1 0 22 11 11 0 0 1 0-22z" }));
}

async function start(): Promise<void> {
  const token = takeToken();
  const embedded = offlineData();
  const api = new Api(embedded ? new OfflineSource(embedded) : new ServerSource(token), token);
  const route = new HashRoute();
  const themes = new Themes();
  const toasts = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
  const exposed = new Map<string, () => unknown>();
  let about: About = { version: "", loopback: true, writable: false, run: null, watching: null };
  let failed: string | null = null;
  try {
    about = await api.about();
  } catch (error) {
    failed = error instanceof Error ? error.message : String(error);
  }

  const context: Context = {
    api, about, route,
    theme: () => themes.shown,
    themed: (listener) => themes.changed(listener),
    colour: (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim(),
    say(text, kind = "info") {
      const toast = h("div", { class: `toast ${kind}` }, text);
      toasts.append(toast);
      setTimeout(() => toast.remove(), kind === "bad" ? 8000 : 3500);
    },
    open: (tab) => show(tab),
    expose: (name, value) => void exposed.set(name, value),
  };

  const mounted = new Map<string, Tab>();
  const panes = new Map<string, HTMLElement>();
  const buttons = new Map<string, HTMLButtonElement>();
  const first = about.tab ?? "watch";
  let current = "";

  function show(id: string): void {
    const tab = TABS.find((one) => one.id === id) ?? TABS[0];
    if (tab.id === current) return;
    mounted.get(current)?.hidden();
    current = tab.id;
    for (const one of TABS) {
      panes.get(one.id)!.hidden = one.id !== current;
      const button = buttons.get(one.id)!;
      button.setAttribute("aria-selected", String(one.id === current));
      button.tabIndex = one.id === current ? 0 : -1;
    }
    document.title = `${tab.title} · Wavedash`;
    route.set({ tab: tab.id === first ? null : tab.id });
    if (!mounted.has(tab.id)) mounted.set(tab.id, tab.mount(panes.get(tab.id)!, context));
    mounted.get(tab.id)!.shown();
  }

  const list = h("div", { class: "tabs", role: "tablist", "aria-label": "Parts of the page" });
  for (const tab of TABS) {
    const button = h("button", {
      role: "tab", id: `tab-${tab.id}`, "aria-controls": `pane-${tab.id}`, type: "button", onclick: () => show(tab.id),
    }, tab.title);
    const pane = h("div", { class: tab.bare ? "pane bare" : "pane", role: "tabpanel", id: `pane-${tab.id}`, "aria-labelledby": `tab-${tab.id}` });
    buttons.set(tab.id, button);
    panes.set(tab.id, pane);
    list.append(button);
  }
  list.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.stopPropagation();
    const index = TABS.findIndex((tab) => tab.id === current);
    show(TABS[(index + step + TABS.length) % TABS.length].id);
    buttons.get(current)!.focus();
  });

  replace(document.body,
    h("div", { class: "page" },
      h("header", { class: "bar" },
        h("div", { class: "brand" }, logo(), h("span", null, "Wavedash")),
        list,
        exportedNote(about),
        h("button", { class: "button icon", type: "button", "aria-label": "Keyboard help", title: "Keyboard help (?)", id: "help", onclick: showHelp }, "?"),
        h("button", { class: "button icon", type: "button", "aria-label": "Light or dark", title: "Light or dark", id: "theme", onclick: () => themes.toggle() }, themeIcon())),
      h("main", { class: "panes" }, ...panes.values())),
    toasts);

  Object.defineProperty(window, "wavedash", {
    value: Object.freeze({
      state: () => ({
        tab: current, theme: themes.shown,
        ...Object.fromEntries([...exposed].filter(([name]) => name !== "screen").map(([name, value]) => [name, value()])),
      }),
      screen: (x: number, y: number, z: number) => (exposed.get("screen")?.() as ((x: number, y: number, z: number) => unknown) | undefined)?.(x, y, z),
    }),
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "?" && !typing(event.target)) showHelp();
  });
  route.changed(() => show(route.get("tab") ?? first));
  show(route.get("tab") ?? first);
  if (failed) context.say(failed, "bad");
}

/** Whether a key belongs to a field that takes text. */
export function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.matches("input:not([type=range]):not([type=checkbox]), textarea, select") || target.isContentEditable);
}

void start();
