// All cars of a game: bodies, spinning wheels, boost flames, supersonic trails, shadows and names.
import {
  AdditiveBlending, BufferAttribute, BufferGeometry, Color, ConeGeometry, DoubleSide, DynamicDrawUsage, Group, InstancedMesh, Matrix4, Mesh, MeshBasicMaterial,
  MeshLambertMaterial, NormalBlending, PlaneGeometry, Quaternion, Sprite, SpriteMaterial, Vector3,
} from "three";
import { shortName } from "../names";
import type { Header, Moment } from "../recording";
import { carBody, hitbox, REST, wheels, wheelShape, type Wheel } from "./car";
import { basis, place, pose } from "./coordinates";
import { floorHeight } from "./field";
import type { Body } from "./kind";
import type { Palette } from "./palette";
import { nameplate, spot } from "./textures";

export const FLAGS = { ground: 1, boosting: 2, supersonic: 4, demoed: 8, flip: 16, jumping: 32, flipping: 64, touched: 128 };
const TRAIL = 14;
const TRAIL_SECONDS = 0.55;
const REACH = 60;
/** The size of what is not there: a matrix must not be singular. */
const NOTHING = 0.0001;
const [UP, SIDEWAYS] = [new Vector3(0, 1, 0), new Vector3(0, 0, 1)];
/** Scratch, so that a picture makes no garbage. */
const [matrix, turn, roll, at, size] = [new Matrix4(), new Quaternion(), new Quaternion(), new Vector3(), new Vector3()];
const [quaternion, game] = [[0, 0, 0, 1], [0, 0, 0]];

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
  readonly controls: number[] = [0, 0, 0, 0, 0, 0, 0, 0];
  spin = 0;

  constructor(readonly name: string, readonly team: 0 | 1, readonly index: number) {}
}

