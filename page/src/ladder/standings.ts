// The ratings as a table, the strongest first, with the intervals drawn on one scale.
import type { Ladder } from "../api";
import { h, property, replace } from "../dom";
import { inWords, versionOf } from "./versions";

const MOST = 400;

export class Standings {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly facts = h("p", { class: "quiet small" });
  private readonly filter = h("input", { class: "input", type: "search", placeholder: "Filter players…", "aria-label": "Filter players", oninput: () => this.draw() });
  private ladder: Ladder | null = null;
  private drawn = "";

  constructor() {
    this.element = h("section", { class: "card", "aria-label": "Standings" },
      h("div", { class: "row" }, h("h2", { class: "grow" }, "Standings"), h("div", { class: "find" }, this.filter)), this.facts,
      h("div", { class: "scroll standings" }, h("table", { class: "table" },
        h("thead", null, h("tr", null, ...["#", "Player", "Rating", "95 % interval", "", "Games"].map((name) => h("th", { scope: "col" }, name)))), this.body)));
  }

  get rows(): number {
    return this.body.children.length;
  }

  show(ladder: Ladder): void {
    this.ladder = ladder;
    const reference = ladder.reference_games ? ` and ${ladder.reference_games.toLocaleString("en")} between fixed players that come with Wavedash` : "";
    this.facts.textContent = `From ${ladder.games.toLocaleString("en")} games of this run${reference}; ${ladder.scale}.`;
    this.draw();
  }

  private draw(): void {
    const all = this.ladder?.ratings ?? [];
    const wanted = this.filter.value.toLowerCase();
    const drawn = JSON.stringify([all, wanted]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const values = all.map(({ value }) => value);
    const least = values.reduce((a, b) => Math.min(a, b), Infinity) - 200;
    const most = values.reduce((a, b) => Math.max(a, b), -Infinity) + 200;
    const share = (value: number) => Math.min(1, Math.max(0, (value - least) / (most - least || 1)));
    replace(this.body, ...all.map((rated, place) => ({ ...rated, place })).filter(({ player }) => player.toLowerCase().includes(wanted)).slice(0, MOST)
      .map(({ player, value, low, high, games, place }) => {
        const bar = h("div", { class: "interval", role: "img", "aria-label": inWords({ value, low, high, games }) }, h("i"), h("b"));
        property(bar, "--low", share(low));
        property(bar, "--high", share(high));
        property(bar, "--value", share(value));
        const version = versionOf(player);
        return h("tr", { class: version && this.ladder && version.run in this.ladder.runs ? "version" : "fixed" },
          h("td", { class: "number quiet" }, place + 1),
          h("td", null, version ? version.run : player, version ? h("span", { class: "quiet number" }, ` @ ${version.steps.toLocaleString("en")}`) : null),
          h("td", { class: "number" }, h("strong", null, Math.round(value))),
          h("td", { class: "number quiet" }, low === high ? "fixed" : `${Math.round(low)} – ${Math.round(high)}`), h("td", { class: "interval-cell" }, bar),
          h("td", { class: "number" }, games.toLocaleString("en")));
      }));
  }
}
