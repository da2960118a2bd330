// Which settings differ between runs, from their configurations as YAML texts that Wavedash has written.
import { h, replace } from "../dom";

/** The values of a text by dotted keys. Lists of mappings get numbers for keys. */
export function settingsOf(yaml: string): Map<string, string> {
  const found = new Map<string, string>();
  const above: { depth: number; key: string; items: number }[] = [];
  for (const line of joined(yaml)) {
    const match = /^(\s*)((?:- )*)([^\s:][^:]*):(?: (.*))?$/.exec(line);
    if (!match) continue;
    const [, space, dash, key, value] = match;
    const depth = space.length + dash.length;
    while (above.length && above[above.length - 1].depth >= depth) above.pop();
    const parent = above[above.length - 1];
    if (dash && parent) parent.items += 1;
    const path = [...above.flatMap((one) => (one.items ? [one.key, String(one.items)] : [one.key])), key].join(".");
    if (value === undefined || value === "") above.push({ depth, key, items: 0 });
    else found.set(path, value);
  }
  return found;
}

/** Lines, where a value that goes on in the next one is one line. */
function joined(yaml: string): string[] {
  const lines: string[] = [];
  let open = 0;
  for (const line of yaml.split("\n")) {
    if (open > 0) lines[lines.length - 1] += ` ${line.trim()}`;
    else lines.push(line);
    open += (line.match(/[{[]/g)?.length ?? 0) - (line.match(/[}\]]/g)?.length ?? 0);
  }
  return lines;
}

/** Keys whose values are not the same in all texts, with their values. */
export function differences(texts: string[]): { key: string; values: (string | undefined)[] }[] {
  const all = texts.map(settingsOf);
  const keys = [...new Set(all.flatMap((one) => [...one.keys()]))];
  return keys.map((key) => ({ key, values: all.map((one) => one.get(key)) })).filter(({ values }) => new Set(values).size > 1);
}

/** Fills an element with a table of what differs between these runs. */
export function showDifferences(element: HTMLElement, runs: { title: string; config: string }[]): void {
  element.hidden = runs.length < 2;
  if (element.hidden) return;
  const rows = differences(runs.map((run) => run.config));
  replace(element, h("h2", null, "What differs"), rows.length ? h("div", { class: "scroll" }, h("table", { class: "table differences" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "Setting"), ...runs.map((run) => h("th", { scope: "col" }, run.title)))),
    h("tbody", null, ...rows.map(({ key, values }) => h("tr", null, h("th", { scope: "row" }, h("code", null, key)), ...values.map((value) => h("td", { class: "number" }, value ?? "–")))))))
    : h("p", { class: "quiet" }, "The configurations are the same."));
}