/** A flame of length 1 backwards, which fades towards its tip. */
function flame(): BufferGeometry {
  const geometry = new ConeGeometry(0.2, 1, 14, 4, true).translate(0, 0.5, 0).rotateZ(Math.PI / 2);
  const positions = geometry.getAttribute("position");
  const colours = Array.from({ length: positions.count }, (_, index) => [1, 1, 1, (1 + positions.getX(index)) ** 1.3]).flat();
  geometry.setAttribute("color", new BufferAttribute(new Float32Array(colours), 4));
  return geometry;
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
      const plate = nameplate(shortName(player.name), look.teams[player.team]);
      const sprite = new Sprite(new SpriteMaterial({ map: plate.texture, transparent: true, depthWrite: false, depthTest: false, sizeAttenuation: false }));
      sprite.userData.aspect = plate.aspect;
      sprite.center.set(0.5, -0.75);  // Above the car on the screen, also where the camera looks down.
      sprite.renderOrder = 10;
      this.names.push(sprite);
    }
    this.wheelMesh = new InstancedMesh(wheelShape(), new MeshLambertMaterial({ vertexColors: true, flatShading: true }), 4 * count);
    this.wheelMesh.castShadow = castShadows;
    const glow = { transparent: true, depthWrite: false, blending: AdditiveBlending };
    this.flames = new InstancedMesh(flame(), new MeshBasicMaterial({ ...glow, side: DoubleSide, vertexColors: true, blending: dark ? AdditiveBlending : NormalBlending }), 2 * count);
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
      this.flames.setColorAt(2 * car, new Color(0xff8420));
      this.flames.setColorAt(2 * car + 1, new Color(0xffe9a8));
    }
    this.trailColours = this.bodies.map((body) => new Color(look.teams[body.team]));
    this.hitboxes = header.players.map((player) => hitbox(player.hitbox));
  }

  private readonly trailColours: Color[];
  private readonly trailing: boolean[] = [];
  private readonly hitboxes: ReturnType<typeof hitbox>[];

  show(moment: Moment): void {
    const step = moment.time - this.lastTime;
    this.lastTime = moment.time;
    for (const body of this.bodies) {
      const car = body.index;
      const still = moment.jumped("cars.position", "cars.velocity", car, REACH);
      moment.point("cars.position", "cars.velocity", car, REACH, body.game);
      basis(moment.turn("cars.rotation", car, quaternion, still), body.forward, body.right, body.up);
      place(body.game[0], body.game[1], body.game[2], body.position);
      for (let axis = 0; axis < 3; axis++) game[axis] = moment.line("cars.velocity", 3 * car + axis);
      place(game[0], game[1], game[2], body.velocity);
      body.flags = moment.number("cars.flags", car);
      body.present = !(body.flags & FLAGS.demoed);
      body.boost = moment.number("cars.boost", car);
      for (let control = 0; control < 8; control++) body.controls[control] = moment.number("cars.controls", 8 * car + control);
      if (Math.abs(step) < 0.5) body.spin -= (body.velocity.dot(body.forward) / 0.145) * step;
      this.drawBody(body);
      this.drawFlames(body, moment.time);
      this.drawShadow(body);
      this.drawName(body);
      this.drawTrail(body, moment);
    }
    for (const mesh of [this.wheelMesh, this.flames, this.shadows]) mesh.instanceMatrix.needsUpdate = true;
    this.trail.geometry.getAttribute("position").needsUpdate = true;
    this.trail.geometry.getAttribute("color").needsUpdate = true;
  }

  private drawBody(body: CarBody): void {
    const mesh = this.meshes[body.index];
    mesh.visible = body.present;
    pose(mesh.matrix, body.position, body.forward, body.right, body.up);
    mesh.matrixWorldNeedsUpdate = true;
    const steer = body.controls[1] * -0.45;
    const wheels = this.wheelPlaces[body.index];
    for (let index = 0; index < wheels.length; index++) {
      const wheel = wheels[index];
      turn.setFromAxisAngle(UP, wheel.steers ? steer : 0).multiply(roll.setFromAxisAngle(SIDEWAYS, body.spin));
      at.set(wheel.x, wheel.y, wheel.z);
      size.set(wheel.radius, wheel.radius, 0.13).multiplyScalar(body.present ? 1 : NOTHING);
      this.wheelMesh.setMatrixAt(4 * body.index + index, matrix.compose(at, turn, size).premultiply(mesh.matrix));
    }
  }

  private drawFlames(body: CarBody, time: number): void {
    const burns = body.present && (body.flags & FLAGS.boosting) !== 0;
    const { size: box, offset } = this.hitboxes[body.index];
    at.set((offset[0] - box[0] / 2) / 100 - 0.02, 0.07, 0);
    const flicker = 0.85 + 0.15 * Math.sin(time * 91 + body.index);
    for (let layer = 0; layer < 2; layer++) {
      const [length, thick] = layer ? [0.8 * flicker, 0.55] : [1.5 * flicker, 1];
      size.set(length, thick, thick).multiplyScalar(burns ? 1 : NOTHING);
      this.flames.setMatrixAt(2 * body.index + layer, matrix.compose(at, turn.identity(), size).premultiply(this.meshes[body.index].matrix));
    }
  }

  private drawShadow(body: CarBody): void {
    const { size: box } = this.hitboxes[body.index];
    const floor = floorHeight(body.game[0], body.game[1]) / 100;
    const height = Math.max(body.position.y - REST - floor, 0);
    const spread = body.present ? 1 + Math.min(height, 12) * 0.06 : NOTHING;
    at.set(body.position.x, floor + 0.025, body.position.z);
    size.set((box[0] / 100) * 1.5 * spread, 1, (box[1] / 100) * 1.7 * spread);
    this.shadows.setMatrixAt(body.index, matrix.compose(at, turn.setFromAxisAngle(UP, Math.atan2(-body.forward.z, body.forward.x)), size));
  }

  private drawName(body: CarBody): void {
    const name = this.names[body.index];
    name.visible = body.present && body.index !== this.hideName;
    name.position.copy(body.position).y += 0.3;
  }

  /** Makes names so high at a distance of one metre. */
  sizeNames(height: number): void {
    for (const name of this.names) name.scale.set(height * (name.userData.aspect as number), height, 1);
  }

  /** The trail is computed from the recording, so it is the same after every jump in time. */
  private drawTrail(body: CarBody, moment: Moment): void {
    const position = this.trail.geometry.getAttribute("position");
    const colour = this.trail.geometry.getAttribute("color") as BufferAttribute;
    const paint = this.trailColours[body.index];
    let alpha = body.present && (body.flags & FLAGS.supersonic) !== 0 ? 0.55 : 0;
    if (alpha === 0 && !this.trailing[body.index]) return;  // It is invisible already.
    this.trailing[body.index] = alpha > 0;
    at.copy(body.position);
    for (let part = 0; part < TRAIL; part++) {
      const first = (body.index * TRAIL + part) * 2;
      if (alpha > 0 && part > 0) {
        const time = moment.time - (part / TRAIL) * TRAIL_SECONDS;
        const earlier = moment.recording.sample(Math.max(time, moment.recording.start));
        const flags = earlier.number("cars.flags", body.index);
        if (time < moment.recording.start || !(flags & FLAGS.supersonic) || earlier.jumped("cars.position", "cars.velocity", body.index, REACH)) alpha = 0;
        else place(...(earlier.point("cars.position", "cars.velocity", body.index, REACH, game) as [number, number, number]), at);
      }
      const fade = alpha * (1 - part / TRAIL);
      for (let side = 0; side < 2; side++) {
        const out = (side - 0.5) * 0.62;
        position.setXYZ(first + side, at.x + body.right.x * out, at.y + body.right.y * out + 0.02, at.z + body.right.z * out);
        colour.setXYZW(first + side, paint.r, paint.g, paint.b, fade);
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
