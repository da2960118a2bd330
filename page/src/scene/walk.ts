// The scene of a walking robot. MuJoCo's coordinates are right-handed with z up, three's are right-handed with y up: a rotation, not a mirror.
import { Group, Vector3 } from "three";
import type { Header, Moment } from "../recording";
import type { Body, KindScene } from "./kind";
import { CASTERS, Ground } from "./walk-ground";
import { heightAt, readWalk, type WalkHeader } from "./walk-header";
import { Marks } from "./walk-marks";
import { WalkOverlay } from "./walk-overlay";
import { Robot } from "./walk-robot";

const REACH = 0.4;

class WalkBody implements Body {
  readonly team = null;
  readonly position = new Vector3();
  readonly velocity = new Vector3();
  readonly forward = new Vector3(1, 0, 0);
  readonly up = new Vector3(0, 1, 0);
  readonly present = true;

  constructor(readonly name: string) {}
}

export class WalkScene implements KindScene {
  readonly object = new Group();
  readonly overlay: HTMLElement;
  readonly bodies: readonly Body[];
  readonly focus = new Vector3();
  readonly reach = { chase: 1.5, height: 0.75, far: 5, center: new Vector3() };
  /** From where the director looks at the robot: from behind and from its right. */
  readonly view = new Vector3(-1.45, 1.0, 1.6);
  private readonly walk: WalkHeader;
  private readonly body: WalkBody;
  private readonly ground: Ground;
  private readonly robot: Robot;
  private readonly marks: Marks;
  private readonly words: WalkOverlay;

  constructor(header: Header) {
    this.walk = readWalk(header);
    this.body = new WalkBody(header.players[0]?.name ?? "robot");
    this.bodies = [this.body];
    this.ground = new Ground(this.walk.heights);
    this.robot = new Robot(this.walk.shapes, CASTERS);
    this.marks = new Marks(this.walk.heights);
    this.words = new WalkOverlay(this.walk);
    this.overlay = this.words.element;
    const turned = new Group();
    turned.rotation.x = -Math.PI / 2;
    turned.add(this.ground.object, this.robot.object, this.marks.object);
    this.object.add(turned);
    this.theme(true);
  }

  show(moment: Moment): void {
    const [point, q] = [[0, 0, 0], [1, 0, 0, 0]];
    const still = moment.jumped("position", "velocity", 0, REACH);
    moment.point("position", "velocity", 0, REACH, point);
    moment.turn("orientation", 0, q, still);
    const [w, x, y, z] = q;
    const forward = [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)];
    const velocity = [0, 1, 2].map((index) => moment.line("velocity", index));
    this.toThree(point[0], point[1], point[2], this.body.position);
    this.toThree(velocity[0], velocity[1], velocity[2], this.body.velocity);
    this.toThree(forward[0], forward[1], forward[2], this.body.forward);
    this.toThree(2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y), this.body.up);
    this.focus.copy(this.body.position);
    this.reach.center.copy(this.body.position);
    this.robot.show(moment, this.ground.casters);
    this.marks.show(moment, point, Math.atan2(forward[1], forward[0]));
    const begin = [0, 1].map((index) => moment.recording.number("position", 0, index));
    const speed = forward.reduce((sum, part, index) => sum + part * velocity[index], 0);
    this.words.show(moment, speed, Math.hypot(point[0] - begin[0], point[1] - begin[1]));
  }

  /** The height of the ground there, in three's coordinates, so that cameras stay above it. */
  floor(x: number, z: number): number {
    return heightAt(this.walk.heights, x, -z);
  }

  toThree(x: number, y: number, z: number, out = new Vector3()): Vector3 {
    return out.set(x, z, -y);
  }

  theme(dark: boolean): void {
    this.ground.theme(dark);
    this.marks.theme(dark);
  }

  dispose(): void {
    for (const part of [this.ground, this.robot, this.marks]) part.dispose();
  }
}
