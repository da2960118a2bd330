// Watch: all parts of the tab and how they hang together.
import type { Context } from "../context";
import type { Moment, Recording } from "../recording";
import { Cameras } from "../scene/cameras";
import { CameraBar, cameraWord } from "./cams";
import { Control } from "./control";
import { CourseBar } from "./course";
import { listenToDrops, readFile } from "./drop";
import { HeadPanel, type Decision } from "./head";
import { Hud } from "./hud";
import { listenToKeys } from "./keys";
import { Link } from "./link";
import { Live, type LiveListener } from "./live";
import { Modes } from "./modes";
import { Picture } from "./picture";
import { Player } from "./player";
import { listenToPointers } from "./pointer";
import { RecordingsPanel, type LocalRecording } from "./recordings";
import { copyLink, download, fullscreen } from "./share";
import { Source, words } from "./source";
import { stateOf } from "./state";
import { describe } from "./status";
import { Timeline } from "./timeline";
import { Tools } from "./tools";
import { Transport } from "./transport";

/** Seconds in the background after which the live game is left, so that it costs nothing. */
const LEAVE_AFTER = 60;

export class Watch implements LiveListener {
  readonly player = new Player(() => this.changed());
  readonly source: Source;
  readonly live: Live;
  readonly control: Control;
  readonly modes: Modes;
  readonly cameras: Cameras;
  readonly picture: Picture;
  readonly hud: Hud;
  readonly timeline: Timeline;
  readonly transport: Transport;
  readonly cameraBar: CameraBar;
  readonly tools: Tools;
  readonly recordings: RecordingsPanel;
  readonly headPanel: HeadPanel;
  readonly course: CourseBar;
  private readonly link: Link;
  private readonly writable: boolean;
  private opened: Recording | null = null;
  private begun = false;
  private leaving = 0;
  private asked: { car: number | null; observation: boolean } = { car: null, observation: false };
  private headOpen = false;
  private ready = false;

  constructor(readonly context: Context) {
    const { api, about, route } = context;
    this.writable = about.writable && api.live;
    this.picture = new Picture(context.theme() === "dark", {
      advance: (elapsed) => this.advance(elapsed), rate: () => this.transport.current, drawn: (moment) => this.drawn(moment),
      moves: () => !this.modes.placing.active && this.player.moves,
    });
    this.cameras = this.picture.stage?.cameras ?? new Cameras();
    this.source = new Source(context, this.player, () => this.live, () => this.modes.leave(), () => this.changed());
    this.live = new Live(api, this);
    this.hud = new Hud((car) => this.cameraBar.choose("car", car));
    this.timeline = new Timeline(this.player, (time) => this.control.seek(time));
    this.control = new Control(this.player, this.live, this.source, this.timeline.marks, this.writable, () => this.cameras.jump(), (text) => context.say(text));
    this.transport = new Transport(this.player, this.control, () => this.source.goLive());
    this.cameraBar = new CameraBar(this.cameras, {
      moved: () => this.cameraMoved(), cars: () => this.player.recording?.header.players.length ?? 8, far: () => this.picture.stage?.kind?.reach.far ?? 10,
    });
    this.modes = new Modes(context, this.player, this.live, this.source, this.picture.stage, {
      changed: () => this.changed(), behind: (car) => this.cameraBar.choose("car", car), ballCam: () => this.cameraBar.ballCam(), car: () => this.cameras.car,
    });
    this.tools = new Tools({
      players: () => this.modes.choosePlayers(), recordings: () => this.toggleRecordings(), rematch: () => this.modes.rematch(), place: () => this.modes.togglePlacing(),
      drive: () => this.modes.toggleDriving(), record: () => void this.live.send({ do: "record" }), download: () => void download(this.player), copyLink: () => void copyLink(context, this.source, this.player, this.link),
      head: () => this.toggleHead(), fullscreen: () => void fullscreen(context, this.picture.element.closest(".watch")), say: (text) => context.say(text),
    });
    this.recordings = new RecordingsPanel(context, {
      open: (id) => void this.source.openId(id), openLocal: (local) => this.openLocal(local), files: (files) => void this.openFiles(files), close: () => this.toggleRecordings(),
    });
    this.headPanel = new HeadPanel(context, (car, observation) => this.ask(car, observation));
    this.headPanel.element.hidden = true;
    this.course = new CourseBar((command) => void this.live.send(command), this.writable);
    this.link = new Link(route, () => (this.source.trouble || !this.source.visible ? null : {
      rec: this.source.rec, t: this.source.rec === null || this.player.playing ? null : this.player.time, cam: cameraWord(this.cameras),
    }));
    this.listen();
    context.expose("watch", () => stateOf(this));
    context.expose("screen", () => (x: number, y: number, z: number) => this.picture.stage?.screen(x, y, z) ?? null);
    this.ready = true;
  }

