// The panel with recorded games: those of the server by run, and those that were dropped into this browser.
import { ApiError, type RecordingRow, type RunRow } from "../api";
import type { Context } from "../context";
import { clock, h, replace } from "../dom";
import { shortName } from "../names";
import type { Recording } from "../recording";
import { fileButton, fileName, saveAs } from "./drop";
import { icon, iconButton } from "./icons";

export interface LocalRecording { name: string; recording: Recording }

export interface RecordingActions {
  open(id: string): void;
  openLocal(local: LocalRecording): void;
  files(files: File[]): void;
  close(): void;
}

const HERE = "Played on this page";
const EVERY_MS = 15_000;

/** How long ago something was, in few words. */
export function age(created: string, now = Date.now()): string {
  const seconds = (now - Date.parse(created)) / 1000;
  if (!Number.isFinite(seconds)) return "";
  for (const [unit, name] of [[86400, "d"], [3600, "h"], [60, "min"]] as const) {
    if (seconds >= unit) return `${Math.floor(seconds / unit)} ${name} ago`;
  }
  return "now";
}

function playersOf(row: RecordingRow): string {
  const names = row.players.map((player) => (typeof player === "string" ? { name: player, team: 0 } : player));
  const sides = [0, 1].map((team) => [...new Set(names.filter((player) => (player.team ?? 0) === team).map((player) => player.name))].join(" + "));
  return sides.filter(Boolean).join(" vs ");
}

export class RecordingsPanel {
  readonly element: HTMLElement;
  readonly local: LocalRecording[] = [];
  rows: RecordingRow[] = [];
  private runs: RunRow[] = [];
  private readonly list = h("div", { class: "rec-list" });
  private readonly filter: HTMLInputElement;
  private readonly note = h("p", { class: "quiet small", role: "status" });
  private current = "";
  private timer = 0;

  constructor(private readonly context: Context, private readonly actions: RecordingActions) {
    this.filter = h("input", { class: "input", type: "search", placeholder: "Filter by player, run or kind", "aria-label": "Filter recordings", id: "rec-filter", oninput: () => this.draw() });
    this.element = h("aside", { class: "panel recordings", "aria-label": "Recordings", id: "recordings", hidden: true },
      h("header", { class: "panel-head" }, h("h2", null, "Recordings"), fileButton((files) => actions.files(files)),
        iconButton("close", "Close recordings", () => actions.close(), { key: "O" })),
      this.filter, this.note, this.list);
  }

  get open(): boolean {
    return !this.element.hidden;
  }

  toggle(open = !this.open): void {
    this.element.hidden = !open;
    clearInterval(this.timer);
    if (!open) return;
    void this.refresh();
    this.timer = window.setInterval(() => {
      if (!document.hidden) void this.refresh();
    }, EVERY_MS);
    this.filter.focus();
  }

  /** Asks the server again. */
  async refresh(): Promise<void> {
    try {
      this.rows = await this.context.api.recordings();
      this.note.textContent = "";
      this.runs = await this.context.api.runs().catch(() => []);
    } catch (error) {
      this.note.textContent = error instanceof ApiError ? `The list cannot be read: ${error.message}` : "The list cannot be read: the server does not answer.";
    }
    this.draw();
  }

  addLocal(local: LocalRecording): void {
    this.local.unshift(local);
    this.draw();
  }

  /** The name of a recording of this browser; empty: it is none. */
  nameOf(recording: Recording | null): string {
    return this.local.find((local) => local.recording === recording)?.name ?? "";
  }

  /** Which recording is shown now: an id, or the name of a local one. */
  mark(current: string): void {
    this.current = current;
    this.draw();
  }

  private draw(): void {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = (text: string): boolean => words.every((word) => text.toLowerCase().includes(word));
    const groups = new Map<string, HTMLElement[]>();
    const put = (group: string, element: HTMLElement): void => void groups.set(group, [...(groups.get(group) ?? []), element]);
    for (const local of this.local) {
      if (wanted(`${local.name} ${local.recording.header.title}`)) put("In this browser", this.drawLocal(local));
    }
    for (const row of this.rows) {
      const group = row.run === null ? HERE : this.runs.find((run) => run.id === row.run)?.title ?? "Another run";
      if (wanted(`${row.title} ${group} ${row.source} ${playersOf(row)}`)) put(group, this.drawRow(row));
    }
    const empty = words.length ? "Nothing fits the filter." : "There are no recordings yet. Matches, evaluations and highlights of a run appear here, and what you record or drop onto the page.";
    replace(this.list, ...[...groups].map(([group, elements]) => h("section", null, h("h3", null, group), ...elements)), groups.size || this.note.textContent ? null : h("p", { class: "quiet" }, empty));
  }

  private entry(key: string, title: string, who: string, facts: string[], source: string, open: () => void, save: () => void): HTMLElement {
    return h("div", { class: key === this.current ? "rec current" : "rec" },
      h("button", { class: "rec-open", type: "button", "data-id": key, "aria-current": key === this.current ? "true" : null, onclick: open },
        h("span", { class: "rec-title" }, title), title.includes(who) ? null : h("span", { class: "rec-who" }, who),
        h("span", { class: "rec-facts" }, h("span", { class: `chip ${source}` }, source), ...facts.filter(Boolean).map((fact) => h("span", { class: "number" }, fact)))),
      h("button", { class: "tool", type: "button", "aria-label": `Download ${title}`, title: "Download", onclick: save }, icon("download")));
  }

  private drawRow(row: RecordingRow): HTMLElement {
    const score = row.score ? `${row.score[0]}:${row.score[1]}` : "";
    const goals = row.events.filter((event) => event.kind === "goal").length;
    const facts = [score || (goals ? `${goals} ${goals === 1 ? "goal" : "goals"}` : ""), clock(row.seconds), age(row.created)];
    const title = shortName(row.title || playersOf(row));
    const save = async (): Promise<void> => {
      try {
        saveAs(new Blob([await this.context.api.recording(row.id)]), fileName(title));
      } catch (error) {
        this.context.say(`The recording cannot be downloaded: ${error instanceof Error ? error.message : String(error)}`, "bad");
      }
    };
    return this.entry(row.id, title, shortName(playersOf(row)), facts, row.source, () => this.actions.open(row.id), () => void save());
  }

  private drawLocal(local: LocalRecording): HTMLElement {
    const { recording, name } = local;
    const save = async (): Promise<void> => saveAs(await recording.pack(), fileName(recording.header.title));
    return this.entry(name, shortName(recording.header.title), "", [clock(recording.duration), age(recording.header.created)], "file", () => this.actions.openLocal(local), () => void save());
  }
}
