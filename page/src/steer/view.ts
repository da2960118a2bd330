// The tab Steer: what `wavedash set` can change, and orders, for whoever has the token. Everything is logged by the run.
import { ApiError, type RunEvent, type RunRow } from "../api";
import type { Context, Tab } from "../context";
import { count, h, replace, say } from "../dom";
import { Refresher } from "../refresher";
import { eventRow, isPaused } from "../run/events";
import { copyButton } from "../run/texts";
import { Answers } from "./answers";
import { parse, text } from "./editor";
import { Orders } from "./orders";
import { Settings } from "./settings";

const MOST_EVENTS = 60;

export function mountSteer(container: HTMLElement, context: Context): Tab {
  if (!context.api.live || !context.about.writable) return closed(container, context);
  const { api, route } = context;
  const choice = h("select", { class: "input", id: "steer-run", onchange: () => choose(choice.value) });
  const state = h("p", { class: "steer-state", role: "status", id: "steer-state" }, "Looking for runs…");
  const how = h("p", { class: "row command-row", hidden: true });
  const answers = new Answers();
  const orders = new Orders((words) => void ask({}, words));
  const settings = new Settings((values) => void ask(values, []));
  const key = h("input", { class: "input number", "aria-label": "Any key", placeholder: "ppo.learning_rate", spellcheck: "false", autocapitalize: "off", id: "steer-key" });
  const value = h("input", { class: "input number", "aria-label": "Its value", placeholder: "1e-4", spellcheck: "false", autocapitalize: "off", id: "steer-value" });
  const any = h("form", { class: "card row other", "aria-label": "Any setting", onsubmit: (event: Event) => {
    event.preventDefault();
    if (key.value.trim()) void ask({ [key.value.trim()]: parse(value.value) }, []);
  } }, h("span", { class: "quiet" }, "Any key"), key, value, h("button", { class: "button", type: "submit", id: "steer-any" }, "Set"));
  const controls = h("fieldset", { class: "steer-controls", disabled: true }, orders.element, settings.element, any);
  const changes = h("ol", { class: "event-list" });
  container.append(h("div", { class: "steer-page" },
    h("div", { class: "card steer-choice" }, h("label", { class: "field" }, "Run", choice), h("div", null, state, how)),
    h("div", { class: "steer-grid" }, controls, h("div", { class: "steer-side" }, answers.element,
      h("section", { class: "card", "aria-label": "Changes" }, h("h2", null, "All changes of this run"), changes)))));
  let run = "";
  let rows: RunRow[] = [];
  let events: RunEvent[] = [];
  let listed = "";
  let drawn = "";
  /** What the settings were read after; null: they must be read. */
  let read: string | null = null;
  let waiting = 0;
  /** The run that is being asked for its settings. */
  let reading = "";

  function choose(id: string): void {
    run = id;
    read = null;
    settings.clear();
    controls.disabled = true;
    route.set({ run: id });
    void refresher.now();
  }

  /** Asks the run, tells its answer, and reads the settings again, so that they are what the run has. */
  async function ask(values: Record<string, unknown>, words: string[]): Promise<void> {
    const asked = run;
    const tell = answers.ask([...Object.entries(values).map(([name, one]) => `${name}=${text(one)}`), ...words].join(" "));
    waiting += 1;
    showState();
    let done = false;
    try {
      const answer = await api.set(asked, values, words);
      done = answer.done;
      tell(Array.isArray(answer.said) ? answer.said.join("\n") : answer.said, answer.done);
    } catch (error) {
      tell(error instanceof Error ? error.message : String(error), false);
    }
    waiting -= 1;
    if (asked === run) read = null;
    if (asked === run && done) settings.settle(Object.keys(values));
    await refresher.now();
  }

  const refresher = new Refresher(4, true, async () => {
    rows = await api.runs();
    if (!rows.some((row) => row.id === run)) run = first()?.id ?? "";
    drawChoice();
    if (!run) return say(state, "There are no runs yet: wavedash train rocket-1v1");
    events = await api.events(run);
    drawChanges();
    // A run may take long to answer, or have ended: nothing else waits for it.
    void readSettings().then(showState);
    showState();
  }, (error) => { if (error) say(state, error.message); });

  function first(): RunRow | undefined {
    const asked = route.get("run") ?? context.about.run;
    return rows.find((row) => row.id === asked) ?? rows.find((row) => row.state === "running") ?? rows[0];
  }

  const current = (): RunRow | undefined => rows.find((row) => row.id === run);

  /** Asks a run that runs for its settings: when it is chosen, and after every change by whomever. */
  async function readSettings(): Promise<void> {
    const asked = run;
    const stamp = `${run} ${current()?.state} ${events.length}`;
    if (current()?.state !== "running") {
      controls.disabled = true;
      read = stamp;
      return;
    }
    if (read === stamp || reading === run) return;
    reading = run;
    if (controls.disabled) say(state, "Asking the run for its settings; it answers between two iterations…");
    try {
      const found = await api.settings(asked);
      if (asked !== run) return;
      settings.show(found);
      orders.show(found.orders.map(String), paused());
      controls.disabled = false;
      read = stamp;
    } catch (error) {
      if (asked !== run || current()?.state !== "running") return;
      controls.disabled = true;
      say(state, error instanceof ApiError ? error.message : String(error));
    } finally {
      if (reading === asked) reading = "";
    }
  }

  const paused = (): boolean => current()?.state === "running" && isPaused(events);

  function showState(): void {
    const row = current();
    how.hidden = row === undefined || row.state === "running";
    controls.hidden = row?.state !== "running";
    if (!row) return;
    if (row.state !== "running") {
      const command = `wavedash resume runs/${row.title}`;
      say(state, `This run is ${row.state} at ${count(row.steps, 4)} steps, so nobody listens. Settings change when it goes on:`);
      if (how.dataset.command !== command) {
        how.dataset.command = command;
        replace(how, h("code", { class: "command" }, `${command} key=value`), copyButton(context, "the command", () => command));
      }
    } else if (waiting) {
      say(state, "Waiting for the run, which answers between two iterations…");
    } else if (!controls.disabled) {
      say(state, paused() ? `Paused at ${count(row.steps, 4)} steps. It listens.` : `Running, at ${count(row.steps, 4)} steps. It listens.`);
    }
    state.className = `steer-state ${row.state !== "running" ? "quiet" : waiting || paused() ? "warn" : "good"}`;
    controls.classList.toggle("waiting", waiting > 0);
  }

  function drawChoice(): void {
    const sorted = [...rows].sort((a, b) => Number(b.state === "running") - Number(a.state === "running"));
    const made = JSON.stringify([sorted.map((row) => [row.id, row.state]), run]);
    if (made === listed) return;
    listed = made;
    replace(choice, ...sorted.map((row) => h("option", { value: row.id }, `${row.title} (${row.state})`)));
    choice.value = run;
  }

  function drawChanges(): void {
    const shown = events.slice(-MOST_EVENTS).reverse();
    const made = JSON.stringify(shown);
    if (made === drawn) return;
    drawn = made;
    replace(changes, ...shown.map(eventRow));
    if (!shown.length) changes.append(h("li", { class: "quiet" }, "Nothing was changed in this run yet."));
  }

  route.changed(() => {
    const asked = route.get("run");
    if (asked && asked !== run && rows.some((row) => row.id === asked)) choose(asked);
  });
  context.expose("steer", () => ({
    run, state: state.textContent, open: !controls.disabled, settings: settings.shown, answers: answers.told, events: events.length, waiting, paused: paused(),
  }));
  return {
    shown() {
      const asked = route.get("run");
      if (asked && asked !== run) {
        run = asked;
        settings.clear();
        controls.disabled = true;
      }
      read = null;
      refresher.start();
    },
    hidden: () => refresher.stop(),
  };
}

/** Without the token, and in exported files, nothing can be changed. */
function closed(container: HTMLElement, context: Context): Tab {
  const { api } = context;
  container.append(h("section", { class: "card empty steer-closed", id: "steer-closed" }, h("h2", null, api.live ? "Watching only" : "An exported page"),
    h("p", null, api.live
      ? "Changes need the token. Open the address that `wavedash watch` or `wavedash train --page` printed in the terminal: it ends with #token=…. Whoever has that address can steer."
      : "This file holds what a run was. To steer a run, open its page:"),
    api.live ? h("p", null, "In a terminal the same changes are made by:") : null,
    h("p", null, h("code", { class: "command" }, api.live ? "wavedash set RUN ppo.learning_rate=1e-4" : "wavedash watch RUN"))));
  context.expose("steer", () => ({ open: false, closed: true }));
  return { shown() {}, hidden() {} };
}
