// Games by hand: choosing players, placing bodies, driving a car, keeping a game. All of it is asked of the stage.
import type { Context } from "../context";
import { Chooser, NEEDS_TOKEN, type Choice } from "./chooser";
import type { Draft } from "./draft";
import { Driving } from "./driving";
import type { Live } from "./live";
import { Placing } from "./placing";
import type { Player } from "./player";
import type { Source } from "./source";
import type { Stage } from "../scene/stage";
import type { Obstacles } from "./tools";

export class Modes {
  readonly placing: Placing;
  readonly driving: Driving;
  private readonly chooser: Chooser;
  /** Whether bodies are to be placed as soon as the stage has paused. */
  private places = false;
  /** Bodies to place as soon as the game that was asked for has begun. */
  private next: { command: Record<string, unknown>; starting: boolean } | null = null;

  constructor(
    private readonly context: Context, private readonly player: Player, private readonly live: Live, private readonly source: Source, private readonly stage: Stage | null,
    private readonly hooks: { changed(): void; behind(car: number): void; ballCam(): void; car(): number },
  ) {
    this.chooser = new Chooser(context);
    this.placing = new Placing(stage, { changed: () => hooks.changed(), play: (draft) => this.playOn(draft), cancel: () => this.stopPlacing() });
    this.driving = new Driving({ send: (command) => live.send(command), ballCam: () => hooks.ballCam(), left: () => hooks.changed() });
  }

  /** Why something cannot be done now; null: it can. */
  obstacles(): Obstacles {
    const { player, source, live } = this;
    const token = this.context.about.writable && this.context.api.live ? null : NEEDS_TOKEN;
    const rocket = player.recording?.header.kind === "rocket";
    const shown = player.recording ? null : "There is no game yet.";
    const walk = rocket ? null : "Robots walk by themselves: only games of Rocket League can be placed and driven.";
    const playing = source.isLive && live.recording ? null : "This is for the live game: go live first.";
    return {
      place: token ?? shown ?? walk ?? (this.stage ? null : "Without WebGL there is no field to place bodies on."), drive: token ?? playing ?? walk,
      record: token ?? playing, rematch: token ?? playing, download: shown,
    };
  }

  /** Ends what is going on, because something else is shown. */
  leave(): void {
    this.driving.stop();
    if (this.placing.active) this.placing.stop();
  }

  // --- players ------------------------------------------------------------------------------------------------------

  choosePlayers(): void {
    void this.chooser.open((choice) => this.play(choice), this.live.status.who ?? this.context.about.watching);
  }

  private play(choice: Choice): void {
    this.source.watchLive();
    this.live.sendSoon({ do: "play", ...choice });
    this.player.follow();
  }

  rematch(): void {
    this.live.send({ do: "restart" });
    this.source.goLive();
  }

  // --- placing ------------------------------------------------------------------------------------------------------

  togglePlacing(): void {
    if (this.placing.active) {
      this.stopPlacing();
      return;
    }
    const why = this.obstacles().place;
    if (why) {
      this.context.say(why);
      return;
    }
    this.driving.stop();
    if (this.player.following && this.player.stagePlaying) {
      this.places = this.live.send({ do: "pause" });  // It begins when the stage stands still.
      return;
    }
    if (!this.player.following && this.player.playing) this.player.toggle();
    this.startPlacing();
  }

  private startPlacing(): void {
    this.places = false;
    const { recording } = this.player;
    const moment = this.player.following ? recording?.sample(recording.duration) : this.player.moment();
    if (moment) this.placing.start(moment);
    this.hooks.changed();
  }

  private stopPlacing(): void {
    this.placing.stop();
    this.hooks.changed();
  }

  /** Plays on from a draft: in the live game, or after a recording in a game of players that are chosen now. */
  private playOn(draft: Draft): void {
    if (!this.source.isLive) {
      const size = draft.size;
      const players = draft.recording.header.players;
      const name = (team: number): string | null => players.find((player) => player.team === team)?.name ?? null;
      void this.chooser.open((choice) => {
        this.next = { command: draft.command(true), starting: false };
        this.play(choice);
      }, { blue: name(0), orange: name(1) }, { size: Math.min(size, 3), title: "Who plays on from here" });
      return;
    }
    const newest = this.live.recording;
    const same = newest !== null && this.live.status.state === "paused" && newest.number("tick", newest.frames - 1) === draft.recording.number("tick", 0);
    this.live.send(draft.command(!same));
    if (this.live.status.state === "paused") this.live.send({ do: "continue" });
    this.placing.stop();
    this.player.follow();
    this.source.goLive();
  }

  // --- driving ------------------------------------------------------------------------------------------------------

  toggleDriving(): void {
    if (this.driving.car !== null) {
      this.driving.stop();
      return;
    }
    const why = this.obstacles().drive;
    if (why) {
      this.context.say(why);
      return;
    }
    if (this.placing.active) this.placing.stop();
    const car = Math.min(this.hooks.car(), (this.player.recording?.header.players.length ?? 1) - 1);
    if (!this.driving.start(car)) {
      this.context.say("There is no connection to the game now.", "bad");
      return;
    }
    this.source.goLive();
    this.hooks.behind(car);
  }

  // --- what the stage says ------------------------------------------------------------------------------------------

  status(state: string): void {
    if (state === "paused" && this.places) this.startPlacing();
    if (state === "starting" && this.next) this.next.starting = true;
    if (state === "failed") this.next = null;
    if (["lost", "off", "failed", "starting"].includes(state)) this.driving.stop(false);
  }

  /** A game has begun: the one that waited for its bodies gets them. */
  began(): void {
    if (!this.next?.starting) return;
    this.live.send(this.next.command);
    this.next = null;
  }

  refused(what: string): void {
    if (what === "drive" || what === "controls") this.driving.stop(false);
    if (what === "play") this.next = null;
  }
}
