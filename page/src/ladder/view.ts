// The tab Ladder: how strong the versions of a run are, and who beat whom. Everything is from the games in the run folder.
import { ApiError, type Ladder, type RunRow } from "../api";
import type { Context, Tab } from "../context";
import { h, replace, say } from "../dom";
import { Refresher } from "../refresher";
import { PALETTE } from "../run/colours";
import { RatingChart, type Curve } from "./chart";
import { Matrix } from "./matrix";
import { Standings } from "./standings";

const MOST_OVER = 6;

export function mountLadder(container: HTMLElement, context: Context): Tab {
  const { api, route } = context;
  const choice = h("select", { class: "input", id: "ladder-run", onchange: () => choose(choice.value) });
  const size = h("select", { class: "input", id: "ladder-size", onchange: () => void refresher.now() });
  const sizeField = h("label", { class: "field" }, "Team size", size);
  const over = h("div", { class: "row over-list" });
  const overBox = h("details", { class: "over" }, h("summary", null, "Compare with other runs"), over);
  const trouble = h("p", { class: "trouble", role: "status", hidden: true });
  const empty = h("section", { class: "card empty", hidden: true });
  const chart = new RatingChart(context);
  const standings = new Standings();
  const matrix = new Matrix();
  const body = h("div", { class: "ladder-body", hidden: true }, chart.element, h("div", { class: "ladder-grid" }, standings.element, matrix.element));
  container.append(h("div", { class: "ladder-page" }, h("div", { class: "card row ladder-choice" }, h("label", { class: "field grow" }, "Run", choice), sizeField, overBox),
    trouble, empty, body));
  let rows: RunRow[] = [];
  let run = "";
  let laid: string[] = [];
  let shown: Ladder | null = null;
  let curves: Curve[] = [];
  let listed = "";
  let refused = "";
  let why: string | null = null;

  function choose(id: string): void {
    run = id;
    laid = laid.filter((one) => one !== id);
    shown = null;
    size.textContent = "";
    chart.clear();
    route.set({ run: id });
    void refresher.now();
  }

  const refresher = new Refresher(10, api.live, async () => {
    rows = await api.runs();
    if (!rows.some((row) => row.id === run)) run = first()?.id ?? "";
    drawChoice();
    if (!run) return explain(null, null);
    const asked = run;
    const wanted = size.value ? Number(size.value) : undefined;
    const row = rows.find((one) => one.id === asked)!;
    // A run that has no games has none before it has made more steps.
    const stamp = `${asked} ${row.steps}`;
    if (row.kind !== "rocket" || stamp === refused) return explain(row, why);
    try {
      const found = await api.ladder(asked, wanted);
      const others = await Promise.all(laid.map((id) => api.ladder(id, found.size ?? undefined).catch(() => null)));
      if (asked === run) draw(found, others);
    } catch (error) {
      if (asked === run && error instanceof ApiError && error.status >= 400 && error.status < 500) {
        refused = stamp;
        why = error.message;
        return explain(row, why);
      }
      throw error;
    }
  }, (error) => {
    trouble.hidden = error === null;
    if (error) say(trouble, `${error.message}. What is shown may be old.`);
  });

  /** The run of the address or of this page, else the newest with a rating, else the newest that plays Rocket League. */
  function first(): RunRow | undefined {
    const asked = route.get("run") ?? context.about.run;
    return rows.find((row) => row.id === asked) ?? rows.find((row) => row.rating !== null) ?? rows.find((row) => row.kind === "rocket") ?? rows[0];
  }

  function drawChoice(): void {
    const made = JSON.stringify([rows.map((row) => [row.id, row.state, row.rating === null]), run, laid]);
    if (made === listed) return;
    listed = made;
    replace(choice, ...rows.map((row) => h("option", { value: row.id }, `${row.title}${row.rating === null ? " (no rating)" : ""}${row.state === "running" ? " (running)" : ""}`)));
    choice.value = run;
    const others = rows.filter((row) => row.id !== run && row.rating !== null);
    overBox.hidden = !others.length;
    replace(over, ...others.map((row) => {
      const box = h("input", { type: "checkbox", "data-run": row.id, onchange: () => {
        laid = box.checked ? [...laid, row.id].slice(-MOST_OVER) : laid.filter((one) => one !== row.id);
        void refresher.now();
      } });
      box.checked = laid.includes(row.id);
      return h("label", { class: "check" }, box, row.title);
    }));
  }

  function draw(ladder: Ladder, others: (Ladder | null)[]): void {
    shown = ladder;
    empty.hidden = true;
    body.hidden = false;
    const sizes = ladder.sizes.map((one) => h("option", { value: one }, `${one}v${one}`));
    if (size.options.length !== sizes.length) replace(size, ...sizes);
    size.value = String(ladder.size ?? "");
    sizeField.hidden = ladder.sizes.length < 2;
    const title = (id: string) => rows.find((row) => row.id === id)?.title.split("/")[0] ?? id;
    curves = Object.entries(ladder.runs).map(([name, points], i) => ({ title: name, colour: PALETTE[i % PALETTE.length], points }));
    // Ratings without an anchor mean nothing beside those of other games.
    others.forEach((other, i) => {
      if (other === null || other.scale !== ladder.scale) return;
      for (const points of Object.values(other.runs)) {
        const same = curves.some((curve) => curve.title === title(laid[i]));
        curves.push({ title: same ? rows.find((row) => row.id === laid[i])?.title ?? laid[i] : title(laid[i]), colour: PALETTE[curves.length % PALETTE.length], points });
      }
    });
    chart.element.hidden = !curves.length;
    chart.show(ladder, curves);
    standings.show(ladder);
    matrix.show(ladder);
  }

  /** Says why there is no ladder, and what to do. */
  function explain(row: RunRow | null, why: string | null): void {
    body.hidden = true;
    shown = null;
    curves = [];
    sizeField.hidden = true;
    const code = (text: string) => h("p", null, h("code", { class: "command" }, text));
    const parts = row === null
      ? [h("h2", null, "There are no runs yet"), h("p", null, "Begin one in a terminal. The preset rates itself while it trains:"), code("wavedash train rocket-1v1")]
      : row.kind !== "rocket"
        ? [h("h2", null, "This run has no ladder"), h("p", null, "Ratings come from games of Rocket League against other players; this run learns something else. Choose another run above.")]
        : [h("h2", null, "No rated games yet"), why ? h("p", { class: "quiet" }, why) : null,
          h("p", null, "A run rates itself while it trains if its configuration has a section `rating:`, such as"), code("rating: {every: 1_000_000, panel: [chaser, defender]}"),
          h("p", null, "A run without one gets it when it goes on:"), code("wavedash resume RUN rating.every=1000000"),
          h("p", null, "The same ladder in a terminal, of one run or of several:"), code("wavedash ladder RUN")];
    const text = parts.map((part) => part?.textContent ?? "").join("|");
    if (empty.dataset.text !== text) {
      empty.dataset.text = text;
      replace(empty, ...parts);
    }
    empty.hidden = false;
  }

  route.changed(() => {
    const asked = route.get("run");
    if (asked && asked !== run && rows.some((row) => row.id === asked)) choose(asked);
  });
  context.expose("ladder", () => ({
    run, size: shown?.size ?? null, sizes: shown?.sizes ?? [], games: shown?.games ?? 0, rows: shown ? standings.rows : 0, matrix: shown ? matrix.size : [0, 0],
    curves: curves.map((curve) => ({ title: curve.title, points: curve.points.length })), empty: empty.hidden ? null : empty.textContent, turn: refresher.turn,
  }));
  return {
    shown() {
      const asked = route.get("run");
      if (asked && asked !== run) {
        run = asked;
        shown = null;
        size.textContent = "";
        chart.clear();
      }
      refresher.start();
    },
    hidden: () => refresher.stop(),
  };
}
