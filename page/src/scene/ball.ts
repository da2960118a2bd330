// The ball: a sphere with patches, so that its rotation is seen, with a line and a ring that show its height.
import { Color, CylinderGeometry, DoubleSide, Group, IcosahedronGeometry, Mesh, MeshBasicMaterial, MeshLambertMaterial, PlaneGeometry, RingGeometry, SphereGeometry, Vector3 } from "three";
import { METRES, pose } from "./coordinates";
import { BALL_RADIUS, floorHeight } from "./field";
import type { Palette } from "./palette";
import { ballSkin, spot } from "./textures";

const RADIUS = BALL_RADIUS * METRES;
/** Radians from a corner of the icosahedron: where its patch ends, and how wide the seams between patches are. */
const [PATCH, SEAM, SOFT] = [0.34, 0.016, 0.02];

/** Twelve corners of an icosahedron, around which the patches are. */
function corners(): Vector3[] {
  const positions = new IcosahedronGeometry(1, 0).getAttribute("position");
  const found: Vector3[] = [];
  for (let index = 0; index < positions.count; index++) {
    const corner = new Vector3().fromBufferAttribute(positions, index);
    if (!found.some((other) => other.distanceTo(corner) < 0.01)) found.push(corner);
  }
  return found;
}

/** How much of a patch or seam a direction is, from 0 to 1, with soft edges. */
function pattern(): (x: number, y: number, z: number) => number {
  const around = corners();
  const inside = (distance: number): number => Math.min(Math.max(0.5 - distance / SOFT, 0), 1);
  return (x, y, z) => {
    let [first, second] = [-1, -1];
    for (const corner of around) {
      const cosine = corner.x * x + corner.y * y + corner.z * z;
      if (cosine > first) [first, second] = [cosine, first];
      else if (cosine > second) second = cosine;
    }
    const [near, next] = [Math.acos(Math.min(first, 1)), Math.acos(Math.min(second, 1))];
    return Math.max(inside(near - PATCH), inside((next - near) / 2 - SEAM));
  };
}

const bytes = (hex: number): [number, number, number] => [hex >> 16, (hex >> 8) & 255, hex & 255];

export class Ball {
  readonly object = new Group();
  private readonly mesh: Mesh<SphereGeometry, MeshLambertMaterial>;
  private readonly shadow: Mesh<PlaneGeometry, MeshBasicMaterial>;
  private readonly ring: Mesh<RingGeometry, MeshBasicMaterial>;
  private readonly line: Mesh<CylinderGeometry, MeshBasicMaterial>;
  private readonly colours: Color[];
  private readonly nobody = new Color(0);

  constructor(look: Palette, shadows: boolean) {
    const patch = pattern();
    const map = ballSkin(patch, bytes(look.ball), bytes(look.ballPanel));
    const emissiveMap = ballSkin(patch, [0, 0, 0], [255, 255, 255]);
    this.mesh = new Mesh(new SphereGeometry(RADIUS, 36, 24), new MeshLambertMaterial({ map, emissiveMap, emissive: 0, color: new Color(1.3, 1.3, 1.3) }));
    this.mesh.matrixAutoUpdate = false;
    this.mesh.castShadow = shadows;
    this.colours = look.teams.map((team) => new Color(team).multiplyScalar(0.85));
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
    this.mesh.material.emissive.copy(this.colours[team] ?? this.nobody);
    const floor = floorHeight(position.x / METRES, position.z / METRES) * METRES;
    const height = Math.max(position.y - RADIUS - floor, 0);
    const near = 1 / (1 + height * 0.16);
    this.shadow.position.set(position.x, floor + 0.03, position.z);
    this.shadow.scale.setScalar(0.75 + 0.25 * near);
    this.shadow.material.opacity = 0.2 + 0.4 * near;
    this.ring.position.set(position.x, floor + 0.04, position.z);
    this.ring.scale.setScalar(1 + Math.min(height, 20) * 0.03);
    this.ring.visible = this.line.visible = height > 0.25;
    this.line.position.set(position.x, floor + 0.02, position.z);
    this.line.scale.y = Math.max(height, 0.01);
  }

  dispose(): void {
    for (const child of this.object.children as Mesh[]) child.geometry.dispose();
    const { material } = this.mesh;
    for (const texture of [material.map, material.emissiveMap, this.shadow.material.map]) texture?.dispose();
    for (const one of [material, this.shadow.material, this.ring.material, this.line.material]) one.dispose();
  }
}
