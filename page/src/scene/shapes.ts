// Collects triangles with colours into one geometry, so that a whole thing is one draw call.
import { BufferGeometry, Color, Float32BufferAttribute } from "three";

export type Point = [number, number, number];
type Shade = { r: number; g: number; b: number; a: number };

/** A colour for `Builder`; white takes the colour of the material, such as the team's. */
export function shade(hex: number, alpha = 1): Shade {
  const colour = new Color(hex);
  return { r: colour.r, g: colour.g, b: colour.b, a: alpha };
}

/** Triangles with flat normals, colours with alpha, and coordinates of a texture. */
export class Builder {
  private readonly positions: number[] = [];
  private readonly colours: number[] = [];
  private readonly uvs: number[] = [];

  vertex(point: Point, colour: Shade, u = 0, v = 0): void {
    this.positions.push(...point);
    this.colours.push(colour.r, colour.g, colour.b, colour.a);
    this.uvs.push(u, v);
  }

  triangle(a: Point, b: Point, c: Point, colour: Shade): void {
    for (const point of [a, b, c]) this.vertex(point, colour);
  }

  /** A quadrilateral, counter-clockwise seen from its front. */
  quad(a: Point, b: Point, c: Point, d: Point, colour: Shade): void {
    this.triangle(a, b, c, colour);
    this.triangle(a, c, d, colour);
  }

  /** A box given by two corners. */
  box(low: Point, high: Point, colour: Shade): void {
    const [x, y, z] = low;
    const [X, Y, Z] = high;
    this.quad([x, y, Z], [X, y, Z], [X, Y, Z], [x, Y, Z], colour);
    this.quad([X, y, z], [x, y, z], [x, Y, z], [X, Y, z], colour);
    this.quad([X, y, Z], [X, y, z], [X, Y, z], [X, Y, Z], colour);
    this.quad([x, y, z], [x, y, Z], [x, Y, Z], [x, Y, z], colour);
    this.quad([x, Y, Z], [X, Y, Z], [X, Y, z], [x, Y, z], colour);
    this.quad([x, y, z], [X, y, z], [X, y, Z], [x, y, Z], colour);
  }

  /** A hull along x through sections, each an octagon-like ring of (y, z); the ends are closed. Sections run from back to front. */
  loft(sections: { x: number; ring: [number, number][] }[], colours: (section: number, side: number) => Shade): void {
    const sides = sections[0].ring.length;
    const at = (section: number, side: number): Point => {
      const one = sections[section];
      const [y, z] = one.ring[(side + sides) % sides];
      return [one.x, y, z];
    };
    for (let section = 0; section + 1 < sections.length; section++) {
      for (let side = 0; side < sides; side++) {
        this.quad(at(section, side), at(section, side + 1), at(section + 1, side + 1), at(section + 1, side), colours(section, side));
      }
    }
    for (let side = 1; side + 1 < sides; side++) {
      const last = sections.length - 1;
      this.triangle(at(0, 0), at(0, side + 1), at(0, side), colours(0, -1));
      this.triangle(at(last, 0), at(last, side), at(last, side + 1), colours(last, -1));
    }
  }

  build(): BufferGeometry {
    const geometry = new BufferGeometry();
    geometry.setAttribute("position", new Float32BufferAttribute(this.positions, 3));
    geometry.setAttribute("color", new Float32BufferAttribute(this.colours, 4));
    geometry.setAttribute("uv", new Float32BufferAttribute(this.uvs, 2));
    geometry.computeVertexNormals();
    return geometry;
  }
}
