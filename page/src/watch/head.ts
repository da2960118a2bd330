// Inside a bot's head: what the followed car does, what it could have done, what it expects, is paid, sees and remembers.
import type { Context } from "../context";
import { h, say } from "../dom";
import { Controls, inWords } from "../head/action";
import { Choices } from "../head/choices";
import { Memory } from "../head/memory";
import { Numbers } from "../head/numbers";
import { Rewards } from "../head/rewards";
import { Section } from "../head/section";
import { Strip } from "../head/strip";
import { Track } from "../head/track";
import { shortName } from "../names";
import type { Moment, Recording } from "../recording";
import { percent, short } from "../words";

export interface Decision {
  /** The number of the chosen action; -1 where actions have no numbers. */
  action: number;
  controls?: number[] | null;
  top: [number, number][];
  value: number | null;
  rewards: Record<string, number>;
  /** What a policy without numbered actions told its joints. */
  outputs?: [string, number][];
  observation?: [string, number | null][];
  memory?: Record<string, number[]> | null;
}

/** Milliseconds between two changes of numbers, of lists, and between two drawings of the strip. */
const NUMBERS = 100;
const LISTS = 250;
const STRIP = 33;

/** The panel beside the picture. The view calls its methods; it calls `ask` when it wants another car (null: none). */
export class HeadPanel {
  readonly element: HTMLElement;
  private readonly name = h("h2", { class: "grow" });
  private readonly who = h("span", { class: "chip" });
  private readonly words = h("p", { class: "head-words", "aria-live": "off" });
  private readonly controls = new Controls();
  private readonly outputs = new Numbers(false);
  private readonly choices = new Choices();
  private readonly strip: Strip;
  private readonly rewards = new Rewards();
  private readonly seen = new Numbers(true);
  private readonly memory: Memory;
  private readonly action: Section;
  private readonly likely: Section;
  private readonly value: Section;
  private readonly paid: Section;
  private readonly observed: Section;
  private readonly remembered: Section;
  private recording: Recording | null = null;
  private live = false;
  private car: number | null = null;
  private track: Track | null = null;
  private latest: Decision | null = null;
  private visible = false;
  private asked = "";
  private moment: Moment | null = null;
  private waiting = 0;
  private drawn = { numbers: 0, lists: 0, strip: 0, frame: -1 };

  constructor(context: Context, readonly ask: (car: number | null, observation: boolean) => void) {
    this.strip = new Strip(context);
    this.memory = new Memory(context);
    this.action = new Section("action", "Action", h("div", null, this.words, this.controls.element, this.outputs.element), true, () => this.again());
    this.likely = new Section("choices", "Likeliest actions", this.choices.element, true, () => this.again());
    this.value = new Section("value", "Value", this.strip.element, true, () => this.again());
    this.paid = new Section("rewards", "Rewards", this.rewards.element, true, () => this.again());
    this.observed = new Section("observation", "Observation", this.seen.element, false, () => this.askAgain());
    this.remembered = new Section("memory", "Memory", this.memory.element, false);
    this.element = h("section", { class: "head-panel panel", "aria-label": "Inside the bot's head" },
      h("header", { class: "row head-title" }, this.name, this.who), ...this.sections.map((section) => section.element));
    // The stage computes heads only for those who look at one, so nothing is asked while the panel is not on the screen.
    new IntersectionObserver((entries) => {
      this.visible = entries[entries.length - 1].isIntersecting;
      this.askAgain();
      this.again();
    }).observe(this.element);
    context.expose("head", () => ({
      car: this.car, live: this.live, visible: this.visible, asked: this.asked, name: this.name.textContent, who: this.who.textContent, words: this.words.textContent,
      choices: this.choices.shown, value: this.track && this.drawn.frame >= 0 ? this.track.value(this.drawn.frame) : null, rewards: this.rewards.shown,
      observation: this.seen.count, memory: this.memory.names, why: Object.fromEntries(this.sections.map((section) => [section.element.id, section.reason])),
    }));
    this.begin();
  }

