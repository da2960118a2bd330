// Questions to the server, with the token if there is one. Every answer has a type here.
import type { Header, RecordingEvent } from "./recording";

export interface About {
  version: string;
  loopback: boolean;
  writable: boolean;
  run: string | null;
  watching: { blue: string; orange: string } | null;
  /** When an exported page was written, and what it does not hold. */
  exported?: string;
  left_out?: string[];
  /** The tab to open first; "watch" where it is not said. */
  tab?: string;
}

export interface RunRow {
  id: string;
  name: string;
  title: string;
  started: string | null;
  steps: number;
  total_steps: number | null;
  state: "running" | "finished" | "stopped";
  kind: "rocket" | "walk" | "other";
  return: number | null;
  rating: number | null;
}

export interface Checkpoint { name: string; step: number; saved_at: string | number | null; age: number | null; bytes: number }

export interface Milestone { name: string; step: number; time?: string | null; [fact: string]: unknown }

/** Shares of 1 and bytes; null where the machine does not tell. */
export interface MachineLoad {
  cpu: number | null;
  cores?: number | null;
  memory: number | null;
  memory_used?: number | null;
  memory_total?: number | null;
  gpu: { name: string; used: number | null; memory: number | null; memory_total: number | null; temperature: number | null } | null;
}

export interface RunDetails extends RunRow {
  config: string;
  command: string | null;
  /** How often the run was started, the first time included. */
  starts?: number;
  holder?: string | null;
  versions: Record<string, unknown> | null;
  /** The one that was saved last comes first. */
  checkpoints: Checkpoint[];
  milestones: Milestone[];
  phase: string | null;
  log?: string[];
  disk: { free: number | null; run_bytes: number | null; hours_left: number | null } | null;
  /** Counters of trouble, and `checkpoint_age` in seconds. */
  health: Record<string, number | null>;
  steps_per_second: number | null;
  time_split: Record<string, number>;
  eta_seconds: number | null;
  machine: MachineLoad | null;
  healthy: Record<string, [number | null, number | null]>;
}

export interface Metrics {
  /** Another number where rows that were read before are no longer true: the run was resumed from an older checkpoint. */
  edition?: number;
  names: string[];
  steps: number[];
  columns: Record<string, (number | null)[]>;
  phases: { step: number; name: string }[];
  events: RunEvent[];
}

/** Something that was done to a run, or refused. */
export interface RunEvent {
  step: number | null;
  time: string | number | null;
  text: string;
  by?: string | null;
  key?: string | null;
  refused?: string | null;
}

export interface Rated { value: number; low: number; high: number; games: number }

export interface Ladder {
  games: number;
  reference_games: number;
  scale: string;
  /** The strongest first. */
  ratings: ({ player: string } & Rated)[];
  /** Ratings of the versions of each run, by steps. */
  runs: Record<string, ({ steps: number } & Rated)[]>;
  /** Cars per team of these games, and of all games that there are. */
  size: number | null;
  sizes: number[];
  /** Row against column: the share of points, null where they did not meet. */
  matrix: { players: string[]; win_rate: (number | null)[][]; games: number[][] };
}

export interface Settings {
  /** `help`: the sentence that documents it. `choices`: the words that it may be, where they are few. */
  settings: { key: string; value: unknown; help?: string; choices?: string[] }[];
  orders: unknown[];
}

export interface SetAnswer { done: boolean; said: string | string[] }

export interface Player {
  id: string;
  name: string;
  group: string;
  step: number | null;
  size: number | null;
  kind: "rocket" | "walk" | "other";
  run: string | null;
  /** Why it must not play here; null: it may. */
  refused: string | null;
}

export interface RecordingRow {
  id: string;
  title: string;
  run: string | null;
  source: string;
  created: string;
  seconds: number;
  players: (Header["players"][number] | string)[];
  score: [number, number] | null;
  bytes: number;
  events: RecordingEvent[];
}

/** A question that was answered with an error; the message says what the server said. */
export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

const TOKEN = "wavedash.token";

