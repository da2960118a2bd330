// The field: floor with ramps, lines, translucent walls, goals and stands, all computed from the measures in field.ts.
import { Color, FrontSide, Group, Mesh, MeshBasicMaterial, MeshLambertMaterial, type Texture, Vector3 } from "three";
import { place } from "./coordinates";
import { BACK, CEILING, GOAL_DEPTH, GOAL_HALF_WIDTH, GOAL_HEIGHT, isMouth, outline, RAMP } from "./field";
import { linesOfField } from "./lines";
import { type Palette } from "./palette";
import { Builder, shade, type Point } from "./shapes";
import { crowd, net, panels, turf } from "./textures";

type Game = [number, number, number];
const MIDDLE = new Vector3(0, 8, 0);

function three(point: Game): Point {
  const at = place(...point);
  return [at.x, at.y, at.z];
}

/** Adds a quadrilateral whose front is towards the middle of the field, whatever the order of its corners. */
function inward(builder: Builder, corners: Game[], colours: ReturnType<typeof shade>[], uv: [number, number][]): void {
  const points = corners.map(three);
  const [a, b, c] = points.map((point) => new Vector3(...point));
  const normal = b.clone().sub(a).cross(c.clone().sub(a));
  const order = normal.dot(MIDDLE.clone().sub(a)) >= 0 ? [0, 1, 2, 0, 2, 3] : [0, 2, 1, 0, 3, 2];
  for (const index of order) builder.vertex(points[index], colours[index], ...uv[index]);
}

function blend(a: number, b: number, part: number, alpha = 1): ReturnType<typeof shade> {
  return shade(new Color(a).lerp(new Color(b), part).getHex(), alpha);
}

/** White in the middle, towards the colour of the team at its end: the tint of everything. */
function tint(look: Palette, y: number, strength: number, alpha = 1): ReturnType<typeof shade> {
  return blend(0xffffff, look.teams[y < 0 ? 0 : 1], strength * Math.min(Math.abs(y) / BACK, 1) ** 1.5, alpha);
}

function floor(look: Palette): Builder {
  const builder = new Builder();
  const ring = outline(RAMP);
  const uv = (x: number, y: number): [number, number] => [x / 1280, y / 1280];
  ring.forEach((a, index) => {
    const b = ring[(index + 1) % ring.length];
    const corners: Game[] = [[0, 0, 0], [a[0], a[1], 0], [b[0], b[1], 0], [b[0], b[1], 0]];
    inward(builder, corners, corners.map((corner) => tint(look, corner[1], 0.5)), corners.map((corner) => uv(corner[0], corner[1])));
    if (isMouth(a, b)) {
      const end = Math.sign(a[1]) * (BACK + GOAL_DEPTH);
      const mouth: Game[] = [[a[0], a[1], 0], [b[0], b[1], 0], [b[0], end, 0], [a[0], end, 0]];
      const deep = blend(0xffffff, look.teams[end < 0 ? 0 : 1], 0.85);
      inward(builder, mouth, [tint(look, a[1], 0.5), tint(look, b[1], 0.5), deep, deep], mouth.map((corner) => uv(corner[0], corner[1])));
      return;
    }
    const steps = 6;
    for (let step = 0; step < steps; step++) {
      const [lower, upper] = [step, step + 1].map((one) => {
        const angle = (one / steps) * (Math.PI / 2);
        return { points: outline(RAMP * (1 - Math.sin(angle))), z: RAMP * (1 - Math.cos(angle)), shade: 0.12 * (one / steps) };
      });
      const next = (index + 1) % ring.length;
      const quad: Game[] = [
        [...lower.points[index], lower.z], [...lower.points[next], lower.z], [...upper.points[next], upper.z], [...upper.points[index], upper.z],
      ];
      const colours = quad.map((corner) => {
        const base = tint(look, corner[1], 0.55);
        const light = 1 + (corner[2] / RAMP) * 0.5;
        return { r: base.r * light, g: base.g * light, b: base.b * light, a: 1 };
      });
      inward(builder, quad, colours, quad.map((corner) => uv(corner[0], corner[1])));
    }
  });
  return builder;
}

/** Rings of the shell above the ramps: distance from the wall, height, and how opaque. */
function shell(): { inset: number; z: number; alpha: number }[] {
  const rings = [{ inset: 0, z: RAMP, alpha: 0.34 }, { inset: 0, z: GOAL_HEIGHT, alpha: 0.22 }, { inset: 0, z: CEILING - RAMP, alpha: 0.09 }];
  for (let step = 1; step <= 4; step++) {
    const angle = (step / 4) * (Math.PI / 2);
    rings.push({ inset: RAMP * (1 - Math.cos(angle)), z: CEILING - RAMP + RAMP * Math.sin(angle), alpha: 0.09 - 0.015 * step });
  }
  return rings;
}

function walls(look: Palette): Builder {
  const builder = new Builder();
  const rings = shell().map((ring) => ({ ...ring, points: outline(ring.inset) }));
  const base = rings[0].points;
  let along = 0;
  base.forEach((a, index) => {
    const next = (index + 1) % base.length;
    const b = base[next];
    const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
    for (let ring = 0; ring + 1 < rings.length; ring++) {
      if (ring === 0 && isMouth(a, b)) continue;
      const [low, high] = [rings[ring], rings[ring + 1]];
      const corners: Game[] = [[...low.points[index], low.z], [...low.points[next], low.z], [...high.points[next], high.z], [...high.points[index], high.z]];
      const colours = corners.map((corner, at) => {
        const colour = tint(look, corner[1], 0.9);
        const own = blend(look.wall, 0xffffff, 0.1);
        return { r: colour.r * own.r, g: colour.g * own.g, b: colour.b * own.b, a: at < 2 ? low.alpha : high.alpha };
      });
      const u = [along, along + length, along + length, along].map((at) => at / 512);
      inward(builder, corners, colours, corners.map((corner, at) => [u[at], corner[2] / 886]));
    }
    along += length;
  });
  return builder;
}

