// Puffs of demolitions and the flash of a goal. Both follow from the recording alone, so they survive jumps in time.
import { AdditiveBlending, Color, Group, InstancedMesh, Matrix4, MeshBasicMaterial, OctahedronGeometry, PointLight, RingGeometry, Mesh, DoubleSide, Vector3 } from "three";
import type { Moment } from "../recording";
import { place } from "./coordinates";
import { FLAGS } from "./cars";
import type { Palette } from "./palette";

const PUFF_SECONDS = 0.7;
const FLASH_SECONDS = 1.4;
const SPARKS = 16;

export class Effects {
  readonly object = new Group();
  /** 0 to 1: how bright the flash of a goal is now, and whose it is. */
  flash = 0;
  team = 0;
  private readonly sparks: InstancedMesh;
  private readonly wave: Mesh<RingGeometry, MeshBasicMaterial>;
  private readonly light = new PointLight(0xffffff, 0, 60, 1.2);

  constructor(private readonly look: Palette, private readonly cars: number) {
    this.sparks = new InstancedMesh(new OctahedronGeometry(0.2), new MeshBasicMaterial({ transparent: true, opacity: 0.9 }), Math.max(cars, 1) * SPARKS);
    this.sparks.frustumCulled = false;
    const glow = { transparent: true, depthWrite: false, blending: AdditiveBlending, side: DoubleSide };
    this.wave = new Mesh(new RingGeometry(0.86, 1, 48), new MeshBasicMaterial(glow));
    this.wave.rotation.x = -Math.PI / 2;
    this.wave.renderOrder = 6;
    this.object.add(this.sparks, this.wave, this.light);
  }

  show(moment: Moment): void {
    const { recording, time } = moment;
    const frames = Math.ceil(FLASH_SECONDS / recording.interval);
    this.flash = 0;
    for (let frame = moment.frame; frame >= Math.max(0, moment.frame - frames); frame--) {
      const team = recording.number("goal", frame, 0, -1);
      if (team < 0) continue;
      const age = time - recording.time(frame);
      this.flash = Math.max(0, 1 - age / FLASH_SECONDS);
      this.team = team;
      this.showWave(recording.read("ball.position", Math.max(frame - 1, 0)), age);
      break;
    }
    this.wave.visible = this.flash > 0;
    this.light.intensity = this.flash * 900;
    for (let car = 0; car < this.cars; car++) this.showPuff(moment, car);
    this.sparks.instanceMatrix.needsUpdate = true;
    if (this.sparks.instanceColor) this.sparks.instanceColor.needsUpdate = true;
  }

  private showWave(ball: number[], age: number): void {
    const at = place(ball[0], ball[1], ball[2]);
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
    const age = began < 0 ? 1 : Math.min((moment.time - recording.time(began)) / PUFF_SECONDS, 1);
    const start = began < 0 ? [0, 0, -100] : recording.read("cars.position", began - 1).slice(3 * car, 3 * car + 3);
    const center = place(start[0], start[1], start[2]);
    const matrix = new Matrix4();
    for (let spark = 0; spark < SPARKS; spark++) {
      const angle = spark * 2.399963;
      const rise = 1 - (2 * (spark + 0.5)) / SPARKS;
      const flat = Math.sqrt(1 - rise * rise);
      const way = new Vector3(flat * Math.cos(angle), Math.abs(rise) * 0.9, flat * Math.sin(angle)).multiplyScalar(0.3 + 3.2 * Math.sqrt(Math.max(age, 0)));
      const size = began < 0 ? 0.0001 : (1 - age) * (1.4 + (spark % 3) * 0.7);
      this.sparks.setMatrixAt(car * SPARKS + spark, matrix.makeScale(size, size, size).setPosition(center.clone().add(way)));
      this.sparks.setColorAt(car * SPARKS + spark, new Color(spark % 3 ? 0xffb13d : 0x6b7280));
    }
  }

  dispose(): void {
    this.sparks.geometry.dispose();
    (this.sparks.material as MeshBasicMaterial).dispose();
    this.wave.geometry.dispose();
    this.wave.material.dispose();
  }
}
