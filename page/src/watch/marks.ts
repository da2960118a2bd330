// What happened in a recording, as marks on its timeline: its events, and touches of the ball, which follow from the frames.
import type { Recording, RecordingEvent } from "../recording";
import { FLAGS } from "../scene/cars";

export interface Mark { time: number; kind: string; team: 0 | 1 | null; text: string; derived?: boolean }

/** Marks that are shown of one kind; more would cover the timeline. */
const MOST = 400;
/** Marks that are shown of all kinds together. */
const MOST_MARKS = 3000;
/** Touches of one car in a row within so many seconds are one. */
const ROW_SECONDS = 0.5;
/** Kinds that are not worth a jump, unless there is nothing else. */
const MINOR = new Set(["touch", "bump", "command"]);
/** Seconds that are shown before something happens. */
const LEAD = new Map([["goal", 2], ["shot", 1.5], ["save", 1.5], ["demo", 1], ["fall", 1.5], ["mechanic", 1.5]]);

/** The time to jump to for a mark: a little before it. */
export function leadTo(mark: Mark): number {
  return Math.max(mark.time - (LEAD.get(mark.kind) ?? 0), 0);
}

/** The team of whoever did it; a goal belongs to the team that got it, also an own goal. */
function teamOf(recording: Recording, event: RecordingEvent): 0 | 1 | null {
  if (recording.header.kind !== "rocket") return null;
  const scored = event.kind === "goal" ? recording.number("goal", event.frame, 0, -1) : -1;
  if (scored >= 0) return scored ? 1 : 0;
  return event.car === null ? null : recording.header.players[event.car]?.team ?? null;
}

/** Finds marks as a recording grows. */
export class Marks {
  readonly list: Mark[] = [];
  private recording: Recording | null = null;
  private scanned = 0;
  private events = 0;
  private dropped = 0;
  private derives = true;
  private last: { car: number; time: number }[] = [];

  /** Reads what is new. Returns "new" where all marks are others, "more" where some were added. */
  update(recording: Recording | null): "same" | "more" | "new" {
    let result: "same" | "more" | "new" = "same";
    if (recording !== this.recording) {
      this.recording = recording;
      this.list.length = this.scanned = this.events = 0;
      this.dropped = recording?.dropped ?? 0;
      this.derives = !recording?.events.some((event) => event.kind === "touch") && !!recording?.has("cars.flags");
      this.last = [];
      result = "new";
    }
    if (!recording) return result;
    if (recording.dropped !== this.dropped) this.forget(recording);
    const before = this.list.length;
    this.readEvents(recording);
    if (this.derives && this.list.some((mark) => mark.kind === "touch" && !mark.derived)) {  // The stage tells touches itself.
      this.derives = false;
      this.list.splice(0, this.list.length, ...this.list.filter((mark) => !mark.derived));
      result = "new";
    }
    if (this.derives) this.readTouches(recording);
    if (this.list.length !== before && result === "same") result = "more";
    return result;
  }

  private forget(recording: Recording): void {
    this.scanned = Math.max(0, this.scanned - (recording.dropped - this.dropped));
    this.dropped = recording.dropped;
    this.events = recording.events.length;
    const kept = this.list.filter((mark) => mark.time >= recording.start);
    this.list.splice(0, this.list.length, ...kept);
  }

  private readEvents(recording: Recording): void {
    for (; this.events < recording.events.length; this.events++) {
      const event = recording.events[this.events];
      if (event.frame >= recording.frames) return;  // Its frame has not arrived yet.
      this.list.push({ time: recording.time(event.frame), kind: event.kind, team: teamOf(recording, event), text: event.text });
    }
  }

  private readTouches(recording: Recording): void {
    const players = recording.header.players;
    for (; this.scanned < recording.frames; this.scanned++) {
      for (let car = 0; car < players.length; car++) {
        if (!(recording.number("cars.flags", this.scanned, car) & FLAGS.touched)) continue;
        const time = recording.time(this.scanned);
        const before = this.last[car];
        this.last[car] = { car, time };
        if (before && time - before.time < ROW_SECONDS) continue;
        this.list.push({ time, kind: "touch", team: players[car].team, text: `${players[car].name} touches the ball`, derived: true });
      }
    }
  }

  /** The marks to draw: not more of one kind than the timeline can show. */
  drawn(): Mark[] {
    const count = new Map<string, number>();
    for (const mark of this.list) count.set(mark.kind, (count.get(mark.kind) ?? 0) + 1);
    const seen = new Map<string, number>();
    return this.list.filter((mark) => {
      const number = (seen.get(mark.kind) ?? 0) + 1;
      seen.set(mark.kind, number);
      return number % Math.ceil((count.get(mark.kind) ?? 1) / MOST) === 0;
    }).slice(0, MOST_MARKS);
  }

  /** The next time worth a jump after this one, or before it; null: there is none. */
  near(time: number, step: 1 | -1): number | null {
    const major = this.list.filter((mark) => !MINOR.has(mark.kind));
    let found: number | null = null;
    for (const mark of major.length ? major : this.list) {
      const at = leadTo(mark);
      if ((at - time) * step > 0.02 && (found === null || (at - found) * step < 0)) found = at;
    }
    return found;
  }
}
