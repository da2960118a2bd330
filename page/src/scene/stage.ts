// The renderer: a canvas, lights and a loop that draws the scene of any kind.
import { Color, DirectionalLight, Fog, HemisphereLight, Scene, Vector3, WebGLRenderer } from "three";
import type { Header, Moment } from "../recording";
import { Cameras } from "./cameras";
import type { KindScene } from "./kind";
import { palette } from "./palette";
import { RocketScene } from "./rocket";
import { WalkScene } from "./walk";

export class Stage {
  readonly canvas: HTMLCanvasElement;
  readonly cameras = new Cameras();
  kind: KindScene | null = null;
  private readonly low = new URLSearchParams(location.search).get("quality") === "low";
  private readonly renderer: WebGLRenderer;
  private readonly scene = new Scene();
  private readonly sky = new HemisphereLight(0xffffff, 0x556070, 1.6);
  private readonly sun = new DirectionalLight(0xffffff, 2);

  constructor(private dark: boolean) {
    this.renderer = new WebGLRenderer({ antialias: !this.low, powerPreference: "high-performance" });
    this.renderer.setPixelRatio(this.low ? 1 : Math.min(devicePixelRatio, 2));
    this.renderer.shadowMap.enabled = !this.low;
    this.canvas = this.renderer.domElement;
    this.sun.position.set(14, 60, 8);
    this.sun.castShadow = !this.low;
    this.sun.shadow.mapSize.set(2048, 2048);
    Object.assign(this.sun.shadow.camera, { left: -60, right: 60, top: 60, bottom: -60, far: 120 });
    this.scene.add(this.sky, this.sun);
    this.theme(dark);
  }

  open(header: Header): void {
    if (this.kind) {
      this.scene.remove(this.kind.object);
      this.kind.dispose();
    }
    this.kind = header.kind === "walk" ? new WalkScene(header) : new RocketScene(header, !this.low, this.dark);
    if (header.kind === "walk") this.kind.theme(this.dark);
    this.scene.add(this.kind.object);
    this.cameras.jump();
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
    this.cameras.camera.aspect = width / Math.max(height, 1);
  }

  draw(moment: Moment, elapsed: number): void {
    if (!this.kind) return;
    this.kind.show(moment, elapsed, this.cameras.camera.position);
    if (this.kind instanceof RocketScene) this.kind.cars.hideName = this.cameras.mode === "car" ? this.cameras.car : -1;
    this.cameras.update(this.kind, elapsed);
    this.renderer.render(this.scene, this.cameras.camera);
  }

  /** The pixel of the canvas at which a position of the kind's own coordinates is seen. */
  screen(x: number, y: number, z: number): { x: number; y: number; front: boolean } {
    const point = (this.kind?.toThree(x, y, z) ?? new Vector3()).project(this.cameras.camera);
    const box = this.canvas.getBoundingClientRect();
    return { x: box.left + ((point.x + 1) / 2) * box.width, y: box.top + ((1 - point.y) / 2) * box.height, front: point.z < 1 };
  }
}
