// One side of the dialog for players: a list by groups with a filter.
import type { Player } from "../api";
import { count, h, replace } from "../dom";

/** Groups in the order in which most people look for somebody; runs come after them. */
const FIRST = ["champions", "rungs", "scripts"];

export class Side {
  readonly element: HTMLElement;
  chosen: string | null = null;
  private players: Player[] = [];
  private readonly list: HTMLElement;
  private readonly filter: HTMLInputElement;

  /** `changed` is called when another player was chosen. */
  constructor(title: string, private readonly team: "blue" | "orange", private readonly changed: () => void) {
    this.filter = h("input", { class: "input", type: "search", placeholder: "Filter", autofocus: team === "blue", "aria-label": `Filter players for ${team}`, oninput: () => this.draw() });
    this.list = h("div", { class: "side-list", role: "radiogroup", "aria-label": `Players for ${team}` });
    this.element = h("fieldset", { class: `side ${team}`, id: `side-${team}` }, h("legend", null, title), this.filter, this.list);
  }

  /** Shows the players. Without a choice the one of this name is chosen, as `champion-1v1@5994970112` means champion-1v1. */
  fill(players: Player[], name: string | null): void {
    const order = (group: string): number => (FIRST.includes(group) ? FIRST.indexOf(group) : FIRST.length);
    this.players = players.map((player, index) => ({ player, index }))
      .sort((a, b) => order(a.player.group) - order(b.player.group) || a.index - b.index).map(({ player }) => player);
    if (!this.players.some((player) => player.id === this.chosen && !player.refused)) {
      const free = this.players.filter((player) => !player.refused);
      const plain = name?.split("@")[0] ?? "";
      const found = free.find((player) => player.name === name) ?? free.find((player) => player.name === plain) ?? free[0];
      this.chosen = found?.id ?? null;
    }
    this.draw();
  }

  choose(id: string | null): void {
    this.chosen = id;
    this.draw();
  }

  private draw(): void {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = this.players.filter((player) => words.every((word) => `${player.name} ${player.group}`.toLowerCase().includes(word)));
    const groups = new Map<string, Player[]>();
    for (const player of wanted) groups.set(player.group, [...(groups.get(player.group) ?? []), player]);
    replace(this.list, ...[...groups].map(([group, players]) => h("section", null, h("h3", null, group), ...players.map((player) => this.drawPlayer(player)))),
      wanted.length ? null : h("p", { class: "quiet small" }, words.length ? "Nobody fits the filter." : "There are no players."));
    this.list.querySelector("input:checked")?.closest("label")?.scrollIntoView({ block: "nearest" });
  }

  private drawPlayer(player: Player): HTMLElement {
    const radio = h("input", {
      type: "radio", name: `player-${this.team}`, value: player.id, disabled: !!player.refused,
      onchange: () => {
        this.chosen = player.id;
        this.changed();
      },
    });
    radio.checked = player.id === this.chosen;
    const facts = [player.step ? `${count(player.step)} steps` : "", player.size ? `${player.size}v${player.size}` : "", player.kind === "walk" ? "walks" : ""].filter(Boolean).join(" · ");
    return h("label", { class: player.refused ? "side-player refused" : "side-player", title: player.refused }, radio,
      h("span", { class: "side-name" }, player.name), h("span", { class: "side-facts" }, facts), player.refused ? h("span", { class: "side-why" }, player.refused) : null);
  }
}
