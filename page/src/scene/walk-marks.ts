// Marks around the robot: where it should go, where it goes, where it came from, and where it samples the ground. In MuJoCo's coordinates.
import { BufferAttribute, BufferGeometry, DoubleSide, DynamicDrawUsage, Group, IcosahedronGeometry, InstancedMesh, Matrix4, Mesh, MeshBasicMaterial } from "three";
import type { Moment } from "../recording";
import { heightAt, type Heights } from "./walk-header";

export const COLOURS = {
  dark: { wanted: 0x5b9dff, real: 0x4cd08c, trail: 0xffb454, dots: 0xff5c5c },
  light: { wanted: 0x1f63e0, real: 0x0d8a4b, trail: 0xc46a00, dots: 0xd22f2f },
};

type Point = [number, number, number];

/** A strip with a head, as two ribbons that cross, so that it is seen from everywhere. */
class Strip {
  readonly mesh: Mesh<BufferGeometry, MeshBasicMaterial>;
  private readonly positions: BufferAttribute;

  constructor(private readonly most: number, opacity: number, fades = false) {
    const geometry = new BufferGeometry();
    this.positions = new BufferAttribute(new Float32Array(most * 12), 3);
    this.positions.setUsage(DynamicDrawUsage);
    geometry.setAttribute("position", this.positions);
    const faces: number[] = [];
    const colours = new Float32Array(most * 16).fill(1);
    for (let index = 0; index < most; index++) {
      for (let corner = 0; corner < 4; corner++) colours[16 * index + 4 * corner + 3] = fades ? index / (most - 1) : 1;
      if (index + 1 < most) for (const side of [0, 2]) faces.push(4 * index + side, 4 * index + side + 1, 4 * index + side + 5, 4 * index + side, 4 * index + side + 5, 4 * index + side + 4);
    }
    geometry.setAttribute("color", new BufferAttribute(colours, 4));
    geometry.setIndex(faces);
    this.mesh = new Mesh(geometry, new MeshBasicMaterial({ transparent: true, opacity, side: DoubleSide, vertexColors: true, depthWrite: false, fog: false }));
    this.mesh.frustumCulled = false;
    this.mesh.renderOrder = 4;
  }

  /** Draws through these points; `width` gives half the width at each. */
  draw(points: Point[], width: (index: number) => number, crossed: boolean): void {
    this.mesh.visible = points.length > 1;
    if (!this.mesh.visible) return;
    for (let index = 0; index < this.most; index++) {
      const here = Math.max(0, points.length - this.most + index);
      const at = points[Math.min(here, points.length - 1)];
      const [from, to] = [points[Math.max(here - 1, 0)], points[Math.min(here + 1, points.length - 1)]];
      const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
      const length = Math.hypot(dx, dy) || 1;
      const half = width(here);
      const [sx, sy] = [(-dy / length) * half, (dx / length) * half];
      const rise = crossed ? half * 0.6 : 0;
      this.positions.setXYZ(4 * index, at[0] + sx, at[1] + sy, at[2]);
      this.positions.setXYZ(4 * index + 1, at[0] - sx, at[1] - sy, at[2]);
      this.positions.setXYZ(4 * index + 2, at[0], at[1], at[2] + rise);
      this.positions.setXYZ(4 * index + 3, at[0], at[1], at[2] - rise);
    }
    this.positions.needsUpdate = true;
  }

  dispose(): void {
    this.mesh.geometry.dispose();
    this.mesh.material.dispose();
  }
}

const ARROW = 20;
const ABOVE = 0.16;
const TRAIL = 90;
const TRAIL_SECONDS = 6;
const STEP = 1 / (ARROW - 4);

/** Half the width of an arrow: a shaft and a head of three points, of which the first is the widest. */
const arrow = (index: number): number => (index < ARROW - 3 ? 0.011 : index === ARROW - 3 ? 0.038 : index === ARROW - 2 ? 0.02 : 0);

