// What lies over the picture: score and clock, names with boost meters, the speed of the followed car, and the status.
import { clock, h, property, replace, svg } from "../dom";
import { shortName } from "../names";
import type { Header, Moment } from "../recording";
import { FLAGS } from "../scene/cars";

interface Row { button: HTMLButtonElement; boost: HTMLElement; number: HTMLElement; last: number; present: boolean }

/** Letters of a status that fit beside the badge. */
const SHORT = 12;
const RING = 2 * Math.PI * 42;

/** Sets a text only where it is another one: this runs for every picture. */
function put(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export class Hud {
  readonly score: HTMLElement;
  readonly cars: HTMLElement;
  readonly gauge: HTMLElement;
  readonly status: HTMLElement;
  readonly notice = h("div", { class: "notice glass", hidden: true });
  readonly badge: HTMLElement;
  /** What was said last. */
  text = "";
  /** Read aloud: goals and the status. */
  readonly said = h("div", { class: "sr", role: "status", "aria-live": "polite" });
  private readonly names = [h("span", { class: "score-name" }), h("span", { class: "score-name" })];
  private readonly goals = [h("b", { class: "score-goals number" }), h("b", { class: "score-goals number" })];
  private readonly clock = h("span", { class: "score-clock number" });
  private readonly blue = h("div", { class: "cars-team blue" });
  private readonly orange = h("div", { class: "cars-team orange" });
  private readonly ring: SVGCircleElement;
  private readonly boost = h("b", { class: "number" });
  private readonly speed = h("span", { class: "gauge-speed number" });
  private rows: Row[] = [];
  private hasScore = false;

  /** `follow` is called with the car that the user clicks. */
  constructor(private readonly follow: (car: number) => void) {
    this.score = h("div", { class: "score glass", hidden: true },
      h("span", { class: "score-team blue" }, this.names[0], this.goals[0]), this.clock, h("span", { class: "score-team orange" }, this.goals[1], this.names[1]));
    this.cars = h("div", { class: "cars" }, this.blue, this.orange);
    this.ring = svg("circle", { class: "gauge-boost", cx: 50, cy: 50, r: 42, "stroke-dasharray": RING, "stroke-dashoffset": RING, transform: "rotate(-90 50 50)" });
    this.gauge = h("div", { class: "gauge glass", hidden: true, "aria-hidden": "true" },
      svg("svg", { viewBox: "0 0 100 100" }, svg("circle", { class: "gauge-rail", cx: 50, cy: 50, r: 42 }), this.ring),
      h("div", { class: "gauge-inner" }, this.boost, this.speed));
    this.status = h("div", { class: "status glass", hidden: true });
    this.badge = h("span", { class: "badge", hidden: true });
  }

  /** Another game is shown. */
  open(header: Header | null): void {
    this.rows = [];
    replace(this.blue);
    replace(this.orange);
    this.score.hidden = !header;
    this.gauge.hidden = true;
    if (!header) return;
    const rocket = header.kind === "rocket";
    this.hasScore = rocket && header.record.some((field) => field.name === "score");
    this.score.classList.toggle("plain", !this.hasScore);
    for (const team of [0, 1]) put(this.names[team], rocket ? teamName(header, team) : team ? "" : shortName(header.title));
    if (!this.hasScore) this.goals.forEach((one) => put(one, ""));
    header.players.forEach((player, car) => {
      const row = this.makeRow(player.name, car, rocket);
      this.rows.push(row);
      (player.team && rocket ? this.orange : this.blue).append(row.button);
    });
  }

  private makeRow(name: string, car: number, rocket: boolean): Row {
    const boost = h("span", { class: "meter" });
    const number = h("span", { class: "car-boost number" });
    const button = h("button", {
      class: "car-row glass", type: "button", "aria-pressed": "false", title: `Behind ${name} (${car + 1})`, onclick: () => this.follow(car),
    }, h("kbd", null, car + 1), h("span", { class: "car-name" }, shortName(name)), number, rocket ? h("span", { class: "meter-rail" }, boost) : null);
    return { button, boost, number, last: -1, present: true };
  }

  /** Which car the camera follows; null: none. */
  followed(car: number | null): void {
    this.rows.forEach((row, index) => row.button.setAttribute("aria-pressed", String(index === car)));
  }

  /** Which cars humans drive. */
  humans(cars: number[]): void {
    this.rows.forEach((row, index) => row.button.classList.toggle("driven", cars.includes(index)));
  }

  /** Shows a moment; `car` is the one whose speed is shown. It is read from the frame, so that it needs no picture. */
  show(moment: Moment, car: number | null): void {
    const { header } = moment.recording;
    put(this.clock, clock(moment.line("tick") * header.seconds_per_tick));
    if (this.hasScore) this.goals.forEach((one, team) => put(one, String(moment.number("score", team))));
    const rocket = header.kind === "rocket";
    if (rocket) this.rows.forEach((row, index) => showRow(row, Math.round(moment.number("cars.boost", index)), moment.number("cars.flags", index)));
    this.gauge.hidden = car === null || car >= this.rows.length;
    if (car === null || this.gauge.hidden) return;
    if (rocket) this.showCar(moment, car);
    else this.showRobot(moment);
  }

  private showCar(moment: Moment, car: number): void {
    const boost = Math.round(moment.number("cars.boost", car));
    put(this.boost, String(boost));
    put(this.speed, `${Math.round(speedOf(moment, "cars.velocity", car))} uu/s`);
    this.ring.setAttribute("stroke-dashoffset", (RING * (1 - boost / 100)).toFixed(1));
    this.gauge.classList.toggle("orange", moment.recording.header.players[car].team === 1);
    this.gauge.classList.toggle("supersonic", (moment.number("cars.flags", car) & FLAGS.supersonic) !== 0);
  }

  private showRobot(moment: Moment): void {
    const speed = speedOf(moment, "velocity", 0);
    put(this.boost, speed.toFixed(2));
    put(this.speed, "m/s");
    this.ring.setAttribute("stroke-dashoffset", (RING * (1 - Math.min(speed / 2, 1))).toFixed(1));
  }

  /** A line about what the page is doing. A word stands beside the badge, and a sentence below in the picture. */
  say(text: string, kind: "info" | "bad" = "info"): void {
    const long = text.length > SHORT;
    this.text = text;
    this.status.hidden = long || !text;
    this.notice.hidden = !long;
    put(long ? this.notice : this.status, text);
    this.notice.classList.toggle("bad", kind === "bad");
    if (text) put(this.said, text);
  }

  /** Tells those who cannot see the picture. */
  announce(text: string): void {
    put(this.said, text);
  }

  setBadge(text: string, kind: string): void {
    this.badge.hidden = !text;
    put(this.badge, text);
    this.badge.className = `badge ${kind}`;
  }
}

function speedOf(moment: Moment, field: string, index: number): number {
  return Math.hypot(...[0, 1, 2].map((axis) => moment.line(field, 3 * index + axis)));
}

function showRow(row: Row, boost: number, flags: number): void {
  const present = !(flags & FLAGS.demoed);
  if (boost === row.last && present === row.present) return;
  row.last = boost;
  row.present = present;
  put(row.number, present ? String(boost) : "out");
  property(row.boost, "--boost", boost / 100);
  row.button.classList.toggle("gone", !present);
}

/** Who plays for a team, without saying the same name twice. */
function teamName(header: Header, team: number): string {
  const names = [...new Set(header.players.filter((player) => player.team === team).map((player) => (player.human ? "a human" : shortName(player.name))))];
  return names.join(" + ") || (team ? "orange" : "blue");
}