  private get sections(): Section[] {
    return [this.action, this.likely, this.value, this.paid, this.observed, this.remembered];
  }

  /** Another game or recording is shown; null: none. */
  opened(recording: Recording | null, live: boolean): void {
    this.recording = recording;
    this.moment = null;
    this.live = live;
    this.begin();
  }

  /** The car that the camera follows; null: none. */
  follow(car: number | null): void {
    if (car === this.car) return;
    this.car = car;
    this.begin();
  }

  /** The moment that is shown now. It is called for every picture, so it does little, and most of that not every time. */
  show(moment: Moment): void {
    this.moment = moment;
    if (!this.visible || this.car === null || moment.recording !== this.recording) return;
    const now = performance.now();
    const { frame, time } = moment;
    const moved = frame !== this.drawn.frame;
    this.track ??= new Track(moment.recording, this.car);
    if (now - this.drawn.strip >= STRIP || moved) {
      this.track.update();
      if (this.value.open && this.track.hasValue) this.strip.draw(this.track, frame, time, this.live);
      this.drawn.strip = now;
    }
    if (!moved) return;
    if (now - this.drawn.numbers < NUMBERS) {
      // This may be the last picture for long, so it is not left out for good.
      this.waiting ||= window.setTimeout(() => {
        this.waiting = 0;
        if (this.moment) this.show(this.moment);
      }, NUMBERS);
      return;
    }
    this.drawn.numbers = now;
    this.drawn.frame = frame;
    this.showAction(moment);
    this.showValue(frame);
    if (this.paid.open && this.track.hasRewards) this.showRewards(moment);
  }

  /** What the stage says of the car asked for (live only). */
  decision(car: number, decision: Decision | null): void {
    if (car !== this.car || !this.live) return;
    this.latest = decision;
    const now = performance.now();
    if (now - this.drawn.lists < LISTS) return;
    this.drawn.lists = now;
    this.explain();
    if (decision?.observation?.length && this.observed.open) this.seen.show(decision.observation);
    if (decision?.memory && this.remembered.open) this.memory.show(decision.memory);
    this.observed.remark(decision?.observation?.length ? `${decision.observation.length} numbers` : "");
    this.remembered.remark(decision?.memory ? `${Object.values(decision.memory).reduce((sum, one) => sum + one.length, 0)} numbers` : "");
  }

  /** Shows the last moment anew: a part was opened while the game stands still. */
  private again(): void {
    this.drawn = { numbers: 0, lists: 0, strip: 0, frame: -1 };
    if (this.moment) this.show(this.moment);
  }

  // --- one car -------------------------------------------------------------------------------------------------------

  /** Forgets the car before, and says what can be known about this one. */
  private begin(): void {
    this.track = null;
    this.latest = null;
    this.drawn = { numbers: 0, lists: 0, strip: 0, frame: -1 };
    const player = this.player;
    say(this.name, player ? shortName(player.name) : "Nobody is followed");
    say(this.who, player === null ? "" : player.human ? "human" : player.policy ? "policy" : "script");
    this.who.hidden = player === null;
    this.element.dataset.team = player === null || this.recording?.header.kind === "walk" ? "" : String(player.team);
    this.rewards.open(this.recording?.header.reward_terms ?? []);
    this.choices.show([], -1, null);
    this.value.remark("");
    this.likely.remark("");
    this.explain();
    this.askAgain();
  }

  private get player() {
    return this.car === null ? null : this.recording?.header.players[this.car] ?? null;
  }

  private askAgain(): void {
    const wanted = this.visible && this.live && this.player?.policy ? this.car : null;
    const observation = wanted !== null && this.observed.open;
    const asked = `${wanted} ${observation}`;
    // A new game begins with nobody asked for, so the car is named again then.
    if (asked === this.asked && this.latest) return;
    this.asked = asked;
    this.ask(wanted, observation);
  }

