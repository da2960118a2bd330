// What is shown: the live game, or a recording of the server or of this browser.
import type { Context } from "../context";
import { Recording } from "../recording";
import type { Live, StageStatus } from "./live";
import type { Player } from "./player";

export const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export class Source {
  /** Whether the live game is watched; otherwise a recording. */
  isLive = false;
  /** The id of the recording of the server that is shown. */
  rec: string | null = null;
  /** The id that was asked for last: it is loading, is shown, or cannot be shown. */
  wanted: string | null = null;
  /** What is waited for, or why nothing is shown. */
  trouble: { text: string; bad: boolean } | null = null;
  /** Whether the tab is shown: only then is there a connection. */
  visible = false;
  private loading = 0;

  /** `left` is called before something else is shown, `changed` after it. */
  constructor(private readonly context: Context, private readonly player: Player, private readonly live: () => Live, private readonly left: () => void, private readonly changed: () => void) {}

  /** Shows a recording of the server, paused at a time if that is given. */
  async openId(id: string, time: number | null = null): Promise<void> {
    const number = ++this.loading;
    this.wanted = id;
    this.say("loading the recording", false);
    try {
      const recording = await Recording.open(await this.context.api.recording(id));
      if (number === this.loading) this.open(recording, id, time);
    } catch (error) {
      if (number === this.loading) this.say(`this recording cannot be shown: ${words(error)}`, true);
    }
  }

  /** Shows a recording; `id`: if it is one of the server. */
  open(recording: Recording, id: string | null, time: number | null = null): void {
    this.loading += 1;
    this.left();
    this.isLive = false;
    this.live().disconnect();
    this.rec = this.wanted = id;
    this.trouble = null;
    this.player.open(recording, false);
    if (time !== null) this.pauseAt(time);
    this.changed();
  }

  pauseAt(time: number): void {
    this.player.seek(time);
    if (this.player.playing) this.player.toggle();
  }

  /** Shows the live game from now on. */
  watchLive(): void {
    if (!this.context.api.live) return;
    this.loading += 1;
    this.rec = this.wanted = this.trouble = null;
    if (this.isLive) {
      this.changed();
      return;
    }
    this.left();
    this.isLive = true;
    this.player.close();
    if (this.visible) this.live().connect();
    this.changed();
  }

  /** The newest frame of the live game. */
  goLive(): void {
    if (!this.isLive) {
      this.watchLive();
      return;
    }
    this.wanted = this.trouble = null;
    const { recording, status } = this.live();
    if (recording && recording !== this.player.recording) this.player.open(recording, true);
    else this.player.follow();
    if (status.state === "paused" && this.context.about.writable) this.live().send({ do: "continue" });
  }

  say(text: string, bad: boolean): void {
    this.trouble = { text, bad };
    this.changed();
  }

  // --- what the stage says ------------------------------------------------------------------------------------------

  status(status: StageStatus): void {
    this.player.stage(status.state === "playing", status.speed);
  }

  began(recording: Recording): void {
    if (!this.isLive) return;
    if (this.player.recording === null || this.player.following) this.player.open(recording, true);
    else this.player.growing = false;  // The game before stays until the viewer goes live.
    this.changed();
  }

  frame(recording: Recording): void {
    if (recording === this.player.recording) this.player.arrived(performance.now() / 1000);
  }

  /** Whether there is a newer game than the one that is shown. */
  get behind(): boolean {
    const newest = this.isLive ? this.live().recording : null;
    return newest !== null && this.player.recording !== null && newest !== this.player.recording;
  }
}
