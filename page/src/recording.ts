// Recordings: the header, the records of equal size behind it, and what is between two of them (interpolated, moment.ts).
import { checkHeader, SIZES, type Field, type Header, type RecordingEvent } from "./header";
import { Moment } from "./moment";

export type { Field, FieldType, Header, HeaderPlayer, RecordingEvent } from "./header";
export { Moment } from "./moment";

const MOST_BYTES = 64 * 2 ** 20;
/** Ticks of the longest recording: years of a game, and far from where numbers lose their last digits. */
const MOST_TICKS = 2 ** 36;
const MOST_HEADER = 2 ** 20;
const MAGIC = "WDR1";

interface Place extends Field { offset: number; count: number }

/** A recording from a file, or one that grows while frames arrive. */
export class Recording {
  readonly header: Header;
  readonly events: RecordingEvent[];
  /** Bytes of a record. */
  readonly size: number;
  /** Frames that were forgotten because the recording grew too long. */
  dropped = 0;
  private readonly places = new Map<string, Place>();
  private bytes: Uint8Array;
  private view: DataView;
  private ticks: number[] = [];
  private origin = 0;

  /** Throws an error that says what is wrong with the header or the frames. */
  constructor(header: Header, frames: Uint8Array = new Uint8Array()) {
    this.header = checkHeader(header);
    let offset = 0;
    for (const field of this.header.record) {
      const count = field.shape.reduce((product, length) => product * length, 1);
      this.places.set(field.name, { ...field, offset, count });
      offset += SIZES[field.type] * count;
    }
    this.size = offset;
    if (frames.length % offset !== 0) throw new Error("this recording is cut off: its last frame is not whole");
    this.bytes = frames;
    this.view = new DataView(frames.buffer, frames.byteOffset, frames.byteLength);
    const count = frames.length / offset;
    for (let frame = 0; frame < count; frame++) {
      const tick = this.number("tick", frame);
      const last = frame ? this.ticks[frame - 1] : -MOST_TICKS;
      if (!(tick >= last && tick <= MOST_TICKS)) throw new Error("this recording is damaged: its time does not go on evenly");
      this.ticks.push(tick);
    }
    this.origin = this.ticks[0] ?? 0;
    this.events = this.header.events.filter((event) => !count || event.frame < count).sort((a, b) => a.frame - b.frame);
  }

