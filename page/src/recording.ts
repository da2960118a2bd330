// Recordings: the header, the records of equal size behind it, and what is between two of them (interpolated).

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
}

const SIZES: Record<FieldType, number> = { i8: 1, u8: 1, i16: 2, u16: 2, i32: 4, u32: 4, f32: 4 };
const MOST_BYTES = 64 * 2 ** 20;
const MOST_HEADER = 2 ** 20;
const MAGIC = "WDR1";

interface Place extends Field { offset: number; count: number }

/** A recording from a file, or one that grows while frames arrive. */
export class Recording {
  readonly header: Header;
  readonly events: RecordingEvent[];
  private readonly places = new Map<string, Place>();
  private readonly size: number;
  private bytes: Uint8Array;
  private view: DataView;
  private ticks: number[] = [];

  constructor(header: Header, frames: Uint8Array = new Uint8Array()) {
    this.header = header;
    this.events = [...(header.events ?? [])].sort((a, b) => a.frame - b.frame);
    let offset = 0;
    for (const field of header.record) {
      const size = SIZES[field.type];
      if (!size || !Array.isArray(field.shape)) throw new Error(`the field ${field.name} has a type that this page does not know`);
      const count = field.shape.reduce((product, length) => product * length, 1);
      this.places.set(field.name, { ...field, scale: field.scale ?? 1, offset, count });
      offset += size * count;
    }
    this.size = offset;
    if (!this.places.has("tick")) throw new Error("this recording has no field named tick");
    if (offset === 0 || frames.length % offset !== 0) throw new Error("this recording is cut off: its last frame is not whole");
    this.bytes = frames;
    this.view = new DataView(frames.buffer, frames.byteOffset, frames.byteLength);
    for (let frame = 0; frame < frames.length / offset; frame++) this.ticks.push(this.number("tick", frame));
  }

  /** Reads a file (.wdr). Errors say what is wrong with it. */
  static async open(file: ArrayBuffer): Promise<Recording> {
    const bytes = await unpack(file);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes.length < 8 || String.fromCharCode(...bytes.subarray(0, 4)) !== MAGIC) {
      throw new Error("this is not a recording of Wavedash (.wdr)");
    }
    const length = view.getUint32(4, true);
    if (length > MOST_HEADER || 8 + length > bytes.length) throw new Error("the header of this recording is damaged");
    let header: Header;
    try {
      header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(8, 8 + length))) as Header;
    } catch {
      throw new Error("the header of this recording is damaged");
    }
    if (header.format !== 1) throw new Error(`this recording has format ${header.format}; this page reads format 1`);
    const recording = new Recording(header, bytes.slice(8 + length));
    if (!recording.frames) throw new Error("this recording holds no frames");
    return recording;
  }

  /** Adds one record that has arrived. */
  append(record: Uint8Array): void {
    if (record.length !== this.size) throw new Error(`a frame has ${record.length} bytes instead of ${this.size}`);
    const used = this.frames * this.size;
    if (used + this.size > this.bytes.length) {
      const larger = new Uint8Array(Math.max(this.size * 256, this.bytes.length * 2));
      larger.set(this.bytes.subarray(0, used));
      this.bytes = larger;
      this.view = new DataView(larger.buffer);
    }
    this.bytes.set(record, used);
    this.ticks.push(0);
    this.ticks[this.frames - 1] = this.number("tick", this.frames - 1);
  }

  /** Adds an event that has arrived. */
  addEvent(event: RecordingEvent): void {
    this.events.push(event);
  }

  get frames(): number {
    return this.ticks.length;
  }

  /** Seconds from the first frame to the last one. */
  get duration(): number {
    return this.frames ? this.time(this.frames - 1) : 0;
  }

  /** Seconds from the first frame to this one. */
  time(frame: number): number {
    const index = Math.min(Math.max(frame, 0), this.frames - 1);
    return (this.ticks[index] - this.ticks[0]) * this.header.seconds_per_tick;
  }

  /** Usual seconds between two frames. */
  get interval(): number {
    return this.header.seconds_per_tick * this.header.ticks_per_frame;
  }

  has(name: string): boolean {
    return this.places.has(name);
  }

  /** Shape of a field, or null where the recording does not have it. */
  shape(name: string): number[] | null {
    return this.places.get(name)?.shape ?? null;
  }

  /** All values of a field in a frame, flat and scaled; an empty list where the recording does not have it. */
  read(name: string, frame: number): number[] {
    const place = this.places.get(name);
    if (!place) return [];
    const values = new Array<number>(place.count);
    for (let index = 0; index < place.count; index++) values[index] = this.value(place, frame, index);
    return values;
  }

  /** One value of a field in a frame; `missing` where the recording does not have it. */
  number(name: string, frame: number, index = 0, missing = 0): number {
    const place = this.places.get(name);
    return place ? this.value(place, frame, index) : missing;
  }

  private value(place: Place, frame: number, index: number): number {
    const offset = frame * this.size + place.offset + index * SIZES[place.type];
    switch (place.type) {
      case "i8": return this.view.getInt8(offset) * place.scale;
      case "u8": return this.view.getUint8(offset) * place.scale;
      case "i16": return this.view.getInt16(offset, true) * place.scale;
      case "u16": return this.view.getUint16(offset, true) * place.scale;
      case "i32": return this.view.getInt32(offset, true) * place.scale;
      case "u32": return this.view.getUint32(offset, true) * place.scale;
      default: return this.view.getFloat32(offset, true) * place.scale;
    }
  }

  /** What is shown at this time: two frames and how far between them it is. */
  sample(time: number): Moment {
    const tick = this.ticks[0] + time / this.header.seconds_per_tick;
    let low = 0;
    let high = this.frames - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.ticks[middle] <= tick + 1e-6) low = middle;
      else high = middle - 1;
    }
    const next = Math.min(low + 1, this.frames - 1);
    const gap = this.ticks[next] - this.ticks[low];
    const fraction = gap > 0 ? Math.min(Math.max((tick - this.ticks[low]) / gap, 0), 1) : 0;
    return new Moment(this, low, next, fraction, gap * this.header.seconds_per_tick, time);
  }

  /** The file that holds this recording, to be downloaded. */
  async pack(): Promise<Blob> {
    const header = new TextEncoder().encode(JSON.stringify({ ...this.header, events: this.events }));
    const start = new Uint8Array(8);
    start.set(new TextEncoder().encode(MAGIC));
    new DataView(start.buffer).setUint32(4, header.length, true);
    const frames = this.bytes.slice(0, this.frames * this.size);
    const stream = new Blob([start, header, frames]).stream().pipeThrough(new CompressionStream("gzip"));
    return new Response(stream).blob();
  }
}

