// The dialog in which both sides of a game are chosen.
import type { Player } from "../api";
import type { Context } from "../context";
import { h, replace } from "../dom";
import { iconButton } from "./icons";
import { Side } from "./side";

/** What the user has chosen, as the command `play` takes it. */
export interface Choice { blue: string; orange: string; size: number; simulator: string; start: string; deterministic: boolean }

const SIMULATORS: [string, string][] = [["rocketsim", "RocketSim"], ["warp", "Warp (ours)"]];
export const NEEDS_TOKEN = "This needs the token: open the address with #token=… that was printed in the terminal.";

export class Chooser {
  private readonly dialog: HTMLDialogElement;
  private readonly blue = new Side("Blue", "blue", () => this.check());
  private readonly orange = new Side("Orange", "orange", () => this.check());
  private readonly size: HTMLSelectElement;
  private readonly simulator: HTMLSelectElement;
  private readonly start: HTMLSelectElement;
  private readonly sampled: HTMLInputElement;
  private readonly note = h("p", { class: "small quiet", role: "status" });
  private readonly title = h("h2", null, "Who plays whom");
  private readonly play: HTMLButtonElement;
  private players: Player[] = [];
  private done: ((choice: Choice) => void) | null = null;
  private fixedSize: number | null = null;

  constructor(private readonly context: Context) {
    const option = ([value, text]: [string, string]): HTMLElement => h("option", { value }, text);
    this.size = h("select", { class: "input", id: "choose-size", onchange: () => this.check() }, ...[1, 2, 3].map((size) => option([String(size), `${size}v${size}`])));
    this.simulator = h("select", { class: "input", id: "choose-simulator" }, ...SIMULATORS.map(option));
    this.start = h("select", { class: "input", id: "choose-start" }, option(["kickoff", "kickoff"]));
    this.sampled = h("input", { type: "checkbox", id: "choose-sampled" });
    this.play = h("button", { class: "button primary", type: "submit", id: "choose-play" }, "Play");
    const field = (text: string, input: HTMLElement): HTMLElement => h("label", { class: "field" }, text, input);
    const form = h("form", { method: "dialog", onsubmit: (event: Event) => this.submit(event) },
      h("header", { class: "panel-head" }, this.title, iconButton("close", "Close", () => this.dialog.close())),
      h("div", { class: "sides" }, this.blue.element, iconButton("swap", "Swap sides", () => this.swap(), { class: "swap" }), this.orange.element),
      h("div", { class: "choose-options" }, field("Team size", this.size), field("Simulator", this.simulator), field("Start", this.start),
        h("label", { class: "check", title: "Actions are drawn by their probabilities instead of always taking the likeliest one" }, this.sampled, "Sample actions")),
      this.note,
      h("footer", { class: "row end" }, h("button", { class: "button", type: "button", onclick: () => this.dialog.close() }, "Cancel"), this.play));
    this.dialog = h("dialog", { class: "chooser", "aria-label": "Choose players", id: "chooser" }, form);
    document.body.append(this.dialog);
  }

  /** Opens the dialog. `done` gets the choice; `who` are names of those who play now; `size` fixes the size of teams. */
  async open(done: (choice: Choice) => void, who: { blue: string | null; orange: string | null } | null, options: { size?: number; title?: string } = {}): Promise<void> {
    this.done = done;
    this.fixedSize = options.size ?? null;
    this.title.textContent = options.title ?? "Who plays whom";
    if (options.size) this.size.value = String(options.size);
    this.size.disabled = !!options.size;
    this.check();
    if (!this.dialog.open) this.dialog.showModal();
    try {
      const [players, starts] = await Promise.all([this.context.api.players(), this.context.api.starts().catch(() => ["kickoff"])]);
      this.players = players.map((player) => (player.kind === "other" ? { ...player, refused: player.refused ?? "Only Rocket League and walking robots can be shown; its curves are in the tab Run." } : player));
      const kept = this.start.value;
      replace(this.start, ...starts.map((name) => h("option", { value: name }, name)));
      this.start.value = starts.includes(kept) ? kept : starts.includes("kickoff") ? "kickoff" : starts[0] ?? "";
      this.blue.fill(this.players, who?.blue ?? null);
      this.orange.fill(this.players, who?.orange ?? who?.blue ?? null);
      this.check();
    } catch (error) {
      this.note.textContent = `The players cannot be listed: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  private swap(): void {
    const [blue, orange] = [this.blue.chosen, this.orange.chosen];
    this.blue.choose(orange);
    this.orange.choose(blue);
    this.check();
  }

  private entry(id: string | null): Player | undefined {
    return this.players.find((player) => player.id === id);
  }

  /** Says what stands against the choice, and what is worth knowing about it. */
  private check(): void {
    const [blue, orange] = [this.entry(this.blue.chosen), this.entry(this.orange.chosen)];
    const walks = blue?.kind === "walk";
    this.orange.element.hidden = walks;
    const size = Number(this.size.value);
    const others = [blue, orange].filter((player) => player?.size && Number(player.size) !== size).map((player) => `${player!.name} was trained for ${player!.size}v${player!.size}`);
    let text = "";
    if (!this.context.about.writable) text = NEEDS_TOKEN;
    else if (!walks && orange?.kind === "walk") text = "A robot walks alone: choose it for blue.";
    else if (walks) text = "A robot walks alone; its terrain can be chosen when it walks.";
    else if (others.length) text = `${others.join("; ")}. The stage says whether it can play here.`;
    this.note.textContent = text;
    this.play.disabled = !this.context.about.writable || !blue || (!walks && (!orange || orange.kind === "walk"));
  }

  private submit(event: Event): void {
    event.preventDefault();
    const blue = this.entry(this.blue.chosen);
    if (this.play.disabled || !blue) return;
    this.dialog.close();
    this.done?.({
      blue: blue.id, orange: blue.kind === "walk" ? blue.id : this.orange.chosen!, size: this.fixedSize ?? Number(this.size.value),
      simulator: this.simulator.value, start: this.start.value || "kickoff", deterministic: !this.sampled.checked,
    });
  }
}
