// What the keys and buttons of time do. The newest frame of a live game is steered on the stage, for all who watch, which needs
// the token. Whoever looks back into a live game, or has no token, pauses and plays alone.
import { NEEDS_TOKEN } from "./chooser";
import type { Live } from "./live";
import type { Marks } from "./marks";
import type { Player } from "./player";
import type { Source } from "./source";

export class Control {
  /** `jumped` is called when the time has jumped, so that the camera does too. */
  constructor(
    private readonly player: Player, private readonly live: Live, private readonly source: Source, private readonly marks: Marks,
    private readonly writable: boolean, private readonly jumped: () => void, private readonly say: (text: string) => void,
  ) {}

  /** Whether the stage itself is steered now. */
  get steersStage(): boolean {
    return this.source.isLive && this.player.following && this.writable;
  }

  toggle(): void {
    const paused = this.live.status.state === "paused";
    if (this.steersStage) this.live.send({ do: paused ? "continue" : "pause" });
    else if (this.player.following && paused) this.say("Somebody with the token has paused this game.");
    else this.player.toggle();
  }

  step(frames: number): void {
    const { player } = this;
    const atEnd = player.growing && player.time >= player.duration - 1e-6;
    if (frames > 0 && this.source.isLive && this.writable && (player.following || atEnd)) {
      if (!player.following) player.follow();
      this.live.send({ do: "step" });
      return;
    }
    if (this.steersStage && player.stagePlaying) this.live.send({ do: "pause" });
    player.step(frames);
  }

  seek(time: number): void {
    const far = Math.abs(time - this.player.time) > 0.5;
    this.player.seek(time);
    if (far) this.jumped();
  }

  skip(seconds: number): void {
    const { player } = this;
    if (seconds > 0 && player.following) return;
    if (seconds > 0 && player.growing && player.time + seconds >= player.duration) this.source.goLive();
    else this.seek(player.time + seconds);
  }

  jump(direction: 1 | -1): void {
    this.seek(this.marks.near(this.player.time, direction) ?? (direction > 0 ? this.player.duration : 0));
  }

  setSpeed(speed: number): void {
    const { player } = this;
    if (this.steersStage) {
      this.live.send({ do: "speed", value: speed });
    } else if (player.following && speed >= player.stageSpeed) {
      this.say(NEEDS_TOKEN);
    } else {
      if (player.following) player.seek(player.time);
      player.setSpeed(speed);
    }
  }

  loop(): void {
    this.player.setLoop(!this.player.loop);
  }

  /** To the end: of a live game, to its newest frame. */
  end(): void {
    if (this.source.isLive) this.source.goLive();
    else this.seek(this.player.duration);
  }
}
