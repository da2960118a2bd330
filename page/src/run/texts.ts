// The configuration, the command and the log of a run: texts to search and to copy.
import type { RunDetails } from "../api";
import type { Context } from "../context";
import { h, replace, say } from "../dom";

/** A button that copies a text, and says whether it could. */
export function copyButton(context: Context, what: string, text: () => string): HTMLElement {
  return h("button", { class: "button small-button", type: "button", "aria-label": `Copy ${what}`, onclick: () => {
    // Browsers give pages the clipboard only over https and on this machine.
    const copied = navigator.clipboard?.writeText(text()) ?? Promise.reject(new Error("no clipboard"));
    copied.then(() => context.say(`${what} copied`, "good"), () => context.say(`This browser does not let pages copy here: select ${what} by hand`, "bad"));
  } }, "Copy");
}

export class Texts {
  readonly config: HTMLElement;
  readonly log: HTMLElement;
  private readonly command = h("code", { class: "command", id: "run-command" });
  private readonly versions = h("p", { class: "quiet small" });
  private readonly text = h("pre", { class: "config", tabindex: 0, "aria-label": "Configuration" });
  private readonly find = h("input", { class: "input", type: "search", placeholder: "Find lines…", "aria-label": "Find in the configuration", oninput: () => this.sift() });
  private readonly lines = h("pre", { class: "log", tabindex: 0, "aria-label": "The last lines of the log" });
  private yaml = "";

  constructor(context: Context) {
    this.config = h("section", { class: "card", "aria-label": "Configuration" },
      h("h2", null, "Command"), h("div", { class: "row command-row" }, this.command, copyButton(context, "the command", () => this.command.textContent ?? "")), this.versions,
      h("div", { class: "row" }, h("h2", { class: "grow" }, "Configuration"), h("div", { class: "find" }, this.find), copyButton(context, "the configuration", () => this.yaml)), this.text);
    this.log = h("section", { class: "card", "aria-label": "Log" }, h("h2", null, "The last lines of the log"), this.lines);
  }

  show(run: RunDetails): void {
    say(this.command, run.command ?? "not known");
    const { python, packages, host, cpus, gpus, git_commit: commit } = (run.versions ?? {}) as Record<string, unknown>;
    const torch = (packages as Record<string, unknown> | undefined)?.torch;
    const named = Array.isArray(gpus) && gpus.length ? `GPU ${gpus.map((gpu) => (typeof gpu === "string" ? gpu : String((gpu as { name?: string })?.name ?? "GPU"))).join(", ")}` : null;
    say(this.versions, [host ? `on ${String(host)}` : null, cpus ? `${String(cpus)} cores` : null, named, python ? `Python ${String(python)}` : null,
      torch ? `torch ${String(torch)}` : null, commit ? `commit ${String(commit).slice(0, 10)}` : null, run.starts && run.starts > 1 ? `started ${run.starts} times` : null].filter(Boolean).join(" · "));
    if (this.yaml !== run.config) {
      this.yaml = run.config ?? "";
      this.sift();
    }
    this.showLog((run.log ?? []).join("\n") || "No lines yet.");
  }

  private showLog(text: string): void {
    if (this.lines.textContent === text) return;
    const atEnd = this.lines.scrollHeight - this.lines.scrollTop - this.lines.clientHeight < 40;
    this.lines.textContent = text;
    if (atEnd) this.lines.scrollTop = this.lines.scrollHeight;
  }

  /** Shows the lines that have these words, each below the keys that it is under. */
  private sift(): void {
    const wanted = this.find.value.trim().toLowerCase();
    const lines = this.yaml.split("\n");
    if (!wanted) {
      replace(this.text, this.yaml);
      return;
    }
    const kept = new Set<number>();
    const above: number[] = [];
    lines.forEach((line, at) => {
      const depth = line.search(/\S/);
      while (above.length && lines[above[above.length - 1]].search(/\S/) >= depth) above.pop();
      if (line.toLowerCase().includes(wanted)) [...above, at].forEach((one) => kept.add(one));
      if (depth >= 0) above.push(at);
    });
    replace(this.text, [...kept].sort((a, b) => a - b).map((at) => lines[at]).join("\n") || "No line has these words.");
  }
}
