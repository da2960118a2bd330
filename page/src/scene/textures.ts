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

/** The same random numbers every time, so that pictures can be compared. Low bits of simpler generators repeat, which is seen as lines. */
export function random(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const css = (hex: number): string => `#${hex.toString(16).padStart(6, "0")}`;

/** Mown stripes; one tile is two stripes. */
export function turf(colours: [number, number], grain: number): Texture {
  return texture(canvas(256, 256, (pen) => {
    pen.fillStyle = css(colours[0]);
    pen.fillRect(0, 0, 256, 256);
    pen.fillStyle = css(colours[1]);
    pen.fillRect(0, 128, 256, 128);
    const chance = random(7);
    for (let index = 0; index < 2600; index++) {
      pen.fillStyle = chance() < 0.6 ? `rgb(255 255 255 / ${grain})` : `rgb(0 0 0 / ${grain * 1.6})`;
      pen.fillRect(Math.floor(chance() * 256), Math.floor(chance() * 256), 1, 3);
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

/** Rows of people in light clothes, to be tinted; between them the seats, from black (0) to white (255). */
export function crowd(seats: number): Texture {
  return texture(canvas(256, 256, (pen) => {
    const grey = (light: number): string => `rgb(${light} ${light} ${light})`;
    pen.fillStyle = grey(seats);
    pen.fillRect(0, 0, 256, 256);
    const chance = random(11);
    for (let row = 0; row < 16; row++) {
      pen.fillStyle = grey(seats + 34);
      pen.fillRect(0, row * 16 + 12, 256, 3);
      for (let seat = 0; seat < 32; seat++) {
        if (chance() < 0.14) continue;  // An empty seat.
        const light = Math.round(seats + 40 + (215 - seats) * chance());
        const [x, y] = [seat * 8 + 4 + 2 * (chance() - 0.5), row * 16 + 7 + 2 * (chance() - 0.5)];
        pen.fillStyle = grey(light);
        pen.fillRect(x - 2.5, y, 5, 6);
        pen.fillStyle = `rgb(${Math.round(light * 0.55 + 60)} ${Math.round(light * 0.5 + 52)} ${Math.round(light * 0.45 + 48)})`;
        pen.beginPath();
        pen.arc(x, y - 1.5, 2, 0, 7);
        pen.fill();
      }
    }
  }));
}

/** The skin of the ball on a map of the whole sphere: `patch(x, y, z)` says from 0 to 1 how much of a patch a direction is. */
export function ballSkin(patch: (x: number, y: number, z: number) => number, skin: [number, number, number], panel: [number, number, number]): Texture {
  const [width, height] = [512, 256];
  return texture(canvas(width, height, (pen) => {
    const picture = pen.createImageData(width, height);
    for (let row = 0; row < height; row++) {
      const down = ((row + 0.5) / height) * Math.PI;
      for (let column = 0; column < width; column++) {
        const around = ((column + 0.5) / width) * 2 * Math.PI;
        const part = patch(-Math.cos(around) * Math.sin(down), Math.cos(down), Math.sin(around) * Math.sin(down));
        const at = 4 * (row * width + column);
        for (let channel = 0; channel < 3; channel++) picture.data[at + channel] = skin[channel] + (panel[channel] - skin[channel]) * part;
        picture.data[at + 3] = 255;
      }
    }
    pen.putImageData(picture, 0, 0);
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