export class Marks {
  readonly object = new Group();
  private readonly wanted = new Strip(ARROW, 0.95);
  private readonly real = new Strip(ARROW, 0.95);
  private readonly trail = new Strip(TRAIL, 0.75, true);
  private dots: InstancedMesh<IcosahedronGeometry, MeshBasicMaterial> | null = null;
  private dark = true;

  constructor(private readonly ground: Heights) {
    this.object.add(this.wanted.mesh, this.real.mesh, this.trail.mesh);
  }

  /** `position` and `yaw` of the trunk now. */
  show(moment: Moment, position: number[], yaw: number): void {
    const [x, y, z] = position;
    const [speed, aside, turning] = [0, 1, 2].map((index) => moment.line("command", index));
    const [vx, vy] = [0, 1].map((index) => moment.line("velocity", index));
    this.wanted.draw(this.curve(x, y, z + ABOVE + 0.03, yaw, speed, aside, turning), arrow, true);
    this.real.draw(this.curve(x, y, z + ABOVE, 0, vx, vy, 0), arrow, true);
    this.showTrail(moment, x, y);
    this.showDots(moment);
  }

  /** Where a robot comes to in a second, with this velocity forward and to the left, and this rate of turning. */
  private curve(x: number, y: number, z: number, yaw: number, forward: number, left: number, turning: number): Point[] {
    const points: Point[] = [];
    const small = Math.hypot(forward, left) < 0.03;
    for (let index = 0; index < ARROW && !small; index++) {
      points.push([x, y, z]);
      if (index === ARROW - 4) continue;  // The head begins where the shaft ends.
      const part = index > ARROW - 4 ? Math.min(STEP, 0.03 / Math.hypot(forward, left)) : STEP;
      x += (forward * Math.cos(yaw) - left * Math.sin(yaw)) * part;
      y += (forward * Math.sin(yaw) + left * Math.cos(yaw)) * part;
      yaw += turning * part;
    }
    return points;
  }

  private showTrail(moment: Moment, x: number, y: number): void {
    const { recording, frame } = moment;
    const every = Math.max(1, Math.ceil(TRAIL_SECONDS / recording.interval / TRAIL));
    const points: Point[] = [];
    let from = Math.max(0, frame - every * (TRAIL - 2));
    from += (every - (from % every)) % every;  // The same frames are taken at all times, so that the trail does not tremble.
    for (let index = from; index <= frame; index += every) {
      const [px, py] = [recording.number("position", index, 0), recording.number("position", index, 1)];
      points.push([px, py, heightAt(this.ground, px, py) + 0.012]);
    }
    points.push([x, y, heightAt(this.ground, x, y) + 0.012]);
    this.trail.draw(points, () => 0.012, false);
  }

  private showDots(moment: Moment): void {
    const count = moment.recording.shape("scandots")?.[0] ?? 0;
    if (!count) return;
    if (!this.dots) {
      this.dots = new InstancedMesh(new IcosahedronGeometry(0.013, 1), new MeshBasicMaterial(), count);
      this.dots.frustumCulled = false;
      this.object.add(this.dots);
      this.theme(this.dark);
    }
    const matrix = new Matrix4();
    const point = [0, 0, 0];
    for (let index = 0; index < count; index++) {
      moment.point("scandots", null, index, 0.5, point);
      this.dots.setMatrixAt(index, matrix.makeTranslation(point[0], point[1], point[2]));
    }
    this.dots.instanceMatrix.needsUpdate = true;
  }

  theme(dark: boolean): void {
    this.dark = dark;
    const look = dark ? COLOURS.dark : COLOURS.light;
    this.wanted.mesh.material.color.set(look.wanted);
    this.real.mesh.material.color.set(look.real);
    this.trail.mesh.material.color.set(look.trail);
    this.dots?.material.color.set(look.dots);
  }

  dispose(): void {
    for (const strip of [this.wanted, this.real, this.trail]) strip.dispose();
    this.dots?.geometry.dispose();
    this.dots?.material.dispose();
    this.dots?.dispose();
  }
}
