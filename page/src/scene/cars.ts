// All cars of a game: bodies, spinning wheels, boost flames, supersonic trails, shadows and names.
import {
  AdditiveBlending, BufferAttribute, BufferGeometry, Color, ConeGeometry, DoubleSide, DynamicDrawUsage, Group, InstancedMesh, Matrix4, Mesh, MeshBasicMaterial,
  MeshLambertMaterial, PlaneGeometry, Quaternion, Sprite, SpriteMaterial, Vector3,
} from "three";
import type { Header, Moment } from "../recording";
import { carBody, hitbox, REST, wheels, wheelShape, type Wheel } from "./car";
import { basis, place, pose } from "./coordinates";
import type { Body } from "./kind";
import type { Palette } from "./palette";
import { nameplate, spot } from "./textures";

export const FLAGS = { ground: 1, boosting: 2, supersonic: 4, demoed: 8, flip: 16, jumping: 32, flipping: 64, touched: 128 };
const TRAIL = 14;
const TRAIL_SECONDS = 0.55;
const REACH = 60;

/** A car as cameras and the HUD see it. */
export class CarBody implements Body {
  readonly position = new Vector3();
  readonly velocity = new Vector3();
  readonly forward = new Vector3(1, 0, 0);
  readonly right = new Vector3(0, 0, 1);
  readonly up = new Vector3(0, 1, 0);
  readonly game: number[] = [0, 0, 0];
  present = true;
  boost = 0;
  flags = 0;
  controls: number[] = [];
  spin = 0;

  constructor(readonly name: string, readonly team: 0 | 1, readonly index: number) {}
}

export class Cars {
  readonly object = new Group();
  readonly bodies: CarBody[];
  /** The car whose name is hidden because the camera is behind it. */
  hideName = -1;
  private readonly meshes: Mesh[] = [];
  private readonly names: Sprite[] = [];
  private readonly wheelPlaces: Wheel[][];
  private readonly wheelMesh: InstancedMesh;
  private readonly flames: InstancedMesh;
  private readonly shadows: InstancedMesh;
  private readonly trail: Mesh<BufferGeometry, MeshBasicMaterial>;
  private lastTime = 0;

