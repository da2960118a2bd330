// The head of a run: its name and state, how far it is, how fast, what the machine has to do, and whether there is trouble.
import type { RunDetails, RunRow } from "../api";
import { bytes, count, h, property, replace, say } from "../dom";
import { percent, short, since, span } from "../words";

const PARTS = ["env", "inference", "gae", "update", "collect", "other"];
const MEANS: Record<string, string> = {
  env: "environments", inference: "policy while collecting", gae: "advantages", update: "learning", other: "everything else",
};
/** Counters of trouble in words. */
const TROUBLE: Record<string, string> = {
  worker_restarts: "restarts of workers", failed_saves: "failed saves", failed_ratings: "failed ratings", skipped_updates: "updates skipped by the NaN guard",
};
/** What is told among the counters, but is no trouble. */
const FACTS = ["checkpoint_age", "resumes"];

type Kind = "" | "good" | "warn" | "bad";

/** A number with its name; it keeps its place while it changes. */
class Tile {
  readonly element: HTMLElement;
  private readonly value = h("strong", { class: "number" }, "–");
  private readonly note = h("span", { class: "tile-note" });

  constructor(name: string, id: string) {
    this.element = h("div", { class: "tile", "data-tile": id }, h("span", { class: "tile-name" }, name), this.value, this.note);
  }

  show(value: string, note = "", kind: Kind = ""): void {
    say(this.value, value);
    say(this.note, note);
    const name = `tile ${kind}`.trim();
    if (this.element.className !== name) this.element.className = name;
  }
}

export class Overview {
  readonly element: HTMLElement;
  private readonly name = h("h1", { class: "run-name" });
  private readonly stamp = h("span", { class: "quiet small number" });
  private readonly state = h("span", { class: "chip" });
  private readonly phase = h("span", { class: "chip", hidden: true });
  private readonly bar = h("div", { class: "progress", role: "progressbar", "aria-label": "Steps", "aria-valuemin": 0, "aria-valuemax": 100 }, h("i"));
  private readonly tiles = {
    steps: new Tile("Steps", "steps"), speed: new Tile("Steps per second", "speed"), eta: new Tile("Time left", "eta"), learned: new Tile("Return", "return"),
    rating: new Tile("Rating", "rating"), saved: new Tile("Last checkpoint", "checkpoint"), cpu: new Tile("CPU", "cpu"), memory: new Tile("Memory", "memory"),
    gpu: new Tile("GPU", "gpu"), disk: new Tile("Disk", "disk"), trouble: new Tile("Health", "health"),
  };
  private readonly split = h("div", { class: "split", role: "img" });
  private readonly legend = h("div", { class: "row split-legend" });
  private drawn = "";

  /** `actions`: buttons that go elsewhere with this run. */
  constructor(actions: HTMLElement) {
    this.element = h("section", { class: "card overview", "aria-label": "The run" },
      h("div", { class: "row overview-title" }, this.name, this.state, this.phase, this.stamp, actions),
      this.bar, h("div", { class: "tiles" }, ...Object.values(this.tiles).map((tile) => tile.element)),
      h("div", { class: "split-row" }, this.split, this.legend));
  }

  show(row: RunRow, run: RunDetails, paused: boolean): void {
    const [name, ...stamp] = row.title.split("/");
    say(this.name, name);
    say(this.stamp, stamp.join("/"));
    say(this.state, paused ? "paused" : row.state);
    this.state.className = `chip ${paused || row.state === "stopped" ? "warn" : row.state === "running" ? "good" : ""}`;
    this.phase.hidden = !run.phase;
    say(this.phase, run.phase ? `phase ${run.phase}` : "");
    this.showProgress(row, run);
    this.showMachine(run);
    this.showTrouble(run);
    this.drawSplit(run.time_split ?? {});
  }

