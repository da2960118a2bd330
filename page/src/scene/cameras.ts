// Cameras: behind a car (ball-cam on or off), director, from above, free. Smooth, but they jump where the time jumps.
import { PerspectiveCamera, Vector3 } from "three";
import type { Body, KindScene } from "./kind";

export type Mode = "car" | "director" | "top" | "free";
/** Where a free camera is and where it looks: position in metres, yaw and pitch in radians. */
export type Flight = [number, number, number, number, number];
const UP = new Vector3(0, 1, 0);
const SETTLED = 1e-4;

/** Scratch vectors, so that a picture makes no garbage. */
const [to, aim, way, side] = [new Vector3(), new Vector3(), new Vector3(), new Vector3()];

/** The two bodies nearest to what the game is about. */
function nearest(scene: KindScene): [Body | null, Body | null] {
  let [first, second]: [Body | null, Body | null] = [null, null];
  const far = (body: Body | null): number => (body ? body.position.distanceToSquared(scene.focus) : Infinity);
  for (const body of scene.bodies) {
    if (far(body) < far(first)) [first, second] = [body, first];
    else if (far(body) < far(second)) second = body;
  }
  return [first, second];
}

export class Cameras {
  readonly camera = new PerspectiveCamera(60, 1, 0.1, 400);
  mode: Mode = "director";
  car = 0;
  ballCam = true;
  /** Keys of the free camera that are held: w, a, s, d, q, e. */
  readonly held = new Set<string>();
  private yaw = 0;
  private pitch = -0.35;
  private zoom = 1;
  private readonly aim = new Vector3();
  private snap = true;

  choose(mode: Mode, car = this.car): void {
    if (mode === "free" && this.mode !== "free") {
      this.camera.getWorldDirection(way);
      this.yaw = Math.atan2(way.x, way.z);
      this.pitch = Math.asin(Math.max(-1, Math.min(1, way.y)));
    }
    if (mode !== this.mode) this.zoom = 1;
    this.mode = mode;
    this.car = car;
    this.snap = true;
  }

  /** The next picture is not reached smoothly. */
  jump(): void {
    this.snap = true;
  }

  /** The picture follows the pointer, as if it were taken hold of. */
  drag(dx: number, dy: number): void {
    this.choose("free");
    const angle = (this.camera.fov * Math.PI) / 180 / 400;
    this.yaw += dx * angle;
    this.pitch = Math.max(-1.5, Math.min(1.5, this.pitch + dy * angle));
  }

  /** Moves nearer (below 1) or further away by a factor; a free camera flies. */
  dolly(factor: number, reach: number): void {
    if (this.mode === "free") {
      this.camera.getWorldDirection(way);
      this.camera.position.addScaledVector(way, -Math.log(factor) * reach * 0.25);
      return;
    }
    this.zoom = Math.max(0.35, Math.min(3, this.zoom * factor));
  }

  get flight(): Flight {
    const { x, y, z } = this.camera.position;
    return [x, y, z, this.yaw, this.pitch];
  }

  fly(flight: Flight): void {
    this.choose("free");
    this.camera.position.set(flight[0], flight[1], flight[2]);
    this.yaw = flight[3];
    this.pitch = Math.max(-1.5, Math.min(1.5, flight[4]));
  }

  /** Moves the camera by so many seconds. Returns whether it still moves by itself. */
  update(scene: KindScene, elapsed: number): boolean {
    const body = scene.bodies[this.car] ?? scene.bodies[0];
    const mode = this.mode === "car" && !body ? "director" : this.mode;
    this.camera.up.copy(UP);
    let rate = Infinity;
    if (mode === "free") this.updateFree(scene, elapsed);
    else if (mode === "car") rate = this.updateBehind(scene, body);
    else if (mode === "top") this.updateTop(scene);
    else rate = this.updateDirector(scene, elapsed);
    const part = this.snap || rate === Infinity ? 1 : 1 - Math.exp(-rate * elapsed);
    this.camera.position.lerp(to, part);
    this.aim.lerp(aim, part);
    this.snap = false;
    this.camera.updateProjectionMatrix();
    this.camera.lookAt(this.aim);
    this.camera.updateMatrixWorld();
    const far = this.camera.position.distanceToSquared(to) + this.aim.distanceToSquared(aim);
    return far > SETTLED * scene.reach.chase || (mode === "free" && this.held.size > 0);
  }

