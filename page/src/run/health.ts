// Whether a run is well: speed, time split, checkpoints, counters of trouble, disk and machine, configuration and log.
import type { RunDetails, RunRow } from "../api";
import { bytes, count, h, property, replace } from "../dom";
import { when } from "./events";

const PARTS = ["env", "inference", "gae", "update", "collect", "other"];

type Piece = HTMLElement | null;

function tile(name: string, value: string, note = "", kind = ""): HTMLElement {
  return h("div", { class: `tile ${kind}` }, h("span", { class: "tile-name" }, name), h("strong", { class: "number" }, value), h("span", { class: "quiet" }, note));
}

/** Seconds as "3 min". */
export function span(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  for (const [unit, name] of [[86400, "d"], [3600, "h"], [60, "min"]] as const) if (seconds >= unit) return `${+(seconds / unit).toPrecision(2)} ${name}`;
  return `${Math.round(seconds)} s`;
}

function percent(value: unknown): string {
  return typeof value === "number" ? `${Math.round(value > 1.5 ? value : value * 100)} %` : "–";
}

/** A number that may be bytes, a share or a record with used and total. */
function memory(value: unknown): string {
  if (value && typeof value === "object") {
    const { used, total } = value as { used?: number; total?: number };
    return total ? `${bytes(used ?? 0)} of ${bytes(total)}` : JSON.stringify(value);
  }
  return typeof value === "number" && value > 1000 ? bytes(value) : percent(value);
}

export class Health {
  readonly element: HTMLElement;
  private readonly tiles = h("div", { class: "tiles" });
  private readonly split = h("div", { class: "split", role: "img" });
  private readonly legend = h("div", { class: "row split-legend" });
  private readonly saved = h("div", { class: "scroll" });
  private readonly config = h("pre", { class: "config", tabindex: 0, "aria-label": "Configuration" });
  private readonly find = h("input", { class: "input", type: "search", placeholder: "Find in the configuration…", "aria-label": "Find in the configuration", oninput: () => this.drawConfig() });
  private readonly log = h("pre", { class: "log", tabindex: 0, "aria-label": "The last lines of the log" });
  private text = "";

  constructor(events: HTMLElement) {
    this.element = h("section", { class: "health", "aria-label": "Health" },
      h("div", { class: "card" }, this.tiles, this.split, this.legend),
      h("div", { class: "health-grid" },
        h("section", { class: "card", "aria-label": "Checkpoints" }, h("h2", null, "Checkpoints and milestones"), this.saved),
        events,
        h("section", { class: "card" }, h("div", { class: "row" }, h("h2", { class: "grow" }, "Configuration"), this.find), this.config),
        h("section", { class: "card" }, h("h2", null, "Log"), this.log)));
  }

  show(row: RunRow, run: RunDetails): void {
    const share = row.total_steps ? row.steps / row.total_steps : null;
    const state = row.state === "running" ? "good" : row.state === "stopped" ? "warn" : "";
    const disk = run.disk;
    const full = disk?.hours_left !== null && disk?.hours_left !== undefined && disk.hours_left < 24;
    const trouble = Object.entries(run.health ?? {}).filter(([, value]) => Number(value) > 0);
    const machine = run.machine;
    const gpu = machine?.gpu;
    const pieces: Piece[] = [
      tile("State", row.state, run.phase ?? "", state),
      tile("Steps", count(row.steps, 4), row.total_steps ? `${Math.min(100, Math.round((share ?? 0) * 100))} % of ${count(row.total_steps)}` : ""),
      tile("Steps/s", count(run.steps_per_second), row.state === "running" ? `${span(run.eta_seconds)} to go` : ""),
      tile("Checkpoint", run.checkpoints.length ? span(newest(run)) : "none", run.checkpoints.length ? "old" : ""),
      disk ? tile("Disk", `${bytes(disk.free)} free`, `run ${bytes(disk.run_bytes)}${disk.hours_left === null ? "" : `, full in ${span(disk.hours_left * 3600)}`}`, full ? "bad" : "") : null,
      machine ? tile("CPU", percent(machine.cpu), `memory ${memory(machine.memory)}`) : null,
      gpu ? tile("GPU", String(gpu.name ?? percent(gpu.load ?? gpu.utilisation)), memory(gpu.memory ?? gpu)) : null,
      tile("Trouble", trouble.length ? trouble.map(([name, value]) => `${count(Number(value))} ${name.replace(/^.*\//, "").replace(/_/g, " ")}`).join(", ") : "none",
        trouble.length ? "" : "no restarts, no skipped updates", trouble.length ? "warn" : "good"),
    ];
    replace(this.tiles, ...pieces);
    this.drawSplit(run.time_split ?? {});
    this.drawSaved(run);
    if (this.text !== run.config) {
      this.text = run.config ?? "";
      this.drawConfig();
    }
    const lines = run.log ?? (run["recent log lines"] as string[] | undefined) ?? [];
    const said = lines.join("\n") || "no lines yet";
    if (this.log.textContent !== said) {
      this.log.textContent = said;
      this.log.scrollTop = this.log.scrollHeight;
    }
  }

  private drawSplit(split: Record<string, number>): void {
    const sum = Object.values(split).reduce((a, b) => a + b, 0) || 1;
    const parts = Object.entries(split).sort(([a], [b]) => PARTS.indexOf(a) - PARTS.indexOf(b));
    this.split.setAttribute("aria-label", `Time split: ${parts.map(([name, value]) => `${name} ${Math.round((value / sum) * 100)} %`).join(", ")}`);
    replace(this.split, ...parts.map(([name, value], i) => {
      const part = h("span", { class: `part part-${i % 6}`, title: name });
      property(part, "flex-grow", value / sum);
      return part;
    }));
    replace(this.legend, ...parts.map(([name, value], i) => h("span", { class: `legend part-${i % 6}` }, `${name} ${Math.round((value / sum) * 100)} %`)));
  }

  private drawSaved(run: RunDetails): void {
    const rows = [
      ...run.milestones.map((one) => ({ name: `milestone ${String(one.name ?? "")}`, step: Number(one.step ?? 0), age: one.age as number | null, saved_at: one.saved_at, bytes: one.bytes as number })),
      ...run.checkpoints,
    ].sort((a, b) => b.step - a.step);
    if (!rows.length) return replace(this.saved, h("p", { class: "quiet" }, "Nothing is saved yet."));
    replace(this.saved, h("table", { class: "table" },
      h("thead", null, h("tr", null, ...["Name", "Step", "Age", "Size"].map((name) => h("th", null, name)))),
      h("tbody", null, ...rows.map((one) => h("tr", null, h("td", null, one.name), h("td", { class: "number" }, count(one.step, 4)),
        h("td", { title: when(one.saved_at) }, span(one.age)), h("td", { class: "number" }, bytes(one.bytes)))))));
  }

  private drawConfig(): void {
    const wanted = this.find.value.toLowerCase();
    const lines = this.text.split("\n");
    this.config.textContent = (wanted ? lines.filter((line) => line.toLowerCase().includes(wanted)) : lines).join("\n") || "no line has these words";
  }
}

function newest(run: RunDetails): number | null {
  const ages = run.checkpoints.map((one) => one.age).filter((age): age is number => age !== null);
  return ages.length ? Math.min(...ages) : null;
}

