// Who beat whom how often: a table whose cells are coloured by the share of points of the row against the column.
import type { Ladder } from "../api";
import { h, property, replace, say } from "../dom";
import { percent } from "../words";
import { shortName, versionOf } from "./versions";

const MOST_ROWS = 80;
const MOST_COLUMNS = 24;

export class Matrix {
  readonly element: HTMLElement;
  private readonly table = h("table", { class: "matrix", role: "grid", "aria-label": "Points of the row against the column" });
  private readonly detail = h("p", { class: "matrix-detail", role: "status" });
  private readonly left = h("p", { class: "quiet small" });
  private drawn = "";
  private columns: number[] = [];

  constructor() {
    this.element = h("section", { class: "card", "aria-label": "Win rates" }, h("h2", null, "Points against each other"),
      h("p", { class: "quiet small" }, "The share of points that the player of the row takes from the player of the column: a win is 1, a draw one half. Blue wins, orange loses."),
      h("div", { class: "scroll" }, this.table), this.detail, this.left);
    this.table.addEventListener("keydown", (event) => this.pressed(event));
    for (const kind of ["focusin", "mouseover"] as const) this.table.addEventListener(kind, (event) => this.tell((event.target as Element).closest("td")));
  }

  get size(): [number, number] {
    return [this.table.tBodies[0]?.rows.length ?? 0, this.columns.length];
  }

  show({ matrix, runs }: Ladder): void {
    const drawn = JSON.stringify(matrix);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const { players, games } = matrix;
    const learns = (at: number) => {
      const version = versionOf(players[at]);
      return version !== null && version.run in runs;
    };
    const all = players.map((_, at) => at);
    // A version that met only fixed players has its results in its row; as a column it would be empty but for these.
    const met = all.filter((at) => !learns(at) || all.some((other) => learns(other) && other !== at && games[at][other] > 0));
    this.columns = (met.length ? met : all).slice(0, MOST_COLUMNS);
    const rows = all.slice(0, MOST_ROWS);
    this.element.classList.toggle("wide", this.columns.length > 9);
    replace(this.table, h("thead", null, h("tr", null, h("td", { class: "corner" }), ...this.columns.map((at) => h("th", { scope: "col", title: players[at] }, h("span", null, shortName(players[at])))))),
      h("tbody", null, ...rows.map((row) => h("tr", null, h("th", { scope: "row", title: players[row] }, shortName(players[row])),
        ...this.columns.map((column) => this.cell(matrix, row, column))))));
    const first = this.table.querySelector("td[data-row]");
    if (first instanceof HTMLElement) first.tabIndex = 0;
    say(this.detail, "Point at a cell, or move with the arrow keys, to see how many games it stands for.");
    const missing = [all.length - rows.length, (met.length || all.length) - this.columns.length];
    say(this.left, missing.some((count) => count > 0) ? `Left out: the ${missing[0]} weakest rows and ${missing[1]} columns. All of them: wavedash ladder RUN` : "");
  }

  private cell({ players, win_rate: rates, games }: Ladder["matrix"], row: number, column: number): HTMLElement {
    if (row === column) return h("td", { class: "self", "data-row": row, "data-column": column, tabindex: -1, "data-says": players[row] }, "");
    const rate = rates[row][column];
    const count = games[row][column];
    const pair = `${players[row]} against ${players[column]}`;
    const says = rate === null ? `${pair}: they have not met` : `${pair}: ${percent(rate)} of the points in ${count.toLocaleString("en")} ${count === 1 ? "game" : "games"}`;
    const cell = h("td", { class: rate === null ? "unmet" : rate >= 0.5 ? "won" : "lost", "data-row": row, "data-column": column, tabindex: -1, title: says, "data-says": says },
      rate === null ? "·" : `${Math.round(rate * 100)}`, rate === null ? null : h("small", null, count));
    if (rate !== null) property(cell, "--much", Math.round(Math.abs(rate - 0.5) * 2 * 44) + 4);
    return cell;
  }

  private tell(cell: Element | null): void {
    const says = cell?.getAttribute("data-says");
    if (says) say(this.detail, says);
  }

  /** Arrow keys move between cells. */
  private pressed(event: KeyboardEvent): void {
    const cell = (event.target as Element).closest("td[data-row]");
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (!(cell instanceof HTMLTableCellElement) || (!down && !right)) return;
    event.preventDefault();
    const line = cell.parentElement as HTMLTableRowElement;
    const next = this.table.tBodies[0].rows[line.sectionRowIndex + down]?.cells[cell.cellIndex + right];
    if (!(next instanceof HTMLTableCellElement) || next.dataset.row === undefined) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}
