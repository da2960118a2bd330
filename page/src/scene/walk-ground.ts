// The ground of a walk: a slab whose colours say how high and how steep it is, with lines every half metre and every 10 cm of height,
// and with soft shadows of the robot. It is drawn in MuJoCo's coordinates; the group of the scene turns them.
import { BufferAttribute, BufferGeometry, Color, Mesh, MeshLambertMaterial, Vector4 } from "three";
import type { Heights } from "./walk-header";

/** How many spheres cast a shadow. */
export const CASTERS = 12;
const BASE = 0.35;
const PLANE = 30;

interface GroundLook { low: number; middle: number; high: number; steep: number; line: number; lines: number }
const DARK: GroundLook = { low: 0x16507a, middle: 0x3f4f69, high: 0xb08a52, steep: 0x1a2233, line: 0xdfe9ff, lines: 0.2 };
const LIGHT: GroundLook = { low: 0x4d93b8, middle: 0xa9b79f, high: 0xd9a05b, steep: 0x6d7480, line: 0x16233a, lines: 0.26 };

const HEAD = `
uniform vec3 low; uniform vec3 middle; uniform vec3 high; uniform vec3 steep; uniform vec3 lineColour;
uniform float lines; uniform float reach; uniform float plane;
uniform vec4 casters[${CASTERS}];
varying vec3 at;
`;

// Shadows are the share of the sky that spheres hide from a point: exact for one sphere, and soft by themselves.
const COLOUR = `
vec3 side = normalize(cross(dFdx(at), dFdy(at)));  // It points to the camera.
float up = abs(side.z);
float share = clamp(1.4 * at.z / (abs(at.z) + 0.4 * reach), -1.0, 1.0);
vec3 ground = share < 0.0 ? mix(middle, low, -share) : mix(middle, high, share);
ground = mix(steep, ground, smoothstep(0.15, 0.95, up));
vec2 far = fwidth(at.xy);
vec2 half_ = abs(fract(at.xy * 2.0 - 0.5) - 0.5) / max(far * 2.0, 1e-6);
vec2 whole = abs(fract(at.xy - 0.5) - 0.5) / max(far, 1e-6);
float fade = 1.0 - smoothstep(0.05, 0.35, max(far.x, far.y));
float grid = 0.55 * (1.0 - min(min(half_.x, half_.y), 1.0)) + (1.0 - min(min(whole.x, whole.y), 1.0));
float rise = fwidth(at.z);
float contour = rise > 1e-5 ? 1.0 - min(abs(fract(at.z * 10.0 - 0.5) - 0.5) / (rise * 10.0), 1.0) : 0.0;
contour *= 1.0 - smoothstep(0.02, 0.08, rise);
ground = mix(ground, lineColour, lines * fade * min(grid * up + contour, 1.0));
float open_ = 1.0;
for (int i = 0; i < ${CASTERS}; i++) {
  vec3 to = casters[i].xyz - at;
  float r = casters[i].w;
  float d = max(length(to), r);
  open_ *= 1.0 - min(0.9 * r * r / (d * d) * clamp(to.z / d, 0.0, 1.0), 0.8);
}
float hill = dot(side, vec3(-0.45, 0.35, 0.82));
diffuseColor.rgb = ground * open_ * (0.62 + 0.42 * hill);
if (plane > 0.0) diffuseColor.a = 1.0 - smoothstep(plane * 0.35, plane, length(at.xy));
`;

/** Corners of the surface, and walls around it down to below its lowest point. */
function slab(ground: Heights): BufferGeometry {
  const { rows, columns, resolution, origin, values } = ground;
  const base = values.reduce((low, value) => Math.min(low, value), 0) - BASE;
  const count = rows * columns;
  const ring: number[] = [];
  for (let column = 0; column < columns; column++) ring.push(column);
  for (let row = 1; row < rows; row++) ring.push(row * columns + columns - 1);
  for (let column = columns - 2; column >= 0; column--) ring.push((rows - 1) * columns + column);
  for (let row = rows - 2; row > 0; row--) ring.push(row * columns);
  const positions = new Float32Array(3 * (count + ring.length));
  for (let index = 0; index < count; index++) {
    positions.set([origin[0] + (index % columns) * resolution, origin[1] + Math.floor(index / columns) * resolution, values[index]], 3 * index);
  }
  ring.forEach((corner, index) => positions.set([positions[3 * corner], positions[3 * corner + 1], base], 3 * (count + index)));
  const faces = new Uint32Array(6 * ((rows - 1) * (columns - 1) + ring.length));
  let face = 0;
  for (let row = 0; row + 1 < rows; row++) {
    for (let column = 0; column + 1 < columns; column++) {
      const a = row * columns + column;
      const c = a + columns + 1;
      faces.set([a, a + 1, c, a, c, a + columns], face);
      face += 6;
    }
  }
  ring.forEach((corner, index) => {
    const next = (index + 1) % ring.length;
    faces.set([corner, count + index, count + next, corner, count + next, ring[next]], face);
    face += 6;
  });
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(positions, 3));
  geometry.setIndex(new BufferAttribute(faces, 1));
  return geometry;
}

/** Level ground everywhere is a plane, on which robots may walk anywhere: it fades out. */
function plane(): BufferGeometry {
  const geometry = new BufferGeometry();
  const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].flatMap(([x, y]) => [x * PLANE, y * PLANE, 0]);
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(corners), 3));
  geometry.setIndex([0, 1, 2, 0, 2, 3]);
  return geometry;
}

export class Ground {
  readonly object: Mesh<BufferGeometry, MeshLambertMaterial>;
  /** Spheres that cast shadows: x, y, z and radius. */
  readonly casters = Array.from({ length: CASTERS }, () => new Vector4(0, 0, -1000, 0.001));
  private readonly colours = Object.fromEntries(["low", "middle", "high", "steep", "lineColour"].map((name) => [name, { value: new Color() }]));
  private readonly lines = { value: 0.2 };

  constructor(heights: Heights) {
    const reach = Math.max(0.25, ...[heights.values.reduce((a, b) => Math.max(a, Math.abs(b)), 0)]);
    const material = new MeshLambertMaterial({ flatShading: true, transparent: heights.flat });
    const uniforms = { ...this.colours, lines: this.lines, reach: { value: reach }, plane: { value: heights.flat ? PLANE : 0 }, casters: { value: this.casters } };
    material.onBeforeCompile = (shader) => {
      Object.assign(shader.uniforms, uniforms);
      shader.vertexShader = `varying vec3 at;\n${shader.vertexShader}`.replace("#include <begin_vertex>", "#include <begin_vertex>\nat = position;");
      shader.fragmentShader = HEAD + shader.fragmentShader.replace("#include <color_fragment>", COLOUR);
    };
    this.object = new Mesh(heights.flat ? plane() : slab(heights), material);
    this.object.receiveShadow = this.object.castShadow = true;
  }

  theme(dark: boolean): void {
    const look = dark ? DARK : LIGHT;
    for (const name of ["low", "middle", "high", "steep"] as const) this.colours[name].value.set(look[name]);
    this.colours.lineColour.value.set(look.line);
    this.lines.value = look.lines;
  }

  dispose(): void {
    this.object.geometry.dispose();
    this.object.material.dispose();
  }
}