  /** Every section says why it is empty, if it is. */
  private explain(): void {
    const { recording, player, live } = this;
    const walk = recording?.header.kind === "walk";
    const nobody = !recording ? "No game is shown." : player === null ? "No car is followed: press 1 to 8, or click one." : null;
    const driven = nobody ?? (player!.human ? "A human drives this car." : player!.policy ? null : "This car is driven by a script.");
    const keeps = (field: string) => recording?.has(field) || recording?.has(field.replace("cars.", ""));
    const kept = (field: string, what: string) => driven ?? (keeps(field) ? null : `This recording does not keep ${what}.`);
    const only = (what: string) => driven ?? (live ? null : `Recordings do not keep ${what}: watch a live game.`);
    const { latest } = this;
    this.action.explain(nobody ?? (walk ? only("what the policy told the joints") ?? (latest?.outputs ? null : "Waiting for its next decision.") : null));
    this.likely.explain(walk ? driven ?? "This policy chooses continuous values, not from a list of actions." : kept("cars.top_action", "probabilities"));
    this.value.explain(kept("cars.value", "what the critic expects"));
    this.paid.explain(driven ?? (recording?.header.reward_terms.length && keeps("cars.reward") ? null : live ? "The rewards of this policy are not known here." : "This recording does not keep rewards."));
    this.observed.explain(only("observations") ?? (latest && !latest.observation?.length && this.observed.open ? "Waiting for what it sees." : null));
    this.remembered.explain(only("memories") ?? (latest && !latest.memory ? "This policy has no memory: it decides from what it sees now." : null));
    this.words.hidden = walk;
    this.controls.element.hidden = walk;
    this.outputs.element.hidden = !walk;
    if (walk && latest?.outputs) this.outputs.show(latest.outputs);
  }

  private showAction(moment: Moment): void {
    const { recording, car, latest } = this;
    if (recording!.header.kind === "walk") return;
    const controls = Array.from({ length: 8 }, (_, i) => moment.number("cars.controls", 8 * car! + i));
    this.controls.show(controls);
    say(this.words, inWords(controls));
    if (!this.likely.open && this.likely.reason) return;
    const action = moment.number("cars.action", car!, -1);
    const places = recording!.shape("cars.top_action")?.[1] ?? 0;
    let top = Array.from({ length: places }, (_, i) => [moment.number("cars.top_action", places * car! + i, -1), moment.number("cars.top_probability", places * car! + i)] as [number, number])
      .filter(([one, share]) => one >= 0 && (share > 0 || one === action));
    let chosen = action;
    let table = recording!.header.actions;
    if (!top.length && this.live && latest?.top.length) {
      // Its actions are not those of the header's table, so frames cannot hold them.
      [top, chosen] = [latest.top, latest.action];
      table = table && latest.controls && sameRow(table[latest.action], latest.controls) ? table : null;
    }
    this.choices.show(top, chosen, table);
    this.likely.remark(top.length ? `best ${percent(top[0][1])}` : "");
  }

  private showValue(frame: number): void {
    const value = this.track!.value(frame);
    this.value.remark(Number.isFinite(value) ? short(value, 3) : this.track!.hasValue ? "not known at this moment" : "");
  }

  private showRewards(moment: Moment): void {
    const { recording, track } = this;
    const back = Math.max(-1, moment.frame - Math.max(1, Math.round(1 / recording!.interval)));
    const sums = track!.paid(moment.frame);
    this.rewards.show(back < 0 ? sums : track!.paidBetween(back, moment.frame), sums);
    this.paid.remark(short(sums.reduce((a, b) => a + b, 0), 3));
  }
}

function sameRow(a: number[] | undefined, b: number[]): boolean {
  return a !== undefined && a.length === b.length && a.every((value, i) => Math.abs(value - b[i]) < 1e-6);
}