/** Takes the token out of the address bar into the storage of this tab, and returns the token of this tab. */
export function takeToken(): string | null {
  const hash = new URLSearchParams(location.hash.slice(1));
  const given = hash.get("token");
  try {
    if (given) sessionStorage.setItem(TOKEN, given);
    if (given) {
      hash.delete("token");
      history.replaceState(null, "", location.pathname + location.search + (String(hash) ? `#${hash}` : ""));
    }
    return given ?? sessionStorage.getItem(TOKEN);
  } catch {
    return given;  // Storage is closed to pages from files and in some private windows.
  }
}

/** Where answers come from: the server, or the data inside an exported file (offline.ts). */
export interface Source {
  readonly live: boolean;
  json(path: string): Promise<unknown>;
  file(path: string): Promise<ArrayBuffer>;
  post(path: string, body: unknown): Promise<unknown>;
}

/** Asks the server that served this page. */
export class ServerSource implements Source {
  readonly live = true;

  /** `heard` is told of every question whether the server has answered it, with whatever. */
  constructor(private readonly token: string | null, private readonly heard: (answered: boolean) => void = () => {}) {}

  private async ask(path: string, init: RequestInit = {}): Promise<Response> {
    const headers: Record<string, string> = { ...(init.headers as Record<string, string>) };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    const answer = await fetch(path, { ...init, headers, cache: "no-store", credentials: "omit" }).catch(() => {
      this.heard(false);
      throw new ApiError(0, "the server does not answer: it has ended, or the connection to it is broken");
    });
    this.heard(true);
    if (!answer.ok) throw new ApiError(answer.status, await reason(answer));
    return answer;
  }

  async json(path: string): Promise<unknown> {
    return (await this.ask(path)).json();
  }

  async file(path: string): Promise<ArrayBuffer> {
    return (await this.ask(path)).arrayBuffer();
  }

  async post(path: string, body: unknown): Promise<unknown> {
    const headers = { "Content-Type": "application/json" };
    return (await this.ask(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
  }
}

async function reason(answer: Response): Promise<string> {
  const text = (await answer.text().catch(() => "")).trim();
  try {
    const data = JSON.parse(text) as Record<string, unknown>;
    for (const key of ["error", "why", "detail", "said"]) if (data[key]) return String(data[key]);
  } catch { /* The answer is plain text. */ }
  return text.slice(0, 300) || `the server answered ${answer.status}`;
}

/** All questions, by name. */
export class Api {
  constructor(private readonly source: Source, readonly token: string | null) {}

  /** Whether a server answers; false in an exported file. */
  get live(): boolean {
    return this.source.live;
  }

  about = () => this.source.json("/api/about") as Promise<About>;
  runs = () => this.source.json("/api/runs") as Promise<RunRow[]>;
  run = (id: string) => this.source.json(`/api/runs/${id}`) as Promise<RunDetails>;
  events = (id: string) => this.source.json(`/api/runs/${id}/events`) as Promise<RunEvent[]>;
  ladder = (id: string, size?: number) => this.source.json(`/api/runs/${id}/ladder${size ? `?size=${size}` : ""}`) as Promise<Ladder>;
  settings = (id: string) => this.source.json(`/api/runs/${id}/settings`) as Promise<Settings>;
  players = () => this.source.json("/api/players") as Promise<Player[]>;
  starts = () => this.source.json("/api/starts") as Promise<string[]>;
  recordings = () => this.source.json("/api/recordings") as Promise<RecordingRow[]>;
  recording = (id: string) => this.source.file(`/api/recordings/${id}`);

  metrics(id: string, ask: { names?: string[]; points?: number; after?: number } = {}): Promise<Metrics> {
    const query = new URLSearchParams();
    if (ask.names) query.set("names", ask.names.join(","));
    if (ask.points) query.set("points", String(ask.points));
    if (ask.after !== undefined) query.set("after", String(ask.after));
    return this.source.json(`/api/runs/${id}/metrics${String(query) ? `?${query}` : ""}`) as Promise<Metrics>;
  }

  set(id: string, values: Record<string, unknown>, orders: string[] = []): Promise<SetAnswer> {
    return this.source.post(`/api/runs/${id}/set`, { values, orders }) as Promise<SetAnswer>;
  }

  /** A socket to the stage; it is not open yet. */
  socket(): WebSocket {
    const address = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/watch`;
    return new WebSocket(address, this.token ? ["wavedash", `token.${this.token}`] : ["wavedash"]);
  }
}