  constructor(header: Header, look: Palette, castShadows: boolean, dark: boolean) {
    const count = header.players.length;
    this.bodies = header.players.map((player, index) => new CarBody(player.name, player.team, index));
    this.wheelPlaces = header.players.map((player) => wheels(player.hitbox));
    for (const player of header.players) {
      const mesh = new Mesh(carBody(player.hitbox), new MeshLambertMaterial({ color: look.teams[player.team], vertexColors: true, flatShading: true, emissive: look.teams[player.team], emissiveIntensity: 0.12 }));
      mesh.matrixAutoUpdate = false;
      mesh.castShadow = castShadows;
      this.meshes.push(mesh);
      const plate = nameplate(player.name, look.teams[player.team]);
      const sprite = new Sprite(new SpriteMaterial({ map: plate.texture, transparent: true, depthWrite: false, depthTest: false, sizeAttenuation: false }));
      sprite.userData.aspect = plate.aspect;
      sprite.renderOrder = 10;
      this.names.push(sprite);
    }
    this.wheelMesh = new InstancedMesh(wheelShape(), new MeshLambertMaterial({ vertexColors: true, flatShading: true }), 4 * count);
    this.wheelMesh.castShadow = castShadows;
    const glow = { transparent: true, depthWrite: false, blending: AdditiveBlending };
    this.flames = new InstancedMesh(new ConeGeometry(0.2, 1, 9, 1, true).translate(0, 0.5, 0).rotateZ(Math.PI / 2), new MeshBasicMaterial({ ...glow, side: DoubleSide, opacity: dark ? 0.85 : 1, blending: dark ? AdditiveBlending : 1 }), 2 * count);
    this.shadows = new InstancedMesh(new PlaneGeometry(1, 1).rotateX(-Math.PI / 2), new MeshBasicMaterial({ map: spot(), color: 0, transparent: true, depthWrite: false, opacity: castShadows ? 0.35 : 0.6 }), count);
    const geometry = new BufferGeometry();
    const vertices = count * TRAIL * 2;
    geometry.setAttribute("position", new BufferAttribute(new Float32Array(vertices * 3), 3).setUsage(DynamicDrawUsage));
    geometry.setAttribute("color", new BufferAttribute(new Float32Array(vertices * 4), 4).setUsage(DynamicDrawUsage));
    const indices: number[] = [];
    for (let car = 0; car < count; car++) {
      for (let part = 0; part + 1 < TRAIL; part++) {
        const at = (car * TRAIL + part) * 2;
        indices.push(at, at + 1, at + 2, at + 1, at + 3, at + 2);
      }
    }
    geometry.setIndex(indices);
    this.trail = new Mesh(geometry, new MeshBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false, side: DoubleSide }));
    this.shadows.renderOrder = 2;
    this.trail.renderOrder = 4;
    this.flames.renderOrder = 5;
    for (const mesh of [this.wheelMesh, this.flames, this.shadows, this.trail]) mesh.frustumCulled = false;
    this.object.add(...this.meshes, this.wheelMesh, this.flames, this.shadows, this.trail, ...this.names);
    for (let car = 0; car < count; car++) {
      this.flames.setColorAt(2 * car, new Color(look.teams[this.bodies[car].team]).lerp(new Color(0xff7a1a), 0.35));
      this.flames.setColorAt(2 * car + 1, new Color(0xfff0c0));
    }
    this.trailColours = this.bodies.map((body) => new Color(look.teams[body.team]));
    this.hitboxes = header.players.map((player) => hitbox(player.hitbox));
  }

  private readonly trailColours: Color[];
  private readonly hitboxes: ReturnType<typeof hitbox>[];

  show(moment: Moment): void {
    const step = moment.time - this.lastTime;
    this.lastTime = moment.time;
    const q = [0, 0, 0, 1];
    const velocity = [0, 0, 0];
    for (const body of this.bodies) {
      const car = body.index;
      moment.point("cars.position", "cars.velocity", car, REACH, body.game);
      const still = moment.jumped("cars.position", "cars.velocity", car, REACH);
      basis(moment.turn("cars.rotation", car, q, still), body.forward, body.right, body.up);
      place(body.game[0], body.game[1], body.game[2], body.position);
      for (let axis = 0; axis < 3; axis++) velocity[axis] = moment.line("cars.velocity", 3 * car + axis);
      place(velocity[0], velocity[1], velocity[2], body.velocity);
      body.flags = moment.number("cars.flags", car);
      body.present = !(body.flags & FLAGS.demoed);
      body.boost = moment.number("cars.boost", car);
      body.controls = Array.from({ length: 8 }, (_, control) => moment.number("cars.controls", 8 * car + control));
      if (Math.abs(step) < 0.5) body.spin -= (body.velocity.dot(body.forward) / 0.145) * step;
      this.draw(body, moment);
    }
    for (const mesh of [this.wheelMesh, this.flames, this.shadows]) mesh.instanceMatrix.needsUpdate = true;
    this.trail.geometry.getAttribute("position").needsUpdate = true;
    this.trail.geometry.getAttribute("color").needsUpdate = true;
  }

  private draw(body: CarBody, moment: Moment): void {
    const car = body.index;
    const mesh = this.meshes[car];
    mesh.visible = body.present;
    pose(mesh.matrix, body.position, body.forward, body.right, body.up);
    mesh.matrixWorldNeedsUpdate = true;
    const size = body.present ? 1 : 0;
    const local = new Matrix4();
    const turn = new Quaternion();
    const steer = (body.controls[1] ?? 0) * -0.45;
    this.wheelPlaces[car].forEach((wheel, index) => {
      turn.setFromAxisAngle(new Vector3(0, 1, 0), wheel.steers ? steer : 0).multiply(new Quaternion().setFromAxisAngle(new Vector3(0, 0, 1), body.spin));
      local.compose(new Vector3(wheel.x, wheel.y, wheel.z), turn, new Vector3(wheel.radius, wheel.radius, 0.13).multiplyScalar(size || 0.0001));
      this.wheelMesh.setMatrixAt(4 * car + index, local.premultiply(mesh.matrix));
    });
    const boosting = body.present && (body.flags & FLAGS.boosting) !== 0;
    const { size: box, offset } = this.hitboxes[car];
    const back = (offset[0] - box[0] / 2) / 100 - 0.02;
    const flicker = 0.85 + 0.15 * Math.sin(moment.time * 91 + car);
    [1.5 * flicker, 0.8 * flicker].forEach((length, layer) => {
      const thick = layer ? 0.55 : 1;
      local.compose(new Vector3(back, 0.07, 0), turn.identity(), new Vector3(length, thick, thick).multiplyScalar(boosting ? 1 : 0.0001));
      this.flames.setMatrixAt(2 * car + layer, local.premultiply(mesh.matrix));
    });
    const height = Math.max(body.position.y - REST, 0);
    const yaw = Math.atan2(-body.forward.z, body.forward.x);
    const spread = body.present ? 1 + Math.min(height, 12) * 0.06 : 0.0001;
    local.compose(new Vector3(body.position.x, 0.025, body.position.z), turn.setFromAxisAngle(new Vector3(0, 1, 0), yaw), new Vector3((box[0] / 100) * 1.5 * spread, 1, (box[1] / 100) * 1.7 * spread));
    this.shadows.setMatrixAt(car, local);
    const name = this.names[car];
    name.visible = body.present && car !== this.hideName;
    name.position.copy(body.position).y += 1.25;
    const scale = 0.034;
    name.scale.set(scale * (name.userData.aspect as number), scale, 1);
    this.drawTrail(body, moment);
  }

  /** The trail is computed from the recording, so it is the same after every jump in time. */
  private drawTrail(body: CarBody, moment: Moment): void {
    const position = this.trail.geometry.getAttribute("position");
    const colour = this.trail.geometry.getAttribute("color") as BufferAttribute;
    const paint = this.trailColours[body.index];
    const game = [0, 0, 0];
    let alpha = body.present && (body.flags & FLAGS.supersonic) !== 0 ? 0.55 : 0;
    for (let part = 0; part < TRAIL; part++) {
      const at = (body.index * TRAIL + part) * 2;
      if (alpha > 0 && part > 0) {
        const time = moment.time - (part / TRAIL) * TRAIL_SECONDS;
        const earlier = moment.recording.sample(Math.max(time, 0));
        const flags = earlier.number("cars.flags", body.index);
        if (time < 0 || !(flags & FLAGS.supersonic) || earlier.jumped("cars.position", "cars.velocity", body.index, REACH)) alpha = 0;
        else earlier.point("cars.position", "cars.velocity", body.index, REACH, game);
      }
      const center = part === 0 ? body.position.clone() : place(game[0], game[1], game[2]);
      const fade = alpha * (1 - part / TRAIL);
      for (const side of [0, 1]) {
        const point = center.clone().addScaledVector(body.right, (side - 0.5) * 0.62);
        position.setXYZ(at + side, point.x, point.y + 0.02, point.z);
        colour.setXYZW(at + side, paint.r, paint.g, paint.b, fade);
      }
    }
  }

  dispose(): void {
    for (const child of this.object.children) {
      const mesh = child as Mesh;
      if (!(child instanceof Sprite)) mesh.geometry.dispose();
      const material = mesh.material as MeshBasicMaterial;
      material.map?.dispose();
      material.dispose();
    }
  }
}
