// What is dragged when bodies are placed by hand: a ring around the chosen body, and a knob for its direction.
import { CylinderGeometry, DoubleSide, Group, Mesh, MeshBasicMaterial, RingGeometry, SphereGeometry, Vector3 } from "three";

/** Metres from a body to the knob of one that does not move. */
export const KNOB = 1.9;

export class Handles {
  readonly object = new Group();
  /** Where the knob is. */
  readonly knob = new Vector3();
  private readonly ring: Mesh;
  private readonly shaft: Mesh;
  private readonly ball: Mesh;
  private readonly pole: Mesh;

  constructor() {
    const look = new MeshBasicMaterial({ color: 0x35d07f, transparent: true, opacity: 0.9, depthTest: false, side: DoubleSide, fog: false });
    this.ring = new Mesh(new RingGeometry(1.25, 1.4, 48).rotateX(-Math.PI / 2), look);
    this.shaft = new Mesh(new CylinderGeometry(0.06, 0.06, 1, 8).translate(0, 0.5, 0).rotateX(Math.PI / 2), look);
    this.ball = new Mesh(new SphereGeometry(0.3, 16, 12), look);
    this.pole = new Mesh(new CylinderGeometry(0.02, 0.02, 1, 6).translate(0, -0.5, 0), look);
    for (const mesh of [this.ring, this.shaft, this.ball, this.pole]) mesh.renderOrder = 20;
    this.object.add(this.ring, this.shaft, this.ball, this.pole);
    this.object.visible = false;
  }

  /** Shows the handles of a body at `position` whose knob is at `position` + `arrow`, so many times as large. */
  show(position: Vector3, arrow: Vector3, size: number): void {
    this.object.visible = true;
    this.ring.position.copy(position);
    this.ring.scale.setScalar(size);
    this.ball.scale.setScalar(size);
    this.shaft.scale.set(size, size, 1);
    this.pole.position.copy(position);
    this.pole.scale.y = Math.max(position.y, 0.01);
    this.knob.copy(position).add(arrow);
    this.ball.position.copy(this.knob);
    this.shaft.position.copy(position);
    this.shaft.scale.z = Math.max(arrow.length(), 0.01);
    this.shaft.lookAt(this.knob);
  }

  hide(): void {
    this.object.visible = false;
  }
}
