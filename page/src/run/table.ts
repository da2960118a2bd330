// The values of a chart as a table: for readers that see no picture, and to copy numbers from.
import type uPlot from "uplot";
import { h, replace } from "../dom";
import { short, span } from "../words";

const ROWS = 15;

/** Fills an element with the last rows. Columns without a name are left out. */
export function fillTable(element: HTMLElement, title: string, time: boolean, data: uPlot.AlignedData, names: (string | null)[]): void {
  const shown = names.flatMap((name, i) => (name === null ? [] : [i]));
  const count = data[0].length;
  const rows = Array.from({ length: Math.min(ROWS, count) }, (_, i) => count - 1 - i);
  const axis = time ? "seconds" : "steps";
  replace(element,
    h("div", { class: "row" }, h("span", { class: "quiet grow" }, `The last ${rows.length} of ${count} rows`),
      h("button", { class: "button small-button", type: "button", onclick: () => save(title, [axis, ...shown.map((i) => names[i]!)], [data[0], ...shown.map((i) => data[i + 1])]) }, "All as CSV")),
    h("table", { class: "table number" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, axis), ...shown.map((i) => h("th", { scope: "col" }, names[i])))),
      h("tbody", null, ...rows.map((row) => h("tr", null, h("td", null, time ? span(data[0][row]) : data[0][row].toLocaleString("en")),
        ...shown.map((i) => h("td", null, short(data[i + 1]?.[row], 5))))))));
}

/** Hands a file to the browser. */
function save(title: string, names: string[], columns: ArrayLike<number | null | undefined>[]): void {
  const cell = (text: string) => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const lines = [names.map(cell).join(",")];
  for (let row = 0; row < columns[0].length; row++) lines.push(columns.map((column) => column[row] ?? "").join(","));
  const address = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`], { type: "text/csv" }));
  h("a", { href: address, download: `${title.replace(/[^a-z0-9]+/gi, "-").toLowerCase()}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
