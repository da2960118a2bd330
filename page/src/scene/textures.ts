// Small pictures that are drawn here once: turf, wall panels, nets, soft spots, names.
import { CanvasTexture, RepeatWrapping, SRGBColorSpace, type Texture } from "three";

function canvas(width: number, height: number, draw: (pen: CanvasRenderingContext2D) => void): HTMLCanvasElement {
  const element = document.createElement("canvas");
  element.width = width;
  element.height = height;
  draw(element.getContext("2d")!);
  return element;
}

function texture(picture: HTMLCanvasElement, repeats = true): Texture {
  const result = new CanvasTexture(picture);
  result.colorSpace = SRGBColorSpace;
  result.anisotropy = 8;
  if (repeats) result.wrapS = result.wrapT = RepeatWrapping;
  return result;
}

const css = (hex: number): string => `#${hex.toString(16).padStart(6, "0")}`;

/** Mown stripes; one tile is two stripes. */
export function turf(colours: [number, number], grain: number): Texture {
  return texture(canvas(256, 256, (pen) => {
    pen.fillStyle = css(colours[0]);
    pen.fillRect(0, 0, 256, 256);
    pen.fillStyle = css(colours[1]);
    pen.fillRect(0, 128, 256, 128);
    let seed = 7;
    for (let index = 0; index < 2600; index++) {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      const x = seed % 256;
      const y = (seed >> 9) % 256;
      pen.fillStyle = seed % 3 ? `rgb(255 255 255 / ${grain})` : `rgb(0 0 0 / ${grain * 1.6})`;
      pen.fillRect(x, y, 1, 3);
    }
  }));
}

/** Panels of the walls: hexagons of thin lines. */
export function panels(): Texture {
  return texture(canvas(128, 222, (pen) => {
    pen.fillStyle = "rgb(255 255 255 / 34%)";
    pen.fillRect(0, 0, 128, 222);
    pen.strokeStyle = "rgb(255 255 255 / 100%)";
    pen.lineWidth = 3;
    const side = 74;
    for (const [cx, cy] of [[0, 0], [128, 0], [64, 111], [0, 222], [128, 222]]) {
      pen.beginPath();
      for (let corner = 0; corner <= 6; corner++) {
        const angle = (Math.PI / 3) * corner + Math.PI / 6;
        pen.lineTo(cx + side * Math.cos(angle), cy + side * Math.sin(angle));
      }
      pen.stroke();
    }
  }));
}

/** The net of a goal. */
export function net(): Texture {
  return texture(canvas(64, 64, (pen) => {
    pen.fillStyle = "rgb(255 255 255 / 12%)";
    pen.fillRect(0, 0, 64, 64);
    pen.strokeStyle = "rgb(255 255 255 / 90%)";
    pen.lineWidth = 3;
    pen.beginPath();
    pen.moveTo(0, 0);
    pen.lineTo(64, 64);
    pen.moveTo(64, 0);
    pen.lineTo(0, 64);
    pen.stroke();
  }));
}

/** A soft round spot, for shadows, flames and puffs. */
export function spot(): Texture {
  return texture(canvas(64, 64, (pen) => {
    const fade = pen.createRadialGradient(32, 32, 0, 32, 32, 32);
    fade.addColorStop(0, "rgb(255 255 255 / 100%)");
    fade.addColorStop(0.45, "rgb(255 255 255 / 62%)");
    fade.addColorStop(1, "rgb(255 255 255 / 0%)");
    pen.fillStyle = fade;
    pen.fillRect(0, 0, 64, 64);
  }), false);
}

/** A name on a pill in a team's colour. `aspect` is width over height. */
export function nameplate(text: string, colour: number): { texture: Texture; aspect: number } {
  const short = text.length > 26 ? `${text.slice(0, 25)}…` : text;
  const font = "600 34px ui-sans-serif, system-ui, sans-serif";
  let width = 0;
  canvas(8, 8, (pen) => {
    pen.font = font;
    width = Math.ceil(pen.measureText(short).width) + 64;
  });
  const picture = canvas(width, 64, (pen) => {
    pen.fillStyle = "rgb(8 12 20 / 72%)";
    pen.beginPath();
    pen.roundRect(2, 4, width - 4, 56, 28);
    pen.fill();
    pen.fillStyle = css(colour);
    pen.beginPath();
    pen.arc(30, 32, 9, 0, 7);
    pen.fill();
    pen.fillStyle = "#fff";
    pen.font = font;
    pen.textBaseline = "middle";
    pen.fillText(short, 48, 34);
  });
  const result = texture(picture, false);
  return { texture: result, aspect: width / 64 };
}