  // --- the tab ------------------------------------------------------------------------------------------------------

  shown(): void {
    this.source.visible = true;
    this.picture.show(true);
    if (this.source.isLive) this.live.connect();
    if (!this.begun) this.readAddress();
    this.begun = true;
  }

  hidden(): void {
    this.source.visible = false;
    this.modes.leave();
    this.picture.show(false);
    this.live.disconnect();
  }

  private listen(): void {
    const { context, picture, cameraBar, control, modes } = this;
    context.themed(() => {
      picture.stage?.theme(context.theme() === "dark");
      picture.request();
    });
    context.route.changed(() => this.source.visible && this.readAddress());
    listenToDrops((files) => void this.openFiles(files));
    document.addEventListener("visibilitychange", () => {
      clearTimeout(this.leaving);
      if (document.hidden) this.leaving = window.setTimeout(() => this.live.disconnect(), 1000 * LEAVE_AFTER);
      else if (this.source.visible && this.source.isLive) this.live.connect();
    });
    if (picture.stage) {
      const { placing } = modes;
      listenToPointers(picture.stage.canvas, {
        grab: (x, y) => placing.grab(x, y), move: (x, y) => placing.move(x, y), letGo: () => placing.letGo(), wheel: (amount, shift) => placing.wheel(amount, shift),
        drag: (dx, dy) => cameraBar.drag(dx, dy), dolly: (factor) => cameraBar.dolly(factor),
      });
    }
    listenToKeys(() => this.source.visible, {
      toggle: () => control.toggle(), step: (frames) => control.step(frames), skip: (seconds) => control.skip(seconds), speed: (step) => this.transport.change(step),
      loop: () => control.loop(), jump: (way) => control.jump(way), home: () => control.seek(0), end: () => control.end(),
      car: (car) => cameraBar.choose("car", car), camera: (mode) => cameraBar.choose(mode), ballCam: () => cameraBar.ballCam(), fly: (key, held) => cameraBar.fly(key, held),
      head: () => this.toggleHead(), recordings: () => this.toggleRecordings(), players: () => modes.choosePlayers(), place: () => modes.togglePlacing(), drive: () => modes.toggleDriving(),
      first: (event) => modes.placing.key(event),
    });
  }

  /** Shows what the address asks for; without a wish the live game, or in an exported page its first recording. */
  private readAddress(): void {
    const { rec, t, cam } = this.link.read();
    if (cam !== null) this.cameraBar.read(cam);
    if (rec !== null && rec !== this.source.wanted) void this.source.openId(rec, t);
    else if (rec !== null && rec === this.source.rec && t !== null) {
      this.source.pauseAt(t);
      this.cameras.jump();
    } else if (rec === null && (this.source.wanted !== null || !this.begun)) void this.watchFirst();
  }

  private async watchFirst(): Promise<void> {
    if (this.context.api.live) {
      this.source.watchLive();
      return;
    }
    await this.recordings.refresh();
    const first = this.recordings.rows[0];
    if (first) await this.source.openId(first.id);
    else this.source.say("this page holds no recordings", false);
  }

  // --- pictures -----------------------------------------------------------------------------------------------------