  /** Reads a file (.wdr). Errors say what is wrong with it. */
  static async open(file: ArrayBuffer): Promise<Recording> {
    const bytes = await unpack(file);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes.length < 8 || String.fromCharCode(...bytes.subarray(0, 4)) !== MAGIC) {
      throw new Error("this is not a recording of Wavedash (.wdr)");
    }
    const length = view.getUint32(4, true);
    if (length > MOST_HEADER || 8 + length > bytes.length) throw new Error("the header of this recording is damaged: it does not end");
    let header: Header;
    try {
      header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(8, 8 + length))) as Header;
    } catch {
      throw new Error("the header of this recording is damaged: it is no JSON");
    }
    const recording = new Recording(header, bytes.slice(8 + length));
    if (!recording.frames) throw new Error("this recording holds no frames");
    return recording;
  }

  /** Adds one record that has arrived. Returns false where it is not newer than the last one. */
  append(record: Uint8Array): boolean {
    if (record.length !== this.size) throw new Error(`a frame has ${record.length} bytes instead of ${this.size}`);
    const used = this.frames * this.size;
    if (used + this.size > this.bytes.length) {
      const larger = new Uint8Array(Math.max(this.size * 256, this.bytes.length * 2));
      larger.set(this.bytes.subarray(0, used));
      this.bytes = larger;
      this.view = new DataView(larger.buffer);
    }
    this.bytes.set(record, used);
    const tick = this.number("tick", this.frames);
    if (this.frames && tick <= this.ticks[this.frames - 1]) return false;
    this.ticks.push(tick);
    if (this.frames === 1 && !this.dropped) this.origin = tick;
    return true;
  }

  /** Forgets the oldest frames; times of those that stay do not change. */
  drop(frames: number): void {
    this.bytes.copyWithin(0, frames * this.size, this.frames * this.size);
    this.ticks.splice(0, frames);
    this.dropped += frames;
    const kept = this.events.filter((event) => event.frame >= frames).map((event) => ({ ...event, frame: event.frame - frames }));
    this.events.splice(0, this.events.length, ...kept);
  }

  /** Adds an event of a live game. The stage counts frames from the beginning of its game, of which some may not have arrived here. */
  addLiveEvent(event: RecordingEvent): void {
    const tick = event.frame * this.header.ticks_per_frame;
    if (this.frames && tick < this.ticks[0]) return;
    const frame = this.frameAt(tick);
    const arrived = this.frames > 0 && this.ticks[this.frames - 1] >= tick;
    this.events.push({ ...event, frame: arrived ? (this.ticks[frame] < tick ? frame + 1 : frame) : this.frames });
  }

  /** A recording of one frame of this one, whose values can be changed. */
  still(frame: number): Recording {
    return new Recording({ ...this.header, events: [] }, this.bytes.slice(frame * this.size, (frame + 1) * this.size));
  }

  get frames(): number {
    return this.ticks.length;
  }

  /** Seconds at the first frame: 0, or more where the oldest frames were forgotten. */
  get start(): number {
    return this.frames ? this.time(0) : 0;
  }

  /** Seconds at the last frame. */
  get duration(): number {
    return this.frames ? this.time(this.frames - 1) : 0;
  }

  /** Seconds from the first frame to this one. */
  time(frame: number): number {
    const index = Math.min(Math.max(frame, 0), this.frames - 1);
    return (this.ticks[index] - this.origin) * this.header.seconds_per_tick;
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
    return place && index < place.count ? this.value(place, frame, index) : missing;
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

  /** Changes one value of a field with signed 16-bit or byte storage, as positions, velocities, rotations and boost have. */
  write(name: string, frame: number, index: number, value: number): void {
    const place = this.places.get(name);
    if (!place || index >= place.count) return;
    const offset = frame * this.size + place.offset + index * SIZES[place.type];
    const stored = Math.round(value / place.scale);
    if (place.type === "i16") this.view.setInt16(offset, Math.min(Math.max(stored, -32768), 32767), true);
    else if (place.type === "u8") this.view.setUint8(offset, Math.min(Math.max(stored, 0), 255));
    else if (place.type === "f32") this.view.setFloat32(offset, value / place.scale, true);
  }

  /** The last frame at or before this tick. */
  private frameAt(tick: number): number {
    let low = 0;
    let high = this.frames - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.ticks[middle] <= tick + 1e-6) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** What is shown at this time: two frames and how far between them it is. */
  sample(time: number): Moment {
    const tick = this.origin + time / this.header.seconds_per_tick;
    const low = this.frameAt(tick);
    const next = Math.min(low + 1, this.frames - 1);
    const gap = this.ticks[next] - this.ticks[low];
    const fraction = gap > 0 ? Math.min(Math.max((tick - this.ticks[low]) / gap, 0), 1) : 0;
    return new Moment(this, low, next, fraction, gap * this.header.seconds_per_tick, time);
  }

  /** The file that holds this recording, to be downloaded. */
  async pack(): Promise<Blob> {
    const events = this.events.map((event) => ({ ...event, frame: Math.min(event.frame, this.frames - 1) }));
    const { score, ...rest } = this.header;
    const header = new TextEncoder().encode(JSON.stringify({ ...rest, ...(score ? { score } : {}), events }));
    const start = new Uint8Array(8);
    start.set(new TextEncoder().encode(MAGIC));
    new DataView(start.buffer).setUint32(4, header.length, true);
    const frames = this.bytes.slice(0, this.frames * this.size);
    const stream = new Blob([start, header, frames]).stream().pipeThrough(new CompressionStream("gzip"));
    return new Response(stream).blob();
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
