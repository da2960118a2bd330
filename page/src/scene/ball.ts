// The ball: a sphere with dark patches, so that its rotation is seen, with a line and a ring that show its height.
import { BufferGeometry, DoubleSide, Group, IcosahedronGeometry, Matrix4, Mesh, MeshBasicMaterial, MeshLambertMaterial, PlaneGeometry, RingGeometry, Vector3, CylinderGeometry, Color } from "three";
import { pose } from "./coordinates";
import { BALL_RADIUS } from "./field";
import type { Palette } from "./palette";
import { spot } from "./textures";

const RADIUS = BALL_RADIUS / 100;

/** Faces in two groups: 0 is the skin, 1 the patches around the twelve corners of an icosahedron and the seams between. */
function ballGeometry(): BufferGeometry {
  const geometry = new IcosahedronGeometry(RADIUS, 9);
  const corners = uniqueCorners();
  const positions = geometry.getAttribute("position");
  const groups: [number[], number[]] = [[], []];
  const center = new Vector3();
  for (let face = 0; face < positions.count; face += 3) {
    center.set(0, 0, 0);
    for (let corner = 0; corner < 3; corner++) center.add(new Vector3().fromBufferAttribute(positions, face + corner));
    center.normalize();
    const angles = corners.map((corner) => corner.angleTo(center)).sort((a, b) => a - b);
    const patch = angles[0] < 0.33 || (angles[1] - angles[0] < 0.06 && angles[0] < 0.62);
    groups[patch ? 1 : 0].push(face, face + 1, face + 2);
  }
  geometry.setIndex([...groups[0], ...groups[1]]);
  geometry.addGroup(0, groups[0].length, 0);
  geometry.addGroup(groups[0].length, groups[1].length, 1);
  for (let index = 0; index < positions.count; index++) {
    const normal = new Vector3().fromBufferAttribute(positions, index).normalize();
    geometry.getAttribute("normal").setXYZ(index, normal.x, normal.y, normal.z);
  }
  return geometry;
}

function uniqueCorners(): Vector3[] {
  const positions = new IcosahedronGeometry(1, 0).getAttribute("position");
  const corners: Vector3[] = [];
  for (let index = 0; index < positions.count; index++) {
    const corner = new Vector3().fromBufferAttribute(positions, index);
    if (!corners.some((other) => other.distanceTo(corner) < 0.01)) corners.push(corner);
  }
  return corners;
}

export class Ball {
  readonly object = new Group();
  private readonly skin: MeshLambertMaterial;
  private readonly patches: MeshLambertMaterial;
  private readonly mesh: Mesh;
  private readonly shadow: Mesh<PlaneGeometry, MeshBasicMaterial>;
  private readonly ring: Mesh<RingGeometry, MeshBasicMaterial>;
  private readonly line: Mesh<CylinderGeometry, MeshBasicMaterial>;

  constructor(private readonly look: Palette, shadows: boolean) {
    this.skin = new MeshLambertMaterial({ color: look.ball });
    this.patches = new MeshLambertMaterial({ color: look.ballPanel });
    this.mesh = new Mesh(ballGeometry(), [this.skin, this.patches]);
    this.mesh.matrixAutoUpdate = false;
    this.mesh.castShadow = shadows;
    const clear = { transparent: true, depthWrite: false };
    this.shadow = new Mesh(new PlaneGeometry(2.6, 2.6).rotateX(-Math.PI / 2), new MeshBasicMaterial({ ...clear, map: spot(), color: 0x000000, opacity: 0.55 }));
    this.ring = new Mesh(new RingGeometry(0.92, 1.04, 40).rotateX(-Math.PI / 2), new MeshBasicMaterial({ ...clear, color: look.lines, opacity: 0.75, side: DoubleSide }));
    this.line = new Mesh(new CylinderGeometry(0.025, 0.025, 1, 5, 1, true).translate(0, 0.5, 0), new MeshBasicMaterial({ ...clear, color: look.lines, opacity: 0.4 }));
    this.shadow.renderOrder = this.ring.renderOrder = this.line.renderOrder = 2;
    this.object.add(this.mesh, this.shadow, this.ring, this.line);
  }

  /** Moves the ball; `team` touched it last (-1: nobody) and colours its patches. */
  show(position: Vector3, forward: Vector3, right: Vector3, up: Vector3, team: number): void {
    pose(this.mesh.matrix, position, forward, right, up);
    this.mesh.matrixWorldNeedsUpdate = true;
    this.patches.color.set(this.look.ballPanel);
    if (team >= 0) this.patches.color.lerp(new Color(this.look.teams[team]), 0.8);
    const height = Math.max(position.y - RADIUS, 0);
    const near = 1 / (1 + height * 0.16);
    this.shadow.position.set(position.x, 0.03, position.z);
    this.shadow.scale.setScalar(0.75 + 0.25 * near);
    this.shadow.material.opacity = 0.2 + 0.4 * near;
    this.ring.position.set(position.x, 0.04, position.z);
    this.ring.scale.setScalar(1 + Math.min(height, 20) * 0.03);
    this.ring.visible = this.line.visible = height > 0.25;
    this.line.position.set(position.x, 0.02, position.z);
    this.line.scale.y = Math.max(position.y - RADIUS, 0.01);
  }

  /** Where the ball is now, for effects. */
  matrix(): Matrix4 {
    return this.mesh.matrix;
  }

  dispose(): void {
    for (const child of this.object.children as Mesh[]) child.geometry.dispose();
    this.shadow.material.map?.dispose();
    for (const material of [this.skin, this.patches, this.shadow.material, this.ring.material, this.line.material]) material.dispose();
  }
}
