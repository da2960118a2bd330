// Puffs of demolitions and the flash of a goal. Both follow from the recording alone, so they survive jumps in time.
import { AdditiveBlending, Color, Group, InstancedMesh, Matrix4, MeshBasicMaterial, OctahedronGeometry, PointLight, RingGeometry, Mesh, DoubleSide, Vector3 } from "three";
import type { Moment } from "../recording";
import { place } from "./coordinates";
import { FLAGS } from "./cars";
import type { Palette } from "./palette";

const PUFF_SECONDS = 0.7;
const FLASH_SECONDS = 1.4;
const SPARKS = 16;
/** Whoever wants less motion gets no flashes. */
const CALM = matchMedia("(prefers-reduced-motion: reduce)");
/** Scratch, so that a picture makes no garbage. */
const [matrix, at, way] = [new Matrix4(), new Vector3(), new Vector3()];
const COLOURS = [new Color(0x6b7280), new Color(0xffb13d)];

export class Effects {
  readonly object = new Group();
  /** 0 to 1: how bright the flash of a goal is now, and whose it is. */
  flash = 0;
  team = 0;
  busy = false;
  private readonly sparks: InstancedMesh;
  private readonly wave: Mesh<RingGeometry, MeshBasicMaterial>;
  private after = 0;
  /** Whose puff is drawn; at first all are, so that they are made small. */
  private readonly puffs: boolean[];
  private readonly light = new PointLight(0xffffff, 0, 60, 1.2);

  constructor(private readonly look: Palette, private readonly cars: number) {
    this.sparks = new InstancedMesh(new OctahedronGeometry(0.2), new MeshBasicMaterial({ transparent: true, opacity: 0.9 }), Math.max(cars, 1) * SPARKS);
    this.puffs = Array.from({ length: cars }, () => true);
    this.sparks.frustumCulled = false;
    const glow = { transparent: true, depthWrite: false, blending: AdditiveBlending, side: DoubleSide };
    this.wave = new Mesh(new RingGeometry(0.86, 1, 48), new MeshBasicMaterial(glow));
    this.wave.rotation.x = -Math.PI / 2;
    this.wave.renderOrder = 6;
    this.object.add(this.sparks, this.wave, this.light);
  }

  /** Most games end with a goal, so its flash goes on by the clock of the display, `elapsed` seconds, in their last frame. */
  show(moment: Moment, elapsed: number): void {
    const { recording, time } = moment;
    const still = CALM.matches;
    this.after = moment.frame === moment.next ? this.after + elapsed : 0;
    const frames = Math.ceil(FLASH_SECONDS / recording.interval);
    this.flash = 0;
    for (let frame = moment.frame; frame >= Math.max(0, moment.frame - frames); frame--) {
      const team = recording.number("goal", frame, 0, -1);
      if (team < 0) continue;
      const age = time - recording.time(frame) + this.after;
      this.flash = Math.max(0, 1 - age / FLASH_SECONDS);
      this.team = team;
      this.showWave(recording.read("ball.position", Math.max(frame - 1, 0)), age);
      break;
    }
    this.wave.visible = this.flash > 0 && !still;
    this.light.intensity = still ? 0 : this.flash * 900;
    this.busy = this.wave.visible && this.after > 0;
    for (let car = 0; car < this.cars; car++) this.showPuff(moment, car);
    this.sparks.instanceMatrix.needsUpdate = true;
    if (this.sparks.instanceColor) this.sparks.instanceColor.needsUpdate = true;
  }

  private showWave(ball: number[], age: number): void {
    place(ball[0], ball[1], ball[2], at);
    this.wave.position.copy(at);
    this.wave.scale.setScalar(1 + age * 26);
    this.wave.material.opacity = this.flash * 0.8;
    this.wave.material.color.set(this.look.teams[this.team]);
    this.light.position.copy(at).y += 2;
    this.light.color.set(this.look.teams[this.team]);
  }

  private showPuff(moment: Moment, car: number): void {
    const { recording } = moment;
    const frames = Math.ceil(PUFF_SECONDS / recording.interval) + 1;
    let began = -1;
    if (moment.number("cars.flags", car) & FLAGS.demoed) {
      for (let frame = moment.frame; frame > Math.max(0, moment.frame - frames); frame--) {
        if (!(recording.number("cars.flags", frame - 1, car) & FLAGS.demoed)) {
          began = frame;
          break;
        }
      }
    }
    if (began < 0 && !this.puffs[car]) return;  // It is invisible already.
    this.puffs[car] = began >= 0;
    const age = began < 0 ? 1 : Math.min((moment.time - recording.time(began)) / PUFF_SECONDS, 1);
    if (began >= 0) place(recording.number("cars.position", began - 1, 3 * car), recording.number("cars.position", began - 1, 3 * car + 1), recording.number("cars.position", began - 1, 3 * car + 2), at);
    for (let spark = 0; spark < SPARKS; spark++) {
      const angle = spark * 2.399963;
      const rise = 1 - (2 * (spark + 0.5)) / SPARKS;
      const flat = Math.sqrt(1 - rise * rise);
      way.set(flat * Math.cos(angle), Math.abs(rise) * 0.9, flat * Math.sin(angle)).multiplyScalar(0.3 + 3.2 * Math.sqrt(Math.max(age, 0))).add(at);
      const size = began < 0 ? 0.0001 : (1 - age) * (1.4 + (spark % 3) * 0.7);
      this.sparks.setMatrixAt(car * SPARKS + spark, matrix.makeScale(size, size, size).setPosition(way));
      this.sparks.setColorAt(car * SPARKS + spark, COLOURS[spark % 3 ? 1 : 0]);
    }
  }

  dispose(): void {
    this.sparks.geometry.dispose();
    (this.sparks.material as MeshBasicMaterial).dispose();
    this.wave.geometry.dispose();
    this.wave.material.dispose();
  }
}