/** A time in a recording. Bodies move between frames along cubic curves through positions and velocities. */
export class Moment {
  constructor(
    readonly recording: Recording,
    readonly frame: number,
    readonly next: number,
    readonly fraction: number,
    readonly gap: number,
    readonly time: number,
  ) {}

  /** All values of a field as they were at the frame before. */
  read(name: string): number[] {
    return this.recording.read(name, this.frame);
  }

  number(name: string, index = 0, missing = 0): number {
    return this.recording.number(name, this.frame, index, missing);
  }

  /** Whether body `index` jumped (kick-off, demolition, placed by hand): then nothing is interpolated. */
  jumped(position: string, velocity: string | null, index: number, reach: number): boolean {
    if (this.frame === this.next) return false;
    let square = 0;
    let speed = 0;
    for (let axis = 0; axis < 3; axis++) {
      const at = 3 * index + axis;
      square += (this.recording.number(position, this.next, at) - this.number(position, at)) ** 2;
      if (velocity) speed += Math.max(Math.abs(this.number(velocity, at)), Math.abs(this.recording.number(velocity, this.next, at)));
    }
    return Math.sqrt(square) > speed * this.gap * 1.5 + reach;
  }

  /** Position `index` of a field [.., 3], on the cubic curve given by the velocities. */
  point(position: string, velocity: string | null, index: number, reach: number, out: number[]): number[] {
    const t = this.jumped(position, velocity, index, reach) ? 0 : this.fraction;
    const h1 = t * t * (3 - 2 * t);
    const h2 = t * (1 - t) * (1 - t) * this.gap;
    const h3 = t * t * (t - 1) * this.gap;
    for (let axis = 0; axis < 3; axis++) {
      const at = 3 * index + axis;
      const from = this.number(position, at);
      const to = this.recording.number(position, this.next, at);
      if (velocity && this.recording.has(velocity)) {
        out[axis] = from + (to - from) * h1 + this.number(velocity, at) * h2 + this.recording.number(velocity, this.next, at) * h3;
      } else {
        out[axis] = from + (to - from) * t;
      }
    }
    return out;
  }

  /** Quaternion `index` of a field [.., 4], on the shorter arc; the order of its parts does not matter. */
  turn(name: string, index: number, out: number[], still = false): number[] {
    const t = still ? 0 : this.fraction;
    let dot = 0;
    for (let part = 0; part < 4; part++) {
      dot += this.number(name, 4 * index + part) * this.recording.number(name, this.next, 4 * index + part);
    }
    const sign = dot < 0 ? -1 : 1;
    const angle = Math.acos(Math.min(Math.abs(dot), 1));
    const sine = Math.sin(angle);
    const a = sine > 1e-4 ? Math.sin((1 - t) * angle) / sine : 1 - t;
    const b = (sine > 1e-4 ? Math.sin(t * angle) / sine : t) * sign;
    let square = 0;
    for (let part = 0; part < 4; part++) {
      out[part] = a * this.number(name, 4 * index + part) + b * this.recording.number(name, this.next, 4 * index + part);
      square += out[part] ** 2;
    }
    const length = Math.sqrt(square) || 1;
    for (let part = 0; part < 4; part++) out[part] /= length;
    return out;
  }

  /** Value `index` of a field on the straight line between the frames. */
  line(name: string, index = 0, missing = 0): number {
    const from = this.number(name, index, missing);
    return from + (this.recording.number(name, this.next, index, missing) - from) * this.fraction;
  }
}

async function unpack(file: ArrayBuffer): Promise<Uint8Array> {
  const head = new Uint8Array(file, 0, Math.min(2, file.byteLength));
  if (head[0] !== 0x1f || head[1] !== 0x8b) throw new Error("this is not a recording of Wavedash (.wdr)");
  const reader = new Blob([file]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw new Error("this recording is damaged: it cannot be unpacked");
    });
    if (done) break;
    length += value.length;
    if (length > MOST_BYTES) {
      void reader.cancel();
      throw new Error("this recording is larger than 64 MiB");
    }
    parts.push(value);
  }
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return bytes;
}