  private showProgress(row: RunRow, run: RunDetails): void {
    const { tiles } = this;
    const share = row.total_steps ? Math.min(1, row.steps / row.total_steps) : null;
    this.bar.setAttribute("aria-valuenow", String(Math.round((share ?? 0) * 100)));
    this.bar.hidden = share === null;
    property(this.bar, "--share", share ?? 0);
    tiles.steps.show(count(row.steps, 4), row.total_steps ? `${percent(share)} of ${count(row.total_steps)}` : "");
    tiles.speed.show(count(run.steps_per_second), row.state === "running" ? "" : "when it last ran");
    tiles.eta.show(row.state === "running" ? span(run.eta_seconds) : "–", row.state === "running" ? "at this speed" : row.state);
    tiles.learned.show(short(row.return), "mean of last episodes");
    tiles.rating.element.hidden = row.rating === null || row.rating === undefined;
    tiles.rating.show(`${Math.round(row.rating ?? 0)}`, "Elo");
    const saved = run.checkpoints[0];
    tiles.saved.show(saved ? `${span(since(saved.saved_at) ?? saved.age)}` : "none", saved ? `old, at step ${count(saved.step, 4)}` : "nothing is saved yet", saved ? "" : "warn");
  }

  private showMachine(run: RunDetails): void {
    const { tiles } = this;
    const machine = run.machine;
    const gpu = machine?.gpu ?? null;
    for (const tile of [tiles.cpu, tiles.memory, tiles.gpu]) tile.element.hidden = !machine;
    tiles.cpu.show(percent(machine?.cpu), machine?.cores ? `of ${machine.cores} cores` : "");
    tiles.memory.show(percent(machine?.memory), machine?.memory_total ? `${bytes(machine.memory_used)} of ${bytes(machine.memory_total)}` : "");
    tiles.gpu.show(gpu ? percent(gpu.used) : "none", gpu ? `${gpu.name}, ${bytes(gpu.memory)} of ${bytes(gpu.memory_total)}${gpu.temperature === null ? "" : `, ${Math.round(gpu.temperature)} °C`}` : "the server sees none");
    const disk = run.disk;
    const hours = disk?.hours_left ?? null;
    const known = disk?.free !== null && disk?.free !== undefined;
    tiles.disk.element.hidden = !disk;
    tiles.disk.show(bytes(known ? disk?.free : disk?.run_bytes), known ? `free; run ${bytes(disk?.run_bytes)}${hours === null ? "" : `; full in ${span(hours * 3600)}`}` : "taken by the run",
      hours !== null && hours < 2 ? "bad" : hours !== null && hours < 24 ? "warn" : "");
  }

  private showTrouble(run: RunDetails): void {
    const found = Object.entries(run.health ?? {}).filter(([name, value]) => !FACTS.includes(name) && Number(value) > 0);
    const resumed = Number(run.health?.resumes ?? 0);
    const history = resumed ? `resumed ${resumed === 1 ? "once" : `${resumed} times`}` : "never interrupted";
    const words = found.map(([name, value]) => `${count(Number(value))} ${TROUBLE[name] ?? name.replace(/_/g, " ")}`);
    this.tiles.trouble.show(words.length ? "look" : "well", words.length ? `${words.join(", ")}; ${history}` : `no restarts, no skipped updates; ${history}`, words.length ? "warn" : "good");
  }

  /** The parts of an iteration, as one bar. */
  private drawSplit(split: Record<string, number>): void {
    const sum = Object.values(split).reduce((a, b) => a + b, 0);
    const place = (name: string) => (PARTS.indexOf(name) < 0 ? PARTS.length : PARTS.indexOf(name));
    const parts = Object.entries(split).sort(([a], [b]) => place(a) - place(b)).map(([name, value]) => ({ name, share: sum ? value / sum : 0 }));
    const drawn = JSON.stringify(parts.map(({ name, share }) => [name, Math.round(share * 200)]));
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.split.setAttribute("aria-label", `Time of an iteration: ${parts.map(({ name, share }) => `${name} ${percent(share)}`).join(", ") || "not known yet"}`);
    replace(this.split, ...parts.map(({ name, share }, i) => {
      const part = h("span", { class: `part part-${i % 6}`, title: `${name} ${percent(share)}` });
      property(part, "flex-grow", share);
      return part;
    }));
    replace(this.legend, parts.length ? h("span", { class: "quiet small" }, "Time of an iteration") : null,
      ...parts.map(({ name, share }, i) => h("span", { class: `legend part-${i % 6}`, title: MEANS[name] ?? name }, `${name} ${Math.round(share * 100)} %`)));
  }
}
