// Placing ball and cars by hand: they are dragged on the field or set by dials, and the game goes on from there.
import { Plane, Vector3 } from "three";
import { h, replace } from "../dom";
import { shortName } from "../names";
import type { Moment } from "../recording";
import { place, toGame } from "../scene/coordinates";
import { Handles, KNOB } from "../scene/handles";
import type { Stage } from "../scene/stage";
import { BALL, Draft } from "./draft";
import { dialsOf, type Dial } from "./dials";

/** Seconds of flight that the arrow of the ball shows. */
const ARROW_SECONDS = 0.3;
const UP = new Vector3(0, 1, 0);

export interface PlacingActions {
  /** Draws a picture. */
  changed(): void;
  play(draft: Draft): void;
  cancel(): void;
}

export class Placing {
  draft: Draft | null = null;
  readonly panel: HTMLElement;
  private readonly handles = new Handles();
  private readonly bodies = h("div", { class: "row bodies", role: "radiogroup", "aria-label": "What is placed" });
  private readonly dials = h("div", { class: "dials" });
  private chosen = BALL;
  private rows: { dial: Dial; input: HTMLInputElement; output: HTMLElement }[] = [];
  private held: { what: "body" | "knob"; plane: Plane; offset: Vector3 } | null = null;
  private source: Moment | null = null;

  constructor(private readonly stage: Stage | null, private readonly actions: PlacingActions) {
    stage?.add(this.handles.object);
    this.panel = h("section", { class: "panel placing", "aria-label": "Place ball and cars", id: "placing", hidden: true },
      h("header", { class: "panel-head" }, h("h2", null, "Place by hand")),
      h("p", { class: "small quiet" }, "Drag bodies on the field and the green knob for their direction. Shift and the wheel change the height, ", h("kbd", null, "R"), " and ", h("kbd", null, "T"), " turn a car, arrows move."),
      this.bodies, this.dials,
      h("div", { class: "row end" },
        h("button", { class: "button", type: "button", onclick: () => this.reset() }, "Reset"),
        h("button", { class: "button", type: "button", id: "place-cancel", onclick: () => this.actions.cancel() }, "Cancel"),
        h("button", { class: "button primary", type: "button", id: "place-play", onclick: () => this.draft && this.actions.play(this.draft) }, "Play on from here")));
  }

  get active(): boolean {
    return this.draft !== null;
  }

  /** The moment to draw while bodies are placed; the camera may have moved since the last one. */
  moment(): Moment {
    this.showHandles(this.draft!);
    return this.draft!.recording.sample(this.draft!.recording.start);
  }

  start(moment: Moment): void {
    this.source = moment;
    this.panel.hidden = false;
    this.reset();
  }

  private reset(): void {
    const moment = this.source!;
    this.draft = new Draft(moment.recording, moment.fraction < 0.5 ? moment.frame : moment.next);
    this.choose(BALL);
  }

  stop(): void {
    this.draft = this.held = null;
    this.panel.hidden = true;
    this.handles.hide();
    this.actions.changed();
  }

  private choose(body: number): void {
    this.chosen = body;
    const players = this.draft!.recording.header.players;
    const chip = (name: string, number: number, team: string): HTMLElement => h("button", {
      class: `button body ${team}`, type: "button", role: "radio", "aria-checked": String(number === body), "data-body": number, onclick: () => this.choose(number),
    }, name);
    replace(this.bodies, chip("Ball", BALL, ""), ...players.map((player, car) => chip(`${car + 1} ${shortName(player.name)}`, car, player.team ? "orange" : "blue")));
    this.rows = dialsOf(this.draft!, body).map((dial) => {
      const input = h("input", { type: "range", min: dial.low, max: dial.high, step: dial.step, "data-dial": dial.name, oninput: () => {
        dial.set(Number(input.value));
        this.changed();
      } });
      return { dial, input, output: h("output", { class: "number" }) };
    });
    replace(this.dials, ...this.rows.map(({ dial, input, output }) => h("label", { class: "dial" }, h("span", null, dial.name), input, output)));
    this.changed();
  }

  /** Shows the draft as it is now. */
  private changed(): void {
    const draft = this.draft;
    if (!draft) return;
    for (const { dial, input, output } of this.rows) {
      const value = Math.round(dial.get());
      input.value = String(value);
      output.textContent = `${value} ${dial.unit}`;
    }
    this.showHandles(draft);
    this.actions.changed();
  }

  private showHandles(draft: Draft): void {
    this.handles.show(place(...draft.position(this.chosen)), this.arrow(draft), this.size(draft));
  }

  /** Handles are larger where the camera is far away, so that they can be taken hold of. */
  private size(draft: Draft): number {
    const eye = this.stage?.cameras.camera.position;
    return eye ? Math.max(1, 0.035 * eye.distanceTo(place(...draft.position(this.chosen)))) : 1;
  }

