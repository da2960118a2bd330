// The 34 boost pads: a plate each, with a glow that is there while the pad is; big ones carry an orb.
import { AdditiveBlending, CylinderGeometry, Group, IcosahedronGeometry, InstancedMesh, Matrix4, MeshBasicMaterial, MeshLambertMaterial, NormalBlending, Quaternion, Vector3 } from "three";
import { place } from "./coordinates";
import { PADS } from "./field";
import type { Palette } from "./palette";

export class Pads {
  readonly object = new Group();
  private readonly plates: InstancedMesh;
  private readonly glows: InstancedMesh;
  private readonly halos: InstancedMesh;
  private readonly orbs: InstancedMesh;
  private shown = -1;
  private turned = 0;

  constructor(look: Palette, dark: boolean) {
    const six = (radius: number, height: number, top = radius): CylinderGeometry => new CylinderGeometry(top, radius, height, 6).translate(0, height / 2, 0);
    this.plates = new InstancedMesh(six(1, 0.06, 0.9), new MeshLambertMaterial({ color: look.padOff }), PADS.length);
    this.glows = new InstancedMesh(six(0.66, 0.1, 0.58), new MeshBasicMaterial({ color: look.pad }), PADS.length);
    const halo = { color: look.pad, transparent: true, depthWrite: false, opacity: dark ? 0.16 : 0.3, blending: dark ? AdditiveBlending : NormalBlending };
    this.halos = new InstancedMesh(new CylinderGeometry(0.62, 0.62, 1, 6, 1, true).translate(0, 0.5, 0), new MeshBasicMaterial(halo), PADS.length);
    this.orbs = new InstancedMesh(new IcosahedronGeometry(0.52, 1), new MeshLambertMaterial({ color: look.pad, emissive: look.pad, emissiveIntensity: 0.55, flatShading: true }), 6);
    const matrix = new Matrix4();
    PADS.forEach((pad, index) => {
      const size = pad.big ? 1.75 : 0.8;
      this.plates.setMatrixAt(index, matrix.makeScale(size, 1, size).setPosition(place(pad.x, pad.y, 0)));
    });
    for (const mesh of [this.plates, this.glows, this.halos, this.orbs]) mesh.frustumCulled = false;
    this.halos.renderOrder = 4;
    this.object.add(this.plates, this.glows, this.halos, this.orbs);
  }

  /** `bits` are the five bytes of the field `pads`; orbs turn by the time of the recording. */
  show(bits: number[], time: number): void {
    const key = bits.reduce((sum, byte) => sum * 251 + byte, 7) % 2 ** 40;
    if (key === this.shown && Math.abs(time - this.turned) < 0.015) return;
    this.shown = key;
    this.turned = time;
    const matrix = new Matrix4();
    const turn = new Quaternion();
    const axis = new Vector3(0, 1, 0);
    let big = 0;
    PADS.forEach((pad, index) => {
      const there = bits.length ? (bits[index >> 3] >> (index & 7)) & 1 : 1;
      const size = there ? (pad.big ? 1.75 : 0.8) : 0;
      const at = place(pad.x, pad.y, 0);
      this.glows.setMatrixAt(index, matrix.makeScale(size, 1, size).setPosition(at));
      this.halos.setMatrixAt(index, matrix.makeScale(size, there ? (pad.big ? 1.9 : 0.55) : 0, size).setPosition(at));
      if (pad.big) {
        at.y = 1.1 + 0.12 * Math.sin(time * 2 + index);
        matrix.compose(at, turn.setFromAxisAngle(axis, time * 1.4 + index), new Vector3(1, 1, 1).multiplyScalar(there ? 1 : 0.0001));
        this.orbs.setMatrixAt(big++, matrix);
      }
    });
    for (const mesh of [this.glows, this.halos, this.orbs]) mesh.instanceMatrix.needsUpdate = true;
  }

  dispose(): void {
    for (const mesh of [this.plates, this.glows, this.halos, this.orbs]) {
      mesh.geometry.dispose();
      (mesh.material as MeshBasicMaterial).dispose();
      mesh.dispose();
    }
  }
}
