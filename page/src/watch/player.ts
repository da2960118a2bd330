// The clock of the picture: which time of which recording is shown now, and how it goes on.
import type { Moment, Recording } from "../recording";
import { Delay } from "./delay";

export const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8];

/** Plays a recording, or follows one that grows. It knows nothing about sockets and the document. */
export class Player {
  recording: Recording | null = null;
  /** Whether the recording grows while it is shown. */
  growing = false;
  /** Whether the newest frame of a growing recording is followed. */
  following = false;
  playing = false;
  speed = 1;
  loop = false;
  time = 0;
  /** The speed at which the stage plays, and whether it does: what is followed. */
  stageSpeed = 1;
  stagePlaying = false;
  readonly delay = new Delay();

  /** `changed` is called when something other than the time has changed. */
  constructor(private readonly changed: () => void) {}

  /** Shows another recording from its beginning, or its newest frame if that is followed. */
  open(recording: Recording, growing: boolean): void {
    this.recording = recording;
    this.growing = this.following = growing;
    this.playing = true;
    this.delay.reset();
    this.time = growing ? recording.duration : recording.start;
    this.changed();
  }

  close(): void {
    this.recording = null;
    this.growing = this.following = this.playing = false;
    this.time = 0;
    this.changed();
  }

  get duration(): number {
    return this.recording?.duration ?? 0;
  }

  /** Whether pictures differ from one to the next. */
  get moves(): boolean {
    if (!this.recording?.frames) return false;
    if (this.following) return this.time < this.duration || this.stagePlaying;
    return this.playing && (this.time < this.duration || this.loop || this.growing);
  }

  moment(): Moment | null {
    return this.recording?.frames ? this.recording.sample(this.time) : null;
  }

  /** A frame has arrived; `now` in seconds. */
  arrived(now: number): void {
    this.delay.arrived(this.duration, now, this.stageSpeed);
  }

  /** The time goes on by so many seconds of the clock. */
  advance(elapsed: number): void {
    const recording = this.recording;
    if (!recording?.frames) return;
    if (this.following) {
      this.time = this.delay.advance(this.time, recording.duration, elapsed, this.stageSpeed, recording.interval, this.stagePlaying);
    } else if (this.playing) {
      this.time += elapsed * this.speed;
      if (this.time >= recording.duration) this.reachEnd(recording);
    }
    this.time = Math.max(this.time, recording.start);
  }

  private reachEnd(recording: Recording): void {
    this.time = recording.duration;
    if (this.growing) {
      this.following = true;
    } else if (this.loop) {
      this.time = recording.start;
      return;
    } else {
      this.playing = false;
    }
    this.changed();
  }

  /** Pauses or goes on; at the end it begins again. */
  toggle(): void {
    if (this.following) {
      this.following = false;
      this.playing = false;
    } else {
      if (!this.playing && !this.growing && this.time >= this.duration) this.time = this.recording?.start ?? 0;
      this.playing = !this.playing;
    }
    this.changed();
  }

  seek(time: number): void {
    if (!this.recording) return;
    const was = this.following;
    this.time = Math.min(Math.max(time, this.recording.start), this.duration);
    this.following = false;
    if (was) this.playing = this.stagePlaying;
    this.changed();
  }

  /** Goes a number of frames on or back and pauses. */
  step(frames: number): void {
    const moment = this.moment();
    if (!moment || !this.recording) return;
    const from = frames < 0 && moment.fraction > 1e-3 ? moment.frame + 1 : moment.frame;
    this.following = false;
    this.playing = false;
    this.time = this.recording.time(Math.min(Math.max(from + frames, 0), this.recording.frames - 1));
    this.changed();
  }

  /** Follows the newest frame. */
  follow(): void {
    if (!this.growing) return;
    this.following = true;
    this.playing = true;
    this.time = Math.max(this.time, this.duration - this.delay.wanted(this.recording?.interval ?? 0, this.stageSpeed) * this.stageSpeed);
    this.changed();
  }

  setSpeed(speed: number): void {
    this.speed = Math.min(Math.max(speed, SPEEDS[0]), SPEEDS[SPEEDS.length - 1]);
    this.changed();
  }

  setLoop(loop: boolean): void {
    this.loop = loop;
    this.changed();
  }

  /** What the stage says about its own time. */
  stage(playing: boolean, speed: number): void {
    if (speed !== this.stageSpeed || playing !== this.stagePlaying) this.delay.reset();
    this.stagePlaying = playing;
    this.stageSpeed = speed;
    this.changed();
  }
}
