// The tab Run: the list of runs, the state of the one that is looked at, and its curves, with those of all that are chosen.
import type { RunDetails, RunEvent } from "../api";
import type { Context, Tab } from "../context";
import { h } from "../dom";
import { Refresher } from "../refresher";
import { percent } from "../words";
import { Curves } from "./curves";
import { showDifferences } from "./differences";
import { Events, isPaused } from "./events";
import { RunList } from "./list";
import { Overview } from "./overview";
import { Saved } from "./saved";
import { Sections } from "./sections";
import { RunSeries } from "./series";
import { Texts } from "./texts";

/** Refreshes between two looks at the details of a run that does not run. */
const RARELY = 5;

/** The name of a run; where others are called the same, with the end of its folder's name. */
function shortTitle(title: string, all: string[]): string {
  const name = title.split("/")[0];
  return all.filter((other) => other.split("/")[0] === name).length > 1 ? `${name} ${title.split("-").pop()}` : name;
}

export function mountRun(container: HTMLElement, context: Context): Tab {
  const { api, route } = context;
  const series = new Map<string, RunSeries>();
  const trouble = h("p", { class: "trouble", role: "status", hidden: true });
  const none = h("section", { class: "card empty", hidden: true }, h("h2", null, "There are no runs yet"),
    h("p", null, "Begin one in a terminal; it appears here within seconds:"), h("p", null, h("code", { class: "command" }, "wavedash train rocket-1v1")));
  const go = (tab: string, text: string, title: string) => h("button", { class: "button small-button", type: "button", title, onclick: () => {
    if (list.chosen[0]) route.set({ run: list.chosen[0] });
    context.open(tab);
  } }, text);
  const overview = new Overview(h("span", { class: "row overview-actions" }, go("ladder", "Ladder", "How strong its versions are"),
    api.live ? go("steer", "Steer", "Change its settings while it runs") : null));
  const events = new Events();
  const saved = new Saved();
  const texts = new Texts(context);
  const differing = h("section", { class: "card", "aria-label": "What differs", hidden: true });
  const curves = new Curves(context, () => void refresher.now());
  const sections = new Sections(route, () => void refresher.now(), [["curves", "Curves", curves.element], ["events", "Events", events.element], ["saved", "Checkpoints", saved.element],
    ["config", "Configuration", h("div", { class: "section-frame" }, differing, texts.config)], ["log", "Log", texts.log]]);
  const main = h("div", { class: "run-main" }, trouble, none, overview.element, sections.element);
  const list = new RunList(() => {
    route.set({ run: list.chosen[0] ?? null, over: list.chosen.slice(1).join(",") || null });
    void refresher.now();
  });
  container.append(h("div", { class: "run-page" }, list.element, main));
  let details: RunDetails | null = null;
  let visible = false;
  let compared = "";

  const refresher = new Refresher(3, api.live, async (turn) => {
    list.show(await api.runs());
    pick();
    none.hidden = list.rows.length > 0;
    overview.element.hidden = sections.element.hidden = list.rows.length === 0;
    for (const one of await Promise.allSettled([about(turn), metrics(), compare()])) if (one.status === "rejected") throw one.reason;
  }, (error) => {
    trouble.hidden = error === null;
    if (error !== null) trouble.textContent = `${error.message}. What is shown may be old.`;
  });

  /** Keeps what is chosen while it exists; else what the address names, the run of this page, one that runs, or the newest. */
  function pick(): void {
    if (list.chosen.some((id) => list.row(id))) {
      if (!list.chosen.every((id) => list.row(id))) list.choose(list.chosen);
      return;
    }
    const asked = [route.get("run"), ...(route.get("over")?.split(",") ?? [])].filter((id): id is string => !!id && !!list.row(id));
    const first = list.row(context.about.run ?? undefined) ?? list.rows.find((row) => row.state === "running") ?? list.rows[0];
    list.choose(asked.length ? asked : first ? [first.id] : []);
  }

  async function about(turn: number): Promise<void> {
    const row = list.row(list.chosen[0]);
    if (!row) return;
    const same = details?.id === row.id && details.steps === row.steps && details.state === row.state;
    if (same && row.state !== "running" && turn % RARELY) return;
    const [found, rows]: [RunDetails, RunEvent[]] = await Promise.all([api.run(row.id), api.events(row.id)]);
    if (row.id !== list.chosen[0]) return;
    details = found;
    curves.healthy = found.healthy ?? {};
    overview.show(row, found, row.state === "running" && isPaused(rows));
    if (visible) document.title = `${row.state === "running" && row.total_steps ? `${percent(row.steps / row.total_steps)} ` : ""}${row.title.split("/")[0]} · Wavedash`;
    saved.show(found);
    texts.show(found);
    events.show(rows);
    sections.count("events", rows.length);
    sections.count("saved", found.checkpoints.length + found.milestones.length);
  }

  /** Compares the configurations of all chosen runs, while that is looked at. */
  async function compare(): Promise<void> {
    if (sections.shown !== "config") return;
    const chosen = list.chosen;
    const made = JSON.stringify(chosen);
    if (made === compared) return;
    const found = await Promise.all(chosen.map((id) => api.run(id)));
    if (chosen !== list.chosen) return;
    compared = made;
    showDifferences(differing, found.map((run) => ({ title: shortTitle(run.title, found.map((other) => other.title)), config: run.config })));
  }

  async function metrics(): Promise<void> {
    const chosen = list.chosen.map((id) => list.row(id)).filter((row) => row !== undefined);
    for (const id of series.keys()) if (!list.chosen.includes(id)) series.delete(id);
    const loaded = await Promise.allSettled(chosen.map(async (row) => {
      let one = series.get(row.id);
      if (!one || one.colour !== list.colour(row.id)) series.set(row.id, one = new RunSeries(row.id, list.colour(row.id)));
      one.title = shortTitle(row.title, chosen.map((other) => other.title));
      await one.load(api, curves.wanted);
    }));
    if (chosen.some((row) => !list.chosen.includes(row.id))) return;  // Others were chosen meanwhile.
    curves.draw(chosen.map((row) => series.get(row.id)!));
    const failed = loaded.find((one) => one.status === "rejected");
    if (failed) throw failed.reason;  // after the others were drawn
  }

  route.changed(() => {
    const asked = route.get("run");
    if (!asked || asked === list.chosen[0] || !list.row(asked)) return;
    list.choose([asked, ...(route.get("over")?.split(",") ?? [])]);
    void refresher.now();
  });
  context.expose("run", () => ({
    chosen: list.chosen, runs: list.rows.length, turn: refresher.turn, trouble: trouble.hidden ? null : trouble.textContent, section: sections.shown,
    state: list.row(list.chosen[0])?.state ?? null, phase: details?.phase ?? null, events: events.shown,
    checkpoints: details?.checkpoints.length ?? 0, milestones: details?.milestones.length ?? 0, points: [...series.values()].map((one) => one.steps.length),
  }));
  return {
    shown() {
      visible = true;
      const asked = route.get("run");
      if (asked && asked !== list.chosen[0] && list.row(asked)) list.choose([asked]);
      refresher.start();
    },
    hidden() {
      visible = false;
      refresher.stop();
    },
  };
}
