// The frame of the page: tabs, and what all of them share.
import "../style/base.css";
import "../style/watch.css";
import "../style/head.css";
import "../style/panels.css";
import "../style/run.css";
import "../style/ladder.css";
import "../style/steer.css";
import { Api, ServerSource, takeToken, type About } from "./api";
import { Connection } from "./connection";
import type { Context, Tab } from "./context";
import { h, replace, svg } from "./dom";
import { exportedNote } from "./exported";
import { showHelp } from "./help";
import { mountLadder } from "./ladder/view";
import { offlineData, OfflineSource } from "./offline";
import { HashRoute } from "./route";
import { mountRun } from "./run/view";
import { mountSteer } from "./steer/view";
import { Themes } from "./themes";
import { Toasts } from "./toasts";
import { mountWatch } from "./watch/view";

const TABS = [
  { id: "watch", title: "Watch", mount: mountWatch, bare: true },
  { id: "run", title: "Run", mount: mountRun, bare: false },
  { id: "ladder", title: "Ladder", mount: mountLadder, bare: false },
  { id: "steer", title: "Steer", mount: mountSteer, bare: false },
];

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
  const connection = new Connection();
  const api = new Api(embedded ? new OfflineSource(embedded) : new ServerSource(token, (answered) => connection.heard(answered)), token);
  const route = new HashRoute();
  const themes = new Themes();
  const toasts = new Toasts();
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
    say: (text, kind = "info") => toasts.say(text, kind),
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
    const index = TABS.findIndex((tab) => tab.id === current);
    const next = { ArrowRight: index + 1, ArrowLeft: index - 1 + TABS.length, Home: 0, End: TABS.length - 1 }[event.key];
    if (next === undefined) return;
    event.stopPropagation();
    event.preventDefault();
    show(TABS[next % TABS.length].id);
    buttons.get(current)!.focus();
  });

  replace(document.body,
    h("div", { class: "page" },
      h("header", { class: "bar" },
        h("div", { class: "brand" }, logo(), h("span", null, "Wavedash")),
        list,
        exportedNote(about),
        api.live ? connection.element : null,
        h("button", { class: "button icon", type: "button", "aria-label": "Keyboard help", title: "Keyboard help (?)", id: "help", onclick: showHelp }, "?"),
        h("button", { class: "button icon", type: "button", "aria-label": "Light or dark", title: "Light or dark", id: "theme", onclick: () => themes.toggle() }, themeIcon())),
      h("main", { class: "panes" }, ...panes.values())),
    toasts.element);

  Object.defineProperty(window, "wavedash", {
    value: Object.freeze({
      state: () => ({
        tab: current, theme: themes.shown, connected: connection.here, said: toasts.said,
        ...Object.fromEntries([...exposed].filter(([name]) => name !== "screen").map(([name, value]) => [name, value()])),
      }),
      screen: (x: number, y: number, z: number) => (exposed.get("screen")?.() as ((x: number, y: number, z: number) => unknown) | undefined)?.(x, y, z),
    }),
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "?" && !typing(event.target)) showHelp();
  });
  // Recordings can be dropped on any tab; the tab Watch takes them.
  window.addEventListener("dragenter", (event) => {
    if (event.dataTransfer?.types.includes("Files")) show("watch");
  }, true);
  route.changed(() => {
    if (route.get("token")) {  // The address of another server, or of one that was started again, in an open tab.
      takeToken();
      location.reload();
      return;
    }
    show(route.get("tab") ?? first);
  });
  show(route.get("tab") ?? first);
  if (failed) context.say(failed, "bad");
  if (api.live) connection.watch(() => api.about(), (fresh) => {
    // What was shown without an answer knew nothing, and a page of another version may ask other questions.
    if (failed || fresh.version !== about.version || fresh.writable !== about.writable) location.reload();
    else context.say("The server is back.", "good");
  });
}

/** Whether a key belongs to a field that takes text. */
export function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.matches("input:not([type=range]):not([type=checkbox]), textarea, select") || target.isContentEditable);
}

void start();
