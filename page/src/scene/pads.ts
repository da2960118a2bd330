// The 34 boost pads: a plate each, with a glow that is there while the pad is; big ones carry an orb.
import { AdditiveBlending, CylinderGeometry, DoubleSide, Float32BufferAttribute, Group, IcosahedronGeometry, InstancedMesh, Matrix4, MeshBasicMaterial, MeshLambertMaterial, NormalBlending, Quaternion, Vector3 } from "three";
import { place } from "./coordinates";
import { PADS } from "./field";
import type { Palette } from "./palette";

const UP = new Vector3(0, 1, 0);
/** Scratch, so that a picture makes no garbage. */
const [matrix, turn, at, scale] = [new Matrix4(), new Quaternion(), new Vector3(), new Vector3()];

/** A hexagonal tube of light that fades upwards. */
function beam(): CylinderGeometry {
  const geometry = new CylinderGeometry(0.5, 0.62, 1, 6, 1, true).translate(0, 0.5, 0);
  const positions = geometry.getAttribute("position");
  const colours = Array.from({ length: positions.count }, (_, index) => [1, 1, 1, 1 - positions.getY(index)]).flat();
  geometry.setAttribute("color", new Float32BufferAttribute(colours, 4));
  return geometry;
}

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
    const halo = { color: look.pad, transparent: true, depthWrite: false, opacity: dark ? 0.4 : 0.5, blending: dark ? AdditiveBlending : NormalBlending, vertexColors: true, side: DoubleSide };
    this.halos = new InstancedMesh(beam(), new MeshBasicMaterial(halo), PADS.length);
    this.orbs = new InstancedMesh(new IcosahedronGeometry(0.52, 1), new MeshLambertMaterial({ color: look.pad, emissive: look.pad, emissiveIntensity: 0.55, flatShading: true }), 6);
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
    let big = 0;
    for (let index = 0; index < PADS.length; index++) {
      const pad = PADS[index];
      const there = bits.length ? (bits[index >> 3] >> (index & 7)) & 1 : 1;
      const size = there ? (pad.big ? 1.75 : 0.8) : 0;
      place(pad.x, pad.y, 0, at);
      this.glows.setMatrixAt(index, matrix.makeScale(size, 1, size).setPosition(at));
      this.halos.setMatrixAt(index, matrix.makeScale(size, there ? (pad.big ? 2.4 : 0.8) : 0, size).setPosition(at));
      if (pad.big) {
        at.y = 1.1 + 0.12 * Math.sin(time * 2 + index);
        matrix.compose(at, turn.setFromAxisAngle(UP, time * 1.4 + index), scale.setScalar(there ? 1 : 0.0001));
        this.orbs.setMatrixAt(big++, matrix);
      }
    }
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
