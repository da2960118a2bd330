// The settings that may change while a run runs, in groups. Several can be changed together: then all of them are, or none.
import type { Settings as Listed } from "../api";
import { h, replace, say } from "../dom";
import { editor, text, type Editor } from "./editor";

interface Row { key: string; value: unknown; form: HTMLElement; now: HTMLElement; edit: Editor }

const GROUPS: [string, RegExp][] = [
  ["Learning", /^(ppo|distill)\./], ["Rewards", /\.rewards?\.|reward_mode|dense_scale|team_spirit|zero_sum/], ["Starts and endings", /\.(starts|endings|lanes)\./],
  ["Opponents and rating", /^(opponents|rating)\./], ["Checkpoints and milestones", /^(checkpoint|milestones)\./],
];

export class Settings {
  readonly element: HTMLElement;
  private readonly body = h("div", { class: "settings" });
  private readonly filter = h("input", { class: "input", type: "search", placeholder: "Find settings…", "aria-label": "Find settings", oninput: () => this.sift() });
  private readonly together = h("button", { class: "button primary", type: "button", id: "steer-together", onclick: () => this.sendAll() });
  private readonly back = h("button", { class: "button", type: "button", onclick: () => this.undo() }, "Undo");
  private readonly bar = h("div", { class: "row changed-bar", hidden: true }, this.together, this.back);
  private rows: Row[] = [];
  private readonly settled = new Set<string>();
  private made = "";

  constructor(private readonly send: (values: Record<string, unknown>) => void) {
    this.element = h("section", { class: "card", "aria-label": "Settings" },
      h("div", { class: "row" }, h("h2", { class: "grow" }, "Settings"), h("div", { class: "find" }, this.filter)), this.body, this.bar);
  }

  /** What the run has, for tests. */
  get shown(): { key: string; value: unknown }[] {
    return this.rows.map(({ key, value }) => ({ key, value }));
  }

  /** Shows what the run has. What a user is typing stays. */
  show(listed: Listed): void {
    const names = new Set(listed.settings.map(({ key }) => key));
    // A weight has two names; the shorter one is enough.
    const wanted = listed.settings.filter(({ key }) => !(key.endsWith(".weight") && names.has(key.slice(0, -7))));
    const made = JSON.stringify(wanted.map(({ key, choices }) => [key, choices]));
    if (made !== this.made) this.make(wanted, made);
    wanted.forEach(({ value }, i) => {
      const row = this.rows[i];
      const typed = this.isChanged(row);
      row.value = value;
      say(row.now, text(value));
      if (!typed || this.settled.delete(row.key)) row.edit.set(value);
    });
    this.count();
  }

  clear(): void {
    this.settled.clear();
    this.made = "";
    this.rows = [];
    replace(this.body);
    this.count();
  }

  /** These keys were set: what was typed for them is replaced by what the run tells next. */
  settle(keys: string[]): void {
    keys.forEach((key) => this.settled.add(key));
  }

  private make(wanted: Listed["settings"], made: string): void {
    this.made = made;
    this.rows = wanted.map(({ key, value, help, choices }) => this.row(key, value, help, choices));
    const left = new Set(this.rows);
    const groups = GROUPS.map(([title, pattern]) => ({ title, rows: [...left].filter((row) => pattern.test(row.key) && left.delete(row)) }));
    groups.push({ title: "Other", rows: [...left] });
    replace(this.body, ...groups.filter(({ rows }) => rows.length).map(({ title, rows }) => h("details", { class: "setting-group", open: true },
      h("summary", null, h("h3", null, title), h("span", { class: "quiet small" }, ` ${rows.length}`)), ...rows.map((row) => row.form))));
    this.sift();
  }

  private row(key: string, value: unknown, help: string | undefined, choices: string[] | undefined): Row {
    const now = h("output", { class: "number", title: "What the run has now" }, text(value));
    const edit = editor(key, value, choices, () => this.count());
    const form = h("form", { class: "setting", "data-key": key, onsubmit: (event: Event) => {
      event.preventDefault();
      this.send({ [key]: edit.value() });
    } }, h("div", { class: "setting-name" }, h("code", null, key), help ? h("p", { class: "quiet small" }, help) : null), now, edit.element,
    h("button", { class: "button", type: "submit", "aria-label": `Set ${key}` }, "Set"));
    return { key, value, form, now, edit };
  }

  private isChanged(row: Row): boolean {
    return text(row.edit.value()) !== text(row.value);
  }

  private count(): void {
    const changed = this.rows.filter((row) => this.isChanged(row));
    for (const row of this.rows) row.form.classList.toggle("changed", changed.includes(row));
    this.bar.hidden = changed.length < 2;
    say(this.together, `Set these ${changed.length} together`);
  }

  private sendAll(): void {
    const changed = this.rows.filter((row) => this.isChanged(row));
    if (changed.length) this.send(Object.fromEntries(changed.map((row) => [row.key, row.edit.value()])));
  }

  private undo(): void {
    for (const row of this.rows) row.edit.set(row.value);
    this.count();
  }

  private sift(): void {
    const wanted = this.filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    for (const { form, key } of this.rows) form.hidden = !wanted.every((word) => key.toLowerCase().includes(word) || (form.textContent ?? "").toLowerCase().includes(word));
    for (const group of this.body.children) (group as HTMLElement).hidden = ![...group.querySelectorAll<HTMLElement>(".setting")].some((form) => !form.hidden);
  }
}
