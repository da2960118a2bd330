// The scene of a walking robot. (Stub: to be replaced.)
import { Group, Vector3 } from "three";
import type { Header, Moment } from "../recording";
import type { Body, KindScene } from "./kind";

export class WalkScene implements KindScene {
  readonly object = new Group();
  readonly overlay: HTMLElement | null = null;
  readonly bodies: Body[] = [];
  readonly focus = new Vector3();
  readonly reach = { chase: 2, height: 1, far: 8, center: new Vector3() };

  constructor(readonly header: Header) {}

  show(_moment: Moment, _elapsed: number, _eye: Vector3): void {}

  toThree(x: number, y: number, z: number): Vector3 {
    return new Vector3(x, z, -y);
  }

  theme(_dark: boolean): void {}

  dispose(): void {}
}
