// The tab Steer: what `wavedash set` can change, and orders. It shows what the run answered, never what was hoped for.
import type { RunRow, Settings } from "../api";
import type { Context, Tab } from "../context";
import { h, replace } from "../dom";
import { editor, parse, text } from "./editor";

const EXPLAINED: Record<string, string> = {
  save: "Writes a checkpoint of this step", pause: "Waits between two iterations", continue: "Goes on after a pause", stop: "Saves the run and ends it",
};

export function mountSteer(container: HTMLElement, context: Context): Tab {
  const { api, about } = context;
  if (!api.live || !about.writable) {
    container.append(h("section", { class: "card steer-closed" }, h("h2", null, api.live ? "Watching only" : "An exported page"),
      h("p", null, api.live
        ? "Changes need the token. Open the address that `wavedash watch` or `wavedash train --page` printed: it ends with #token=…. Whoever has that address can steer."
        : "This file holds what a run was. To steer a run, open its page: wavedash watch RUN.")));
    return { shown() {}, hidden() {} };
  }

  const choice = h("select", { class: "input", "aria-label": "Run to steer", id: "steer-run", onchange: () => void open(choice.value) });
  const state = h("p", { class: "quiet", role: "status", id: "steer-state" });
  const orders = h("div", { class: "row orders" });
  const filter = h("input", { class: "input", type: "search", placeholder: "Filter settings…", "aria-label": "Filter settings", oninput: () => sift() });
  const rows = h("div", { class: "settings" });
  const said = h("ol", { class: "said", "aria-live": "polite", "aria-label": "What the run answered" });
  const otherKey = h("input", { class: "input number", "aria-label": "Any key", placeholder: "ppo.learning_rate", spellcheck: "false", id: "steer-key" });
  const otherValue = h("input", { class: "input number", "aria-label": "Its value", placeholder: "1e-4", spellcheck: "false", id: "steer-value" });
  const label = h("input", { class: "input", "aria-label": "Label of the milestone", placeholder: "label (optional)", maxlength: 60, id: "steer-label" });
  const sure = h("dialog", { "aria-label": "Stop the run?" });
  const controls = h("fieldset", { class: "steer-controls" },
    h("section", { class: "card" }, h("h2", null, "Orders"), orders),
    h("section", { class: "card" }, h("div", { class: "row" }, h("h2", { class: "grow" }, "Settings"), filter), rows,
      h("form", { class: "row other", onsubmit: (event: Event) => {
        event.preventDefault();
        if (otherKey.value.trim()) void ask({ [otherKey.value.trim()]: parse(otherValue.value) }, []);
      } }, h("span", { class: "quiet" }, "Any key"), otherKey, otherValue, h("button", { class: "button", type: "submit" }, "Set"))));
  container.append(h("div", { class: "steer-page" },
    h("div", { class: "card row" }, h("label", { class: "field grow" }, "Run", choice), state), controls,
    h("section", { class: "card" }, h("h2", null, "What the run answered"), said), sure));
  controls.disabled = true;
  let run = "";
  let known: RunRow[] = [];

  function tell(asked: string, answer: string, good: boolean | null): HTMLElement {
    const row = h("li", { class: good === null ? "waiting" : good ? "done" : "refused" }, h("code", null, asked), h("pre", null, answer),
      h("time", { class: "quiet" }, new Date().toLocaleTimeString()));
    said.prepend(row);
    return row;
  }

  /** Asks the run, waits for its answer, and reads the settings again, so that they are what the run has. */
  async function ask(values: Record<string, unknown>, words: string[]): Promise<void> {
    const asked = [...Object.entries(values).map(([key, value]) => `${key}=${text(value)}`), ...words].join(" ");
    const waiting = tell(asked, "waiting for the run, which answers between two iterations…", null);
    try {
      const answer = await api.set(run, values, words);
      waiting.remove();
      tell(asked, Array.isArray(answer.said) ? answer.said.join("\n") : answer.said, answer.done);
    } catch (error) {
      waiting.remove();
      tell(asked, error instanceof Error ? error.message : String(error), false);
    }
    await open(run);
  }

  function order(word: string): HTMLElement {
    const plain = (name: string, title: string, go: () => void, kind = "") => h("button", { class: `button ${kind}`, type: "button", title, onclick: go }, name);
    if (word === "stop") return plain("Stop…", EXPLAINED.stop, () => confirmStop(), "danger");
    if (word === "milestone") {
      return h("span", { class: "row order-group" }, plain("Milestone", "Keeps this version for ever", () => {
        const name = label.value.trim();
        void ask({}, [name ? `milestone=${name}` : "milestone"]);
      }), label);
    }
    if (word === "phase") {
      return h("span", { class: "row order-group" }, ...[["Phase back", "phase=back"], ["Phase?", "phase"], ["Phase next", "phase=next"]]
        .map(([name, text]) => plain(name, `wavedash set RUN ${text}`, () => void ask({}, [text]))));
    }
    return plain(word.charAt(0).toUpperCase() + word.slice(1), EXPLAINED[word] ?? `wavedash set RUN ${word}`, () => void ask({}, [word]));
  }

  function confirmStop(): void {
    replace(sure, h("h2", null, "Stop the run?"), h("p", null, "It is saved and ends after this iteration. `wavedash resume` goes on with it."),
      h("div", { class: "row" }, h("button", { class: "button danger", type: "button", onclick: () => { sure.close(); void ask({}, ["stop"]); } }, "Stop it"),
        h("button", { class: "button", type: "button", onclick: () => sure.close() }, "Let it run")));
    sure.showModal();
  }

  function draw(settings: Settings): void {
    const words = settings.orders.map(String).filter((word) => word !== "list");
    replace(orders, ...words.map(order));
    const names = new Set(settings.settings.map(({ key }) => key));
    // A weight has two names; the shorter one is enough.
    const shown = settings.settings.filter(({ key }) => !(key.endsWith(".weight") && names.has(key.slice(0, -7))));
    replace(rows, ...shown.map(({ key, value }) => {
      const edit = editor(key, value);
      return h("form", { class: "setting", "data-key": key, onsubmit: (event: Event) => {
        event.preventDefault();
        void ask({ [key]: edit.value() }, []);
      } }, h("code", { title: key }, key), h("output", { class: "number", title: "Value now" }, text(value)), edit.element,
      h("button", { class: "button", type: "submit", "aria-label": `Set ${key}` }, "Set"));
    }));
    sift();
  }

  function sift(): void {
    const wanted = filter.value.toLowerCase();
    for (const row of rows.children as HTMLCollectionOf<HTMLElement>) row.hidden = !row.dataset.key?.toLowerCase().includes(wanted);
  }

  async function open(id: string): Promise<void> {
    run = id;
    const row = known.find((one) => one.id === id);
    try {
      draw(await api.settings(id));
      controls.disabled = false;
      state.textContent = "The run listens.";
    } catch (error) {
      controls.disabled = true;
      state.textContent = error instanceof Error ? error.message : `${row?.title ?? id} is not being trained`;
    }
  }

  async function refresh(): Promise<void> {
    known = await api.runs();
    const running = known.filter((row) => row.state === "running");
    const asked = context.route.get("run") ?? about.run;
    replace(choice, ...[...running, ...known.filter((row) => row.state !== "running")].map((row) => h("option", { value: row.id }, `${row.title} (${row.state})`)));
    const first = known.find((row) => row.id === (run || asked)) ?? running[0] ?? known[0];
    if (!first) {
      state.textContent = "There are no runs yet.";
      return;
    }
    choice.value = first.id;
    await open(first.id);
  }

  return {
    shown: () => void refresh().catch((error: Error) => { state.textContent = error.message; }),
    hidden() {},
  };
}
