// The socket to the stage: live games arrive here and are recorded in the browser. It reconnects by itself, later and later.
import type { Api } from "../api";
import type { Header } from "../header";
import { Recording, type RecordingEvent } from "../recording";
import type { Decision } from "./head";

/** What is known of the stage. `lost`: the server does not answer; `off`: nobody wants to watch. */
export interface StageStatus {
  state: "off" | "connecting" | "lost" | "waiting" | "starting" | "playing" | "paused" | "failed";
  text: string;
  speed: number;
  who: { blue: string | null; orange: string | null } | null;
  humans: number[];
  simulator: string;
  /** All that the stage said with its last status, such as the terrains of a walk. */
  facts: Record<string, unknown> | null;
}

/** What the view wants to hear of a live game. */
export interface LiveListener {
  connected(): void;
  status(): void;
  /** A game begins; its first frame has arrived. */
  began(recording: Recording): void;
  frame(recording: Recording): void;
  happened(event: RecordingEvent): void;
  head(car: number, decision: Decision | null): void;
  recorded(file: string): void;
  refused(what: string, why: string): void;
}

const FIRST_WAIT = 0.5;
const LONGEST_WAIT = 10;
const MOST_BYTES = 24 * 2 ** 20;
const MOST_SECONDS = 900;
const STAMP = 12;
const NOTHING: StageStatus = { state: "off", text: "", speed: 1, who: null, humans: [], simulator: "", facts: null };

export class Live {
  status: StageStatus = NOTHING;
  /** The current game, as far as it arrived. */
  recording: Recording | null = null;
  viewers = 0;
  private socket: WebSocket | null = null;
  private wanted = false;
  private failures = 0;
  private timer = 0;
  private game = -1;
  private pending: { game: number; header: Header; text: string } | null = null;
  private headerText = "";
  private waiting: Record<string, unknown>[] = [];
  /** Seconds from the stage to here of the last frames. */
  private readonly ages: number[] = [];

  constructor(private readonly api: Api, private readonly listener: LiveListener) {}

  /** Watches until `disconnect`. */
  connect(): void {
    this.wanted = true;
    if (!this.socket && !this.timer) this.open();
  }

  disconnect(): void {
    this.wanted = false;
    clearTimeout(this.timer);
    this.timer = this.failures = 0;
    const socket = this.socket;
    this.socket = null;
    this.waiting = [];
    socket?.close();
    this.say({ ...NOTHING });
  }

