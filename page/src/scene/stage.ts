// The renderer: a canvas, lights and the scene of any kind in it.
import { Color, DirectionalLight, Fog, HemisphereLight, Raycaster, Scene, Vector2, Vector3, WebGLRenderer, type Object3D, type Ray } from "three";
import type { Header, Moment } from "../recording";
import { Cameras } from "./cameras";
import type { KindScene } from "./kind";
import { palette } from "./palette";
import { RocketScene } from "./rocket";
import { WalkScene } from "./walk";

/** From where the sun shines, in parts of the reach of a scene. */
const SUN = new Vector3(0.175, 0.75, 0.1);

/** Height of the names of cars. */
const NAME_PIXELS = 21;

export class Stage {
  readonly canvas: HTMLCanvasElement;
  readonly cameras = new Cameras();
  kind: KindScene | null = null;
  private readonly quality = new URLSearchParams(location.search).get("quality");
  private readonly low = this.quality === "low";
  private readonly renderer: WebGLRenderer;
  private readonly scene = new Scene();
  private readonly sky = new HemisphereLight(0xffffff, 0x556070, 1.6);
  private readonly sun = new DirectionalLight(0xffffff, 2);
  private readonly rays = new Raycaster();
  /** What the scene was made for. */
  private shows = "";
  private height = 1;
  private simplified = 0;

  /** Throws where the browser has no WebGL. */
  constructor(private dark: boolean) {
    this.renderer = new WebGLRenderer({ antialias: !this.low, powerPreference: "high-performance" });
    this.renderer.setPixelRatio(this.low ? 1 : Math.min(devicePixelRatio, 2));
    this.renderer.shadowMap.enabled = !this.low;
    this.canvas = this.renderer.domElement;
    this.sun.castShadow = !this.low;
    this.sun.shadow.mapSize.set(2048, 2048);
    this.scene.add(this.sky, this.sun, this.sun.target);
    this.theme(dark);
  }

  /** Makes the scene of a recording. The next game of the same players is shown in the same scene. */
  open(header: Header): void {
    const shows = JSON.stringify([header.kind, header.players, header.kind === "walk" ? header.scene : null]);
    this.cameras.jump();
    if (shows === this.shows) return;
    this.shows = shows;
    if (this.kind) {
      this.scene.remove(this.kind.object);
      this.kind.dispose();
    }
    this.kind = header.kind === "walk" ? new WalkScene(header) : new RocketScene(header, !this.low, this.dark);
    if (header.kind === "walk") this.kind.theme(this.dark);
    this.scene.add(this.kind.object);
    const half = 0.75 * this.kind.reach.far;
    Object.assign(this.sun.shadow.camera, { left: -half, right: half, top: half, bottom: -half, near: half / 120, far: 2 * half });
    this.sun.shadow.camera.updateProjectionMatrix();
  }

  /** Puts something else into the picture, such as handles to drag. */
  add(object: Object3D): void {
    this.scene.add(object);
  }

  theme(dark: boolean): void {
    this.dark = dark;
    const look = palette(dark);
    this.scene.background = new Color(look.sky);
    this.scene.fog = new Fog(look.haze, 90, 260);
    this.sky.intensity = look.ambient;
    this.sun.intensity = look.sun;
    this.kind?.theme(dark);
  }

  resize(width: number, height: number): void {
    this.renderer.setSize(width, height, false);
    this.height = Math.max(height, 1);
    this.cameras.camera.aspect = width / this.height;
  }

  /** Draws less finely from now on, because this machine is too slow. The address can ask for one quality, which then stays. */
  simplify(): void {
    if (this.quality || this.simplified > 1) return;
    this.simplified += 1;
    this.renderer.setPixelRatio(this.simplified > 1 ? 0.75 : 1);
    this.sun.castShadow = false;
  }

  /** Draws a moment, `elapsed` seconds after the last one. Returns whether something still moves by itself. */
  draw(moment: Moment, elapsed: number): boolean {
    if (!this.kind) return false;
    const cars = this.kind instanceof RocketScene ? this.kind.cars : null;
    if (cars) cars.hideName = this.cameras.mode === "car" ? this.cameras.car : -1;
    this.kind.show(moment, elapsed, this.cameras.camera.position);
    const { far, center } = this.kind.reach;
    this.sun.position.copy(SUN).multiplyScalar(far).add(center);
    this.sun.target.position.copy(center);
    const moves = this.cameras.update(this.kind, elapsed);
    cars?.sizeNames((2 * NAME_PIXELS * Math.tan((this.cameras.camera.fov * Math.PI) / 360)) / this.height);
    this.renderer.render(this.scene, this.cameras.camera);
    return moves || this.kind.busy === true;
  }

  /** The pixel of the page at which a position of the kind's own coordinates is seen. */
  screen(x: number, y: number, z: number): { x: number; y: number; front: boolean } {
    const point = (this.kind?.toThree(x, y, z) ?? new Vector3()).project(this.cameras.camera);
    const box = this.canvas.getBoundingClientRect();
    return { x: box.left + ((point.x + 1) / 2) * box.width, y: box.top + ((1 - point.y) / 2) * box.height, front: point.z < 1 };
  }

  /** The ray from the camera through a pixel of the page. */
  ray(x: number, y: number): Ray {
    const box = this.canvas.getBoundingClientRect();
    const at = new Vector2(((x - box.left) / box.width) * 2 - 1, 1 - ((y - box.top) / box.height) * 2);
    this.rays.setFromCamera(at, this.cameras.camera);
    return this.rays.ray;
  }
}
