// The header of a recording. Files come from anywhere, so everything that the page relies on is checked here, in words.

export type FieldType = "i8" | "u8" | "i16" | "u16" | "i32" | "u32" | "f32";
export interface Field { name: string; type: FieldType; shape: number[]; scale: number }
export interface RecordingEvent { frame: number; kind: string; car: number | null; text: string }
export interface HeaderPlayer { name: string; team: 0 | 1; hitbox: string; policy: boolean; human: boolean }

export interface Header {
  format: number;
  kind: "rocket" | "walk";
  title: string;
  created: string;
  source: string;
  seconds_per_tick: number;
  ticks_per_frame: number;
  record: Field[];
  players: HeaderPlayer[];
  scene: Record<string, unknown>;
  events: RecordingEvent[];
  reward_terms: string[];
  actions: number[][] | null;
  run: string | null;
  step: number | null;
  /** Goals of blue and orange at the end, where that is known. */
  score?: [number, number] | null;
}

export const SIZES: Record<FieldType, number> = { i8: 1, u8: 1, i16: 2, u16: 2, i32: 4, u32: 4, f32: 4 };
const MOST_FIELDS = 256;
const MOST_PLAYERS = 64;
const MOST_EVENTS = 10_000;
const MOST_RECORD = 2 ** 20;

/** Shapes of fields that are drawn; C is the number of players. Fields that a recording does not have are shown as nothing. */
const ROCKET: Record<string, (number | "C")[]> = {
  "score": [2], "goal": [], "touched": [], "ball.position": [3], "ball.velocity": [3], "ball.rotation": [4],
  "cars.position": ["C", 3], "cars.velocity": ["C", 3], "cars.rotation": ["C", 4], "cars.boost": ["C"], "cars.flags": ["C"],
  "cars.controls": ["C", 8],
};

const isText = (value: unknown): value is string => typeof value === "string";
const isCount = (value: unknown): value is number => typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

function need(holds: boolean, what: string): void {
  if (!holds) throw new Error(`the header of this recording is damaged: ${what}`);
}

function checkField(value: unknown): Field {
  need(isObject(value), "a field is no object");
  const { name, type, shape, scale } = value as Record<string, unknown>;
  need(isText(name), "a field has no name");
  need(isText(type) && Object.hasOwn(SIZES, type), `the field ${String(name)} has a type that this page does not know`);
  const sizes = Array.isArray(shape) && shape.length <= 4 && shape.every((size) => isCount(size) && size > 0 && size <= MOST_RECORD);
  need(sizes, `the field ${String(name)} has no shape`);
  need(isNumber(scale) && scale > 0, `the field ${String(name)} has no scale`);
  return { name: name as string, type: type as FieldType, shape: shape as number[], scale: scale as number };
}

function checkPlayer(value: unknown): HeaderPlayer {
  const player = isObject(value) ? value : {};
  return {
    name: isText(player.name) ? player.name.slice(0, 200) : "?", team: player.team === 1 ? 1 : 0, hitbox: isText(player.hitbox) ? player.hitbox : "octane",
    policy: player.policy === true, human: player.human === true,
  };
}

function checkEvent(value: unknown): RecordingEvent | null {
  if (!isObject(value) || !isCount(value.frame) || !isText(value.kind)) return null;
  return { frame: value.frame, kind: value.kind, car: isCount(value.car) ? value.car : null, text: isText(value.text) ? value.text : value.kind };
}

function checkShapes(header: Header): void {
  const fields = new Map(header.record.map((field) => [field.name, field]));
  need(fields.has("ball.position") && fields.has("cars.position") && fields.has("cars.rotation"), "it has neither ball nor cars");
  for (const [name, shape] of Object.entries(ROCKET)) {
    const expected = shape.map((size) => (size === "C" ? header.players.length : size));
    const field = fields.get(name);
    need(!field || String(field.shape) === String(expected), `the field ${name} has the shape ${field?.shape}, not ${expected}`);
  }
}

/** The header as this page uses it. Throws an error that says what is wrong with it. */
export function checkHeader(value: unknown): Header {
  need(isObject(value), "it is no object");
  const given = value as Record<string, unknown>;
  if (given.format !== 1) throw new Error(`this recording has format ${String(given.format).slice(0, 20)}; this page reads format 1`);
  if (given.kind !== "rocket" && given.kind !== "walk") throw new Error("this page shows games of Rocket League and walks, and this recording is of neither");
  need(isNumber(given.seconds_per_tick) && given.seconds_per_tick >= 1e-6 && given.seconds_per_tick <= 10, "it does not say how long a tick is");
  need(isCount(given.ticks_per_frame) && given.ticks_per_frame >= 1, "it does not say how many ticks a frame has");
  need(Array.isArray(given.record) && given.record.length > 0 && given.record.length <= MOST_FIELDS, "it does not say what a frame holds");
  need(!Array.isArray(given.events) || given.events.length <= MOST_EVENTS, "more happens in it than there is room for");
  need(Array.isArray(given.players) && given.players.length <= MOST_PLAYERS, "it does not say who plays");
  const list = (items: unknown): unknown[] => (Array.isArray(items) ? items : []);
  const header: Header = {
    format: 1, kind: given.kind,
    title: isText(given.title) ? given.title.slice(0, 300) : "a recording",
    created: isText(given.created) ? given.created : "", source: isText(given.source) ? given.source : "",
    seconds_per_tick: given.seconds_per_tick as number, ticks_per_frame: given.ticks_per_frame as number,
    record: (given.record as unknown[]).map(checkField), players: (given.players as unknown[]).map(checkPlayer),
    scene: isObject(given.scene) ? given.scene : {},
    events: list(given.events).map(checkEvent).filter((event): event is RecordingEvent => event !== null),
    reward_terms: list(given.reward_terms).map(String),
    actions: Array.isArray(given.actions) ? (given.actions as unknown[]).map((row) => list(row).map(Number)) : null,
    run: isText(given.run) ? given.run : null, step: isNumber(given.step) ? given.step : null,
    score: Array.isArray(given.score) && given.score.length === 2 && given.score.every(isNumber) ? [given.score[0], given.score[1]] : null,
  };
  const size = header.record.reduce((sum, field) => sum + SIZES[field.type] * field.shape.reduce((product, length) => product * length, 1), 0);
  need(size <= MOST_RECORD, "its frames are too large");
  need(header.record.some((field) => field.name === "tick"), "it has no field named tick");
  if (header.kind === "rocket") checkShapes(header);
  return header;
}
