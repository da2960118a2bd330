// The tab Run: the list of runs, the health of the one that is looked at, the curves of all that are chosen.
import "../../style/panels.css";
import type { Context, Tab } from "../context";
import { h } from "../dom";
import { Curves } from "./curves";
import { Events } from "./events";
import { Health } from "./health";
import { RunList } from "./list";
import { RunSeries } from "./series";

const SECONDS = 3;

export function mountRun(container: HTMLElement, context: Context): Tab {
  const { api, route } = context;
  const series = new Map<string, RunSeries>();
  const title = h("h1", { class: "run-name" });
  const trouble = h("p", { class: "trouble", role: "status", hidden: true });
  const events = new Events();
  const health = new Health(events.element);
  const curves = new Curves(context, () => void refresh());
  const list = new RunList(() => {
    route.set({ run: list.chosen[0] ?? null, over: list.chosen.slice(1).join(",") || null });
    void refresh();
  });
  container.append(h("div", { class: "run-page" }, list.element,
    h("div", { class: "run-main" }, title, trouble, health.element, curves.element)));

  let timer = 0;
  let visible = false;
  let turn = 0;
  let busy = false;
  let again = false;

  /** Reads everything that is shown; what fails is said, and what was shown stays. */
  async function refresh(): Promise<void> {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    turn += 1;
    try {
      list.show(await api.runs());
      pick();
      await Promise.all([about(), metrics()]);
      trouble.hidden = true;
    } catch (error) {
      trouble.textContent = `The server does not answer (${error instanceof Error ? error.message : String(error)}). What is shown may be old.`;
      trouble.hidden = false;
    }
    busy = false;
    if (again) {
      again = false;
      void refresh();
    }
  }

  function pick(): void {
    const known = list.chosen.filter((id) => list.row(id));
    if (known.length) return;
    const asked = [route.get("run"), ...(route.get("over")?.split(",") ?? [])].filter((id): id is string => !!id && !!list.row(id));
    const first = list.row(context.about.run ?? "") ?? list.rows.find((row) => row.state === "running") ?? list.rows[0];
    list.chosen = asked.length ? asked : first ? [first.id] : [];
    list.show(list.rows);
  }

  async function about(): Promise<void> {
    const row = list.row(list.chosen[0]);
    title.textContent = row?.title ?? "";
    if (!row) return;
    const [details, rows] = await Promise.all([api.run(row.id), api.events(row.id)]);
    if (row.id !== list.chosen[0]) return;
    curves.healthy = details.healthy ?? {};
    health.show(row, details);
    events.show(rows);
  }

  async function metrics(): Promise<void> {
    const chosen = list.chosen.map((id) => list.row(id)).filter((row) => row !== undefined);
    await Promise.all(chosen.map(async (row) => {
      let one = series.get(row.id);
      if (!one || one.colour !== list.colour(row.id)) series.set(row.id, one = new RunSeries(row.id, row.title, list.colour(row.id)));
      // A run that was resumed from an older checkpoint repeats steps: then its curves are read anew.
      if (one.steps.length && row.steps < one.steps[one.steps.length - 1]) one.forget();
      if (!one.names.length) one.names = (await api.metrics(row.id, { names: ["recent/return"], points: 2 })).names;
      await one.load(api, curves.wanted(one.names));
    }));
    const ready = chosen.map((row) => series.get(row.id)!).filter((one) => one.steps.length);
    if (ready.length) curves.draw(ready);
  }

  function tick(): void {
    window.clearTimeout(timer);
    if (!visible) return;
    timer = window.setTimeout(() => {
      if (document.hidden) return tick();
      void refresh().finally(tick);
    }, SECONDS * 1000);
  }

  context.expose("run", () => ({ chosen: list.chosen, turn, trouble: trouble.hidden ? null : trouble.textContent }));
  return {
    shown() {
      visible = true;
      void refresh();
      if (api.live) tick();
    },
    hidden() {
      visible = false;
      window.clearTimeout(timer);
    },
  };
}