  get connected(): boolean {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  /** Sends a command now, or as soon as there is a connection. */
  sendSoon(command: Record<string, unknown>): void {
    if (!this.send(command)) this.waiting.push(command);
  }

  /** Sends a command; false: there is no connection now. */
  send(command: Record<string, unknown>): boolean {
    if (!this.connected) return false;
    this.socket!.send(JSON.stringify(command));
    return true;
  }

  /** Milliseconds from the stage to this page, of the last frames. The clocks of both machines are compared. */
  latency(): { last: number; median: number; p99: number; frames: number } {
    const sorted = [...this.ages].sort((a, b) => a - b);
    const at = (part: number): number => Math.round(10 * (sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0)) / 10;
    return { last: Math.round(10 * (this.ages[this.ages.length - 1] ?? 0)) / 10, median: at(0.5), p99: at(0.99), frames: this.ages.length };
  }

  private open(): void {
    this.timer = 0;
    if (this.status.state === "off") this.say({ ...NOTHING, state: "connecting", text: "connecting" });
    let socket: WebSocket;
    try {
      socket = this.api.socket();
    } catch {
      this.retry("this browser does not open sockets here");
      return;
    }
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onmessage = (message) => {
      if (socket !== this.socket) return;
      this.failures = 0;
      if (typeof message.data === "string") this.hearText(message.data);
      else this.hearFrame(message.data as ArrayBuffer);
    };
    socket.onopen = () => {
      if (socket !== this.socket) return;
      this.listener.connected();
      for (const command of this.waiting.splice(0)) this.send(command);
    };
    socket.onclose = (event) => {
      if (socket !== this.socket) return;
      this.socket = null;
      this.retry(event.reason || "the server does not answer");
    };
  }

  private retry(why: string): void {
    if (!this.wanted) return;
    const wait = Math.min(FIRST_WAIT * 2 ** this.failures, LONGEST_WAIT) * (0.8 + 0.4 * Math.random());
    this.failures += 1;
    this.say({ ...this.status, state: "lost", text: `${why}; trying again` });
    this.timer = window.setTimeout(() => this.open(), 1000 * wait);
  }

  private say(status: StageStatus): void {
    this.status = status;
    this.listener.status();
  }

  private hearText(text: string): void {
    let message: Record<string, unknown>;
    try {
      message = JSON.parse(text) as Record<string, unknown>;
    } catch {
      return;
    }
    switch (message.type) {
      case "status": return this.say(readStatus(message, this.status));
      case "header": return this.begin(message);
      case "event":
        if (message.game !== this.game || !this.recording) return;
        this.recording.addLiveEvent(message.event as RecordingEvent);
        return this.listener.happened(message.event as RecordingEvent);
      case "head": return this.listener.head(Number(message.car), message.decision as Decision | null);
      case "recorded": return this.listener.recorded(String(message.file));
      case "refused": return this.listener.refused(String(message.what), String(message.why));
      case "viewers": this.viewers = Number(message.viewers); return;
      default: return;
    }
  }

  /** Another game begins with its next frame. After a reconnection it may be the one that was shown before. */
  private begin(message: Record<string, unknown>): void {
    const { type: _, game, ...header } = message;
    const text = JSON.stringify(header);
    if (this.recording && game === this.game && text === this.headerText) return;
    this.pending = { game: Number(game), header: { events: [], ...header } as unknown as Header, text };
  }

  private hearFrame(data: ArrayBuffer): void {
    if (data.byteLength <= STAMP) return;
    const stamp = new DataView(data);
    const game = stamp.getUint32(0, true);
    try {
      if (this.pending?.game === game) {
        const recording = new Recording(this.pending.header);
        recording.append(new Uint8Array(data, STAMP));
        [this.recording, this.game, this.headerText, this.pending] = [recording, game, this.pending.text, null];
        this.listener.began(recording);
      } else if (game === this.game && this.recording) {
        if (!this.recording.append(new Uint8Array(data, STAMP))) return;
      } else {
        return;
      }
    } catch (error) {
      this.pending = null;
      this.say({ ...this.status, state: "failed", text: `this page cannot show the game: ${(error as Error).message}` });
      return;
    }
    this.ages.push(1000 * (Date.now() / 1000 - stamp.getFloat64(4, true)));
    if (this.ages.length > 600) this.ages.shift();
    this.bound(this.recording!);
    this.listener.frame(this.recording!);
  }

  /** Forgets the oldest quarter of a game that grew too long. */
  private bound(recording: Recording): void {
    if (recording.frames * recording.size < MOST_BYTES && recording.duration - recording.start < MOST_SECONDS) return;
    recording.drop(Math.ceil(recording.frames / 4));
  }
}

function readStatus(message: Record<string, unknown>, before: StageStatus): StageStatus {
  const states = ["waiting", "starting", "playing", "paused", "failed"];
  const who = message.who as StageStatus["who"] | undefined;
  return {
    state: states.includes(String(message.state)) ? (message.state as StageStatus["state"]) : "starting",
    text: String(message.text ?? ""),
    speed: typeof message.speed === "number" && message.speed > 0 ? message.speed : before.speed,
    who: who ?? null,
    humans: Array.isArray(message.humans) ? message.humans.map(Number) : [],
    simulator: String(message.simulator ?? ""),
    facts: message,
  };
}