  private updateFree(scene: KindScene, elapsed: number): void {
    way.set(Math.sin(this.yaw) * Math.cos(this.pitch), Math.sin(this.pitch), Math.cos(this.yaw) * Math.cos(this.pitch));
    side.crossVectors(way, UP).normalize();
    const speed = scene.reach.far * (this.held.has("shift") ? 0.8 : 0.3) * elapsed;
    to.copy(this.camera.position).addScaledVector(way, this.key("w", "s") * speed).addScaledVector(side, this.key("d", "a") * speed).addScaledVector(UP, this.key("e", "q") * speed);
    to.y = Math.max(to.y, (scene.floor?.(to.x, to.z) ?? 0) + 0.2);
    aim.copy(to).add(way);
    this.camera.fov = this.camera.aspect > 1 ? 60 : 75;
  }

  private key(plus: string, minus: string): number {
    return Number(this.held.has(plus)) - Number(this.held.has(minus));
  }

  private updateBehind(scene: KindScene, body: Body): number {
    const { chase, height } = scene.reach;
    if (this.ballCam) way.subVectors(scene.focus, body.position);
    else way.copy(body.forward);
    way.y = 0;
    if (way.lengthSq() < 1e-6) way.copy(body.forward);
    way.normalize();
    to.copy(body.position).addScaledVector(way, -chase * this.zoom).addScaledVector(UP, height * this.zoom);
    to.y = Math.max(to.y, (scene.floor?.(to.x, to.z) ?? 0) + 0.35);
    this.camera.fov = this.camera.aspect > 1 ? 65 : 85;
    if (this.ballCam) {
      aim.copy(scene.focus).lerp(body.position, 0.35);
      // Below a high ball the camera looks up only as far as the car stays in the picture.
      const highest = elevation(body.position) + 0.4 * this.camera.fov * (Math.PI / 180);
      if (elevation(aim) > highest) aim.copy(to).addScaledVector(way, chase).addScaledVector(UP, chase * Math.tan(Math.min(highest, 1.4)));
    } else {
      aim.copy(body.position).addScaledVector(way, chase * 2);
    }
    return 12;
  }

  private updateTop(scene: KindScene): void {
    const { far, center } = scene.reach;
    const tall = this.camera.aspect < 1;
    this.camera.fov = 45;
    const half = Math.tan((this.camera.fov * Math.PI) / 360);
    const [wide, high] = tall ? [0.56 * far, 0.76 * far] : [0.76 * far, 0.56 * far];
    to.copy(center).y = center.y + (Math.max(high / half, wide / half / this.camera.aspect) + 1) * this.zoom;
    aim.copy(center);
    this.camera.up.set(tall ? 0 : 1, 0, tall ? 1 : 0);
  }

  private updateDirector(scene: KindScene, elapsed: number): number {
    const { far, center } = scene.reach;
    aim.copy(scene.focus);
    if (scene.view) {
      to.copy(scene.focus).addScaledVector(scene.view, this.zoom);
      to.y = Math.max(to.y, (scene.floor?.(to.x, to.z) ?? 0) + 0.35);
      this.camera.fov = this.camera.aspect > 1 ? 46 : 70;
      return 4;
    }
    const [first, second] = nearest(scene);
    if (first && scene.bodies.length > 1) aim.lerp(first.position, 0.3);
    if (second) aim.lerp(second.position, 0.15);
    to.set(center.x - far * 0.72 * this.zoom, far * 0.3 * this.zoom, center.z + (aim.z - center.z) * 0.55);
    // The lens is as long as it can be with the ball and the two nearest cars in the picture.
    const wide = this.camera.aspect > 1;
    let angle = this.angleTo(scene.focus);
    if (first) angle = Math.max(angle, this.angleTo(first.position));
    if (second) angle = Math.max(angle, 0.8 * this.angleTo(second.position));
    const needed = (angle * 180 * 2.5) / Math.PI / (wide ? Math.min(this.camera.aspect, 1.8) * 0.75 : 0.8);
    const fov = Math.min(Math.max(needed, wide ? 27 : 44), wide ? 50 : 80);
    this.camera.fov += (fov - this.camera.fov) * (this.snap ? 1 : 1 - Math.exp(-1.5 * elapsed));
    return 2.2;
  }

  /** Radians between where the director aims and a point, seen from where it goes. */
  private angleTo(point: Vector3): number {
    return way.subVectors(aim, to).angleTo(side.subVectors(point, to));
  }
}

/** Radians above the horizon of a point, seen from where the camera goes. */
function elevation(point: Vector3): number {
  return Math.atan2(point.y - to.y, Math.hypot(point.x - to.x, point.z - to.z));
}