  /** From the chosen body to its knob: the way of a car, and the flight of the ball. */
  private arrow(draft: Draft): Vector3 {
    if (this.chosen !== BALL) {
      const yaw = draft.yaw(this.chosen);
      return new Vector3(Math.cos(yaw), 0, Math.sin(yaw)).multiplyScalar(KNOB * this.size(draft));
    }
    const [x, y] = draft.velocity(BALL);
    const flight = new Vector3(x, 0, y).multiplyScalar(0.01 * ARROW_SECONDS);
    return flight.addScaledVector(flight.lengthSq() > 1e-6 ? flight.clone().normalize() : new Vector3(0, 0, 1), KNOB * this.size(draft));
  }

  // --- the pointer and keys ---------------------------------------------------------------------------------------

  /** Takes hold of a knob or body under a pixel. */
  grab(x: number, y: number): boolean {
    if (!this.draft || !this.stage) return false;
    const ray = this.stage.ray(x, y);
    // How far a point is from the ray, in parts of its reach; what is nearest in that sense is meant.
    const miss = (point: Vector3, radius: number): number => ray.distanceToPoint(point) / Math.max(radius, 0.02 * ray.origin.distanceTo(point));
    let best = { body: this.chosen, knob: true, at: this.handles.knob.clone(), miss: miss(this.handles.knob, 0.35) };
    for (let body = BALL; body < this.draft.cars; body++) {
      const at = place(...this.draft.position(body));
      const far = miss(at, body === BALL ? 1 : 0.8);
      if (far < best.miss) best = { body, knob: false, at, miss: far };
    }
    if (best.miss > 1) return false;
    if (best.body !== this.chosen) this.choose(best.body);
    const plane = new Plane(UP, -best.at.y);
    const hit = ray.intersectPlane(plane, new Vector3());
    if (!hit) return false;
    this.held = { what: best.knob ? "knob" : "body", plane, offset: best.at.clone().sub(hit) };
    return true;
  }

  move(x: number, y: number): void {
    const { draft, held, stage } = this;
    if (!draft || !held || !stage) return;
    const hit = stage.ray(x, y).intersectPlane(held.plane, new Vector3());
    if (!hit) return;
    hit.add(held.offset);
    if (held.what === "body") {
      const [gx, gy] = toGame(hit);
      draft.move(this.chosen, [gx, gy, draft.position(this.chosen)[2]]);
    } else {
      this.point(draft, hit.sub(place(...draft.position(this.chosen))));
    }
    this.changed();
  }

  private point(draft: Draft, arrow: Vector3): void {
    const [x, y] = toGame(arrow);
    const angle = Math.atan2(y, x);
    if (this.chosen !== BALL) {
      draft.turn(this.chosen, angle);
      return;
    }
    const speed = Math.min(Math.max(arrow.length() - KNOB * this.size(draft), 0) / (0.01 * ARROW_SECONDS), 6000);
    draft.push(BALL, [speed * Math.cos(angle), speed * Math.sin(angle), draft.velocity(BALL)[2]]);
  }

  letGo(): void {
    this.held = null;
  }

  wheel(amount: number, shift: boolean): boolean {
    if (!this.draft || !shift) return false;
    this.shift(0, 0, -Math.sign(amount) * 40);
    return true;
  }

  /** A key was pressed; true: it was used. */
  key(event: KeyboardEvent): boolean {
    if (!this.draft) return false;
    const step = event.shiftKey ? 10 : 100;
    const turns: Record<string, number> = { r: -1, t: 1 };
    const moves: Record<string, [number, number, number]> = { ArrowUp: [0, 1, 0], ArrowDown: [0, -1, 0], ArrowLeft: [-1, 0, 0], ArrowRight: [1, 0, 0], PageUp: [0, 0, 1], PageDown: [0, 0, -1] };
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key in turns && this.chosen !== BALL) {
      this.draft.turn(this.chosen, this.draft.yaw(this.chosen) + (turns[key] * Math.PI) / (event.shiftKey ? 36 : 12));
      this.changed();
    } else if (key in moves) {
      const [right, ahead, up] = moves[key];
      const [ax, ay] = this.ahead();
      // Right of a way (x, y) is (-y, x) in the game, whose axes are left-handed.
      this.shift(step * (ahead * ax - right * ay), step * (ahead * ay + right * ax), step * up);
    } else if (key === "Escape") {
      this.actions.cancel();
    } else {
      return false;
    }
    return true;
  }

  /** The axis of the field that points most away from the camera. */
  private ahead(): [number, number] {
    const way = this.stage?.cameras.camera.getWorldDirection(new Vector3()) ?? new Vector3(0, 0, 1);
    if (way.x ** 2 + way.z ** 2 < 0.05) way.copy(this.stage!.cameras.camera.up);
    return Math.abs(way.x) > Math.abs(way.z) ? [Math.sign(way.x), 0] : [0, Math.sign(way.z)];
  }

  private shift(x: number, y: number, z: number): void {
    const [px, py, pz] = this.draft!.position(this.chosen);
    this.draft!.move(this.chosen, [px + x, py + y, pz + z]);
    this.changed();
  }
}