function goals(look: Palette): { frames: Builder; nets: Builder } {
  const frames = new Builder();
  const nets = new Builder();
  for (const team of [0, 1]) {
    const sign = team ? 1 : -1;
    const colour = shade(look.teams[team]);
    const [w, height, front, back] = [GOAL_HALF_WIDTH, GOAL_HEIGHT, sign * BACK, sign * (BACK + GOAL_DEPTH)];
    const bar = (a: Game, b: Game): void => {
      const [p, q] = [three(a), three(b)];
      frames.box(p.map((value, axis) => Math.min(value, q[axis]) - 0.2) as Point, p.map((value, axis) => Math.max(value, q[axis]) + 0.2) as Point, colour);
    };
    bar([-w, front, 0], [-w, front, height]);
    bar([w, front, 0], [w, front, height]);
    bar([-w, front, height], [w, front, height]);
    const faces: [Game[], [number, number]][] = [
      [[[-w, back, 0], [w, back, 0], [w, back, height], [-w, back, height]], [2 * w, height]],
      [[[-w, front, 0], [-w, back, 0], [-w, back, height], [-w, front, height]], [GOAL_DEPTH, height]],
      [[[w, front, 0], [w, back, 0], [w, back, height], [w, front, height]], [GOAL_DEPTH, height]],
      [[[-w, front, height], [w, front, height], [w, back, height], [-w, back, height]], [2 * w, GOAL_DEPTH]],
    ];
    for (const [corners, [width, rise]] of faces) {
      inward(nets, corners, corners.map(() => shade(look.teams[team], 0.75)),
        [[0, 0], [width / 110, 0], [width / 110, rise / 110], [0, rise / 110]]);
    }
  }
  return { frames, nets };
}

/** Seats around the field, and the way between them and the walls. The texture has the people, colours say for whom they are. */
function stands(look: Palette): { seats: Builder; apron: Builder } {
  const [seats, apron] = [new Builder(), new Builder()];
  const tiers = 3;
  for (let tier = 0; tier <= tiers; tier++) {
    const [near, far] = tier ? [outline(-900 - (tier - 1) * 1050), outline(-900 - tier * 1050 + 130)] : [outline(0), outline(-900)];
    const [low, high] = tier ? [180 + (tier - 1) * 640, 180 + tier * 640 - 120] : [0, 180];
    let along = 0;
    near.forEach((a, index) => {
      const next = (index + 1) % near.length;
      const b = near[next];
      const corners: Game[] = [[...a, low], [...b, low], [...far[next], high], [...far[index], high]];
      const length = Math.hypot(b[0] - a[0], b[1] - a[1]);
      if (tier) {
        const colours = corners.map((corner) => {
          const fans = blend(look.stands, look.teams[corner[1] < 0 ? 0 : 1], 0.75 * Math.min(1, Math.abs(corner[1]) / 2200));
          const fade = 1.15 - 0.12 * tier;
          return { r: fans.r * fade, g: fans.g * fade, b: fans.b * fade, a: 1 };
        });
        const u = [along, along + length, along + length, along].map((at) => at / 1500);
        inward(seats, corners, colours, [[u[0], 0], [u[1], 0], [u[2], 0.75], [u[3], 0.75]]);
      } else if (!isMouth(a, b)) {
        inward(apron, corners, corners.map((_, at) => shade(look.apron, at < 2 ? 1 : 0.9)), [[0, 0], [0, 0], [0, 0], [0, 0]]);
      }
      along += length;
    });
  }
  return { seats, apron };
}

/** Everything that does not move. */
export class Arena {
  readonly object = new Group();
  private readonly textures: Texture[] = [];

  constructor(look: Palette, dark: boolean, shadows: boolean) {
    const grass = turf(look.floor, dark ? 0.025 : 0.05);
    const [hexagons, mesh, people] = [panels(), net(), crowd(dark ? 70 : 150)];
    this.textures.push(grass, hexagons, mesh, people);
    const ground = new Mesh(floor(look).build(), new MeshLambertMaterial({ map: grass, vertexColors: true }));
    ground.receiveShadow = shadows;
    const { frames, nets } = goals(look);
    const clear = { vertexColors: true, transparent: true, depthWrite: false, side: FrontSide };
    const wall = new Mesh(walls(look).build(), new MeshBasicMaterial({ ...clear, map: hexagons }));
    const netting = new Mesh(nets.build(), new MeshBasicMaterial({ ...clear, map: mesh }));
    const marks = new Mesh(linesOfField(look).build(), new MeshBasicMaterial({ ...clear, polygonOffset: true, polygonOffsetFactor: -2, polygonOffsetUnits: -2 }));
    const frame = new Mesh(frames.build(), new MeshBasicMaterial({ vertexColors: true }));
    const around = stands(look);
    const seats = new Mesh(around.seats.build(), new MeshBasicMaterial({ vertexColors: true, map: people }));
    const apron = new Mesh(around.apron.build(), new MeshBasicMaterial({ vertexColors: true }));
    marks.renderOrder = 1;
    netting.renderOrder = 2;
    wall.renderOrder = 3;
    this.object.add(ground, apron, seats, marks, frame, netting, wall);
  }

  dispose(): void {
    for (const child of this.object.children as Mesh[]) {
      child.geometry.dispose();
      (child.material as MeshBasicMaterial).dispose();
    }
    this.textures.forEach((one) => one.dispose());
  }
}
