// Cameras: behind a car (ball-cam on or off), director, from above, free. Smooth, but they jump where the time jumps.
import { PerspectiveCamera, Vector3 } from "three";
import type { KindScene } from "./kind";

export type Mode = "car" | "director" | "top" | "free";
const UP = new Vector3(0, 1, 0);

export class Cameras {
  readonly camera = new PerspectiveCamera(60, 1, 0.1, 400);
  mode: Mode = "director";
  car = 0;
  ballCam = true;
  readonly held = new Set<string>();
  private yaw = 0;
  private pitch = -0.35;
  private readonly aim = new Vector3();
  private snap = true;

  choose(mode: Mode, car = this.car): void {
    if (mode === "free") {
      const way = this.camera.getWorldDirection(new Vector3());
      this.yaw = Math.atan2(way.x, way.z);
      this.pitch = Math.asin(Math.max(-1, Math.min(1, way.y)));
    }
    this.mode = mode;
    this.car = car;
    this.snap = true;
  }

  /** The next picture is not reached smoothly. */
  jump(): void {
    this.snap = true;
  }

  drag(dx: number, dy: number): void {
    if (this.mode !== "free") this.choose("free");
    this.yaw -= dx * 0.005;
    this.pitch = Math.max(-1.5, Math.min(1.5, this.pitch - dy * 0.005));
  }

  dolly(amount: number): void {
    if (this.mode !== "free") this.choose("free");
    this.camera.position.addScaledVector(this.camera.getWorldDirection(new Vector3()), amount);
  }

  update(scene: KindScene, elapsed: number): void {
    const body = scene.bodies[this.car] ?? scene.bodies[0];
    const mode = this.mode === "car" && !body ? "director" : this.mode;
    const { chase, height, far, center } = scene.reach;
    const aspect = this.camera.aspect;
    const to = new Vector3();
    const aim = scene.focus.clone();
    let rate = 7;
    let fov = 60;
    this.camera.up.copy(UP);
    if (mode === "free") {
      const way = new Vector3(Math.sin(this.yaw) * Math.cos(this.pitch), Math.sin(this.pitch), Math.cos(this.yaw) * Math.cos(this.pitch));
      const side = way.clone().cross(UP).normalize();
      const key = (plus: string, minus: string): number => Number(this.held.has(plus)) - Number(this.held.has(minus));
      const speed = far * 0.35 * elapsed;
      this.camera.position.addScaledVector(way, key("w", "s") * speed).addScaledVector(side, key("d", "a") * speed).addScaledVector(UP, key("e", "q") * speed);
      this.camera.position.y = Math.max(this.camera.position.y, 0.2);
      to.copy(this.camera.position);
      aim.copy(to).add(way);
      rate = Infinity;
    } else if (mode === "car" && body) {
      const back = this.ballCam ? scene.focus.clone().sub(body.position) : body.forward.clone();
      back.y = 0;
      if (back.lengthSq() < 1e-6) back.copy(body.forward);
      back.normalize();
      to.copy(body.position).addScaledVector(back, -chase).addScaledVector(UP, height);
      aim.copy(this.ballCam ? scene.focus.clone().lerp(body.position, 0.35) : body.position.clone().addScaledVector(back, chase * 2));
      to.y = Math.max(to.y, 0.35);
      rate = 12;
      fov = aspect > 1 ? 65 : 85;
    } else if (mode === "top") {
      const tall = aspect < 1;
      fov = 45;
      const half = Math.tan((fov * Math.PI) / 360);
      const [wide, high] = tall ? [0.56 * far, 0.76 * far] : [0.76 * far, 0.56 * far];
      to.copy(center).y = Math.max(high / half, wide / half / aspect) + 1;
      aim.copy(center);
      this.camera.up.set(tall ? 0 : 1, 0, tall ? 1 : 0);
      rate = Infinity;
    } else {
      if (scene.bodies.length > 1) {
        const near = [...scene.bodies].sort((a, b) => a.position.distanceToSquared(scene.focus) - b.position.distanceToSquared(scene.focus))[0];
        aim.lerp(near.position, 0.3);
      }
      to.set(center.x - far * 0.56, far * 0.25, center.z + (aim.z - center.z) * 0.6);
      rate = 2.2;
      fov = aspect > 1 ? 46 : 70;
    }
    const part = this.snap ? 1 : 1 - Math.exp(-rate * elapsed);
    this.camera.position.lerp(to, part);
    this.aim.lerp(aim, part);
    this.camera.fov = fov;
    this.camera.updateProjectionMatrix();
    this.camera.lookAt(this.aim);
    this.camera.updateMatrixWorld();
    this.snap = false;
  }
}
