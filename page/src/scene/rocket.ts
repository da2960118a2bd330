// The scene of a Rocket League game.
import { Group, Vector3 } from "three";
import type { Header, Moment } from "../recording";
import { Arena } from "./arena";
import { Ball } from "./ball";
import { Cars, type CarBody } from "./cars";
import { basis, place } from "./coordinates";
import { Effects } from "./effects";
import type { KindScene } from "./kind";
import { Pads } from "./pads";
import { palette } from "./palette";

/** Scratch, so that a picture makes no garbage. */
const [forward, right, up] = [new Vector3(), new Vector3(), new Vector3()];
const q = [0, 0, 0, 1];

export class RocketScene implements KindScene {
  readonly object = new Group();
  readonly overlay: HTMLElement | null = null;
  readonly focus = new Vector3(0, 1, 0);
  readonly ballGame: number[] = [0, 0, 93];
  readonly reach = { chase: 3.1, height: 1.25, far: 80, center: new Vector3(0, 0, 0) };
  private arena!: Arena;
  private ball!: Ball;
  private pads!: Pads;
  private effects!: Effects;
  cars!: Cars;

  constructor(private readonly header: Header, private readonly shadows: boolean, dark: boolean) {
    this.theme(dark);
  }

  get bodies(): readonly CarBody[] {
    return this.cars.bodies;
  }

  theme(dark: boolean): void {
    const look = palette(dark);
    if (this.arena) this.dispose();
    this.arena = new Arena(look, dark, this.shadows);
    this.ball = new Ball(look, this.shadows);
    this.pads = new Pads(look, dark);
    this.cars = new Cars(this.header, look, this.shadows, dark);
    this.effects = new Effects(look, this.header.players.length);
    this.object.clear();
    this.object.add(this.arena.object, this.ball.object, this.pads.object, this.cars.object, this.effects.object);
  }

  get busy(): boolean {
    return this.effects.busy;
  }

  show(moment: Moment, elapsed: number): void {
    const still = moment.jumped("ball.position", "ball.velocity", 0, 60);
    moment.point("ball.position", "ball.velocity", 0, 60, this.ballGame);
    place(this.ballGame[0], this.ballGame[1], this.ballGame[2], this.focus);
    if (moment.recording.has("ball.rotation")) moment.turn("ball.rotation", 0, q, still);
    basis(q, forward, right, up);
    const touched = moment.number("touched", 0, -1);
    this.ball.show(this.focus, forward, right, up, this.header.players[touched]?.team ?? -1);
    this.pads.show(moment.read("pads"), moment.time);
    this.cars.show(moment);
    this.effects.show(moment, elapsed);
  }

  toThree(x: number, y: number, z: number): Vector3 {
    return place(x, y, z);
  }

  dispose(): void {
    for (const part of [this.arena, this.ball, this.pads, this.cars, this.effects]) part.dispose();
  }
}
