// A moment that is being changed by hand: one frame whose bodies can be moved, and the command that plays on from it.
import type { Recording } from "../recording";
import { FLAGS } from "../scene/cars";
import { BACK, BALL_RADIUS, CEILING, GOAL_DEPTH, SIDE } from "../scene/field";

/** The number of the ball among the bodies; cars count from 0. */
export const BALL = -1;
const CAR_REST = 17;

type Vector = [number, number, number];
interface PlacedBody { position: Vector; velocity: Vector; yaw?: number; boost?: number }

const round = (vector: number[]): Vector => vector.map((value) => Math.round(value * 10) / 10) as Vector;
const clamp = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high);

export class Draft {
  /** The moment as a recording of one frame, so that it is drawn like any other. */
  readonly recording: Recording;
  private readonly touched = new Set<number>();

  constructor(source: Recording, frame: number) {
    this.recording = source.still(frame);
  }

  get cars(): number {
    return this.recording.header.players.length;
  }

  private vector(field: string, body: number): Vector {
    const [name, first] = body === BALL ? [`ball.${field}`, 0] : [`cars.${field}`, 3 * body];
    return [0, 1, 2].map((axis) => this.recording.number(name, 0, first + axis)) as Vector;
  }

  private set(field: string, body: number, vector: number[]): void {
    const [name, first] = body === BALL ? [`ball.${field}`, 0] : [`cars.${field}`, vector.length * body];
    vector.forEach((value, index) => this.recording.write(name, 0, first + index, value));
    this.touched.add(body);
  }

  position(body: number): Vector {
    return this.vector("position", body);
  }

  /** Moves a body, but not out of the field. The stage looks more closely. */
  move(body: number, [x, y, z]: number[]): void {
    const floor = body === BALL ? BALL_RADIUS + 2 : CAR_REST;
    const deep = BACK + GOAL_DEPTH - 100;
    this.set("position", body, [clamp(x, -SIDE + 100, SIDE - 100), clamp(y, -deep, deep), clamp(z, floor, CEILING - 100)]);
    if (body !== BALL) {
      const flags = this.recording.number("cars.flags", 0, body);
      this.recording.write("cars.flags", 0, body, flags & ~(FLAGS.demoed | FLAGS.boosting | FLAGS.supersonic));
      this.turn(body, this.yaw(body));
    }
  }

  /** Where a car looks, in radians: 0 is along x, and half of pi towards the goal of orange. */
  yaw(car: number): number {
    const [x, y, z, w] = [0, 1, 2, 3].map((part) => this.recording.number("cars.rotation", 0, 4 * car + part));
    return Math.atan2(2 * (x * y + z * w), 1 - 2 * (y * y + z * z));
  }

  /** Turns a car, and its velocity with it. Cars that are placed stand level. */
  turn(car: number, yaw: number): void {
    const by = yaw - this.yaw(car);
    const [vx, vy, vz] = this.velocity(car);
    this.set("rotation", car, [0, 0, Math.sin(yaw / 2), Math.cos(yaw / 2)]);
    this.push(car, [vx * Math.cos(by) - vy * Math.sin(by), vx * Math.sin(by) + vy * Math.cos(by), vz]);
  }

  velocity(body: number): Vector {
    return this.vector("velocity", body);
  }

  push(body: number, velocity: number[]): void {
    this.set("velocity", body, velocity);
  }

  boost(car: number): number {
    return this.recording.number("cars.boost", 0, car);
  }

  setBoost(car: number, boost: number): void {
    this.recording.write("cars.boost", 0, car, clamp(boost, 0, 100));
    this.touched.add(car);
  }

  get changed(): boolean {
    return this.touched.size > 0;
  }

  private placed(body: number): PlacedBody {
    const made: PlacedBody = { position: round(this.position(body)), velocity: round(this.velocity(body)) };
    // RocketSim lets a ball without any velocity sleep, also in the air, as before a kick-off.
    if (body === BALL && made.position[2] > BALL_RADIUS + 10 && made.velocity.every((value) => value === 0)) made.velocity[2] = -1;
    if (body !== BALL) {
      made.yaw = Math.round(this.yaw(body) * 1e4) / 1e4;
      made.boost = Math.round(this.boost(body));
    }
    return made;
  }

  /** The command for the stage. `all`: with the bodies that were not touched, because the stage is at another moment. */
  command(all: boolean): Record<string, unknown> {
    const wanted = (body: number): boolean => all || this.touched.has(body);
    const cars = Array.from({ length: this.cars }, (_, car) => {
      const gone = this.recording.number("cars.flags", 0, car) & FLAGS.demoed;
      return wanted(car) && !gone ? this.placed(car) : null;
    });
    return { do: "place", ...(wanted(BALL) ? { ball: this.placed(BALL) } : {}), cars: this.bySeat(cars) };
  }

  /** Seats of a stage are those of blue before those of orange. */
  private bySeat(cars: (PlacedBody | null)[]): (PlacedBody | null)[] {
    const teams = this.recording.header.players.map((player) => player.team);
    return [0, 1].flatMap((team) => cars.filter((_, car) => teams[car] === team));
  }

  /** How many cars the larger team has: the size of a game that can go on from here. */
  get size(): number {
    const teams = this.recording.header.players.map((player) => player.team);
    return Math.max(...[0, 1].map((team) => teams.filter((one) => one === team).length), 1);
  }
}