  private advance(elapsed: number): Moment | null {
    if (this.modes.placing.active) return this.modes.placing.moment();
    this.player.advance(elapsed);
    return this.player.moment();
  }

  private drawn(moment: Moment): void {
    this.hud.show(moment, this.cameraBar.followed);
    this.timeline.update();
    this.transport.tick();
    if (this.headOpen) this.headPanel.show(moment);
  }

  /** Something other than the time has changed. */
  private changed(): void {
    if (!this.ready) return;
    const { player, source, live, modes } = this;
    if (player.recording !== this.opened) this.openScene(player.recording);
    if (source.behind && !player.playing && !player.following && player.time >= player.duration) {
      source.goLive();
      return;
    }
    const said = describe(source, player, live.status);
    this.hud.say(said.text, said.bad ? "bad" : "info");
    this.hud.setBadge(said.badge, said.badgeKind);
    this.hud.humans(source.isLive ? live.status.humans : []);
    this.transport.update(source.isLive || this.context.api.live, source);
    this.tools.update(modes.obstacles(), {
      place: modes.placing.active, drive: modes.driving.car !== null, head: this.headOpen, recordings: this.recordings.open,
    });
    this.course.update(source.isLive ? live.status.facts : null);
    this.link.write();
    this.picture.request();
  }

  private openScene(recording: Recording | null): void {
    this.opened = recording;
    if (recording) this.picture.stage?.open(recording.header);
    this.hud.open(recording?.header ?? null);
    this.timeline.update();
    this.cameraBar.open(recording?.header ?? null);
    this.headPanel.opened(recording, this.source.isLive);
    this.recordings.mark(this.source.rec ?? this.recordings.nameOf(recording));
    this.showFollowed();
  }

  private cameraMoved(): void {
    this.showFollowed();
    this.link.write();
    this.picture.request();
  }

  private showFollowed(): void {
    this.hud.followed(this.cameraBar.followed);
    this.headPanel.follow(this.player.recording ? this.cameras.car : null);
  }

  // --- panels and files ---------------------------------------------------------------------------------------------

  private toggleRecordings(): void {
    this.recordings.toggle();
    this.changed();
  }

  private toggleHead(): void {
    this.headOpen = !this.headOpen;
    this.headPanel.element.hidden = !this.headOpen;
    this.live.send({ do: "head", ...(this.headOpen ? this.asked : { car: null, observation: false }) });
    this.changed();
  }

  private ask(car: number | null, observation: boolean): void {
    this.asked = { car, observation };
    if (this.headOpen) this.live.send({ do: "head", car, observation });
  }

  private openLocal(local: LocalRecording): void {
    this.source.open(local.recording, null);
  }

  private async openFiles(files: File[]): Promise<void> {
    for (const file of files) {
      try {
        const local = { name: `${file.name} (${this.recordings.local.length + 1})`, recording: await readFile(file) };
        this.recordings.addLocal(local);
        this.context.open("watch");
        this.openLocal(local);
      } catch (error) {
        this.context.say(words(error), "bad");
      }
    }
  }

  // --- what the stage says ------------------------------------------------------------------------------------------

  connected(): void {
    if (this.asked.car !== null && this.headOpen) this.live.send({ do: "head", ...this.asked });
  }

  status(): void {
    this.source.status(this.live.status);
    this.modes.status(this.live.status.state);
  }

  began(recording: Recording): void {
    this.source.began(recording);
    this.modes.began();
  }

  frame(recording: Recording): void {
    this.source.frame(recording);
    this.picture.request();
  }

  happened(event: { kind: string; text: string }): void {
    if (event.kind === "goal" && this.player.following) this.hud.announce(event.text);
  }

  head(car: number, decision: Decision | null): void {
    if (decision && this.headOpen) this.headPanel.decision(car, decision);
  }

  recorded(file: string): void {
    this.context.say(`Recorded as ${file}`, "good");
    void this.recordings.refresh();
  }

  refused(what: string, why: string): void {
    this.modes.refused(what);
    this.context.say(`${what}: ${why}`, "bad");
  }
}
