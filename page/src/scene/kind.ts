// What the stage asks of the scene of a kind (rocket.ts, walk.ts). All lengths in three are metres, y is up.
import type { Object3D, Vector3 } from "three";
import type { Moment } from "../recording";

/** Something a camera can follow. */
export interface Body {
  readonly name: string;
  /** 0 is blue, 1 is orange, null has no team. */
  readonly team: 0 | 1 | null;
  readonly position: Vector3;
  readonly velocity: Vector3;
  readonly forward: Vector3;
  readonly up: Vector3;
  /** False while it is demolished. */
  readonly present: boolean;
}

export interface KindScene {
  /** Everything that is drawn. */
  readonly object: Object3D;
  /** HTML that lies over the picture, such as a depth image. */
  readonly overlay: HTMLElement | null;
  /** What cameras can follow, in the order of the keys 1 to 8. */
  readonly bodies: readonly Body[];
  /** What a game is about: the ball; cameras with ball-cam look at it. */
  readonly focus: Vector3;
  /** Distances of cameras: `chase` behind a body, `height` above it, `far` for the view of everything. */
  readonly reach: { chase: number; height: number; far: number; center: Vector3 };
  /** From where the director looks at the focus, relative to it; without it, from the side of the field. */
  readonly view?: Vector3;
  /** The height of the ground below a point, so that cameras stay above it; without it, 0. */
  floor?(x: number, z: number): number;
  /** Whether something goes on although the moment is the same, such as the flash of a goal. */
  readonly busy?: boolean;
  /** Moves everything to this moment; `elapsed` seconds of display time passed since the last call. `eye` is the camera. */
  show(moment: Moment, elapsed: number, eye: Vector3): void;
  /** The point of the picture that a position of the kind's own coordinates has. */
  toThree(x: number, y: number, z: number): Vector3;
  /** Draws anew with the colours of the theme. */
  theme(dark: boolean): void;
  dispose(): void;
}
