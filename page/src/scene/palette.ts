// Colours of the 3D picture, for a dark and a light page.

export interface Palette {
  sky: number; haze: number; floor: [number, number]; lines: number; wall: number; stands: number; apron: number; ballPanel: number; ball: number;
  teams: [number, number]; teamDeep: [number, number]; pad: number; padOff: number; ambient: number; sun: number;
}

const DARK: Palette = {
  sky: 0x0a0e18, haze: 0x0a0e18, floor: [0x1a2536, 0x1d293c], lines: 0xdbe7ff, wall: 0x7fa0d8, stands: 0x46536e, apron: 0x0d1320, ballPanel: 0x2a3348, ball: 0xeef2fa,
  teams: [0x2f83ff, 0xff8a2b], teamDeep: [0x12408c, 0x8c4310], pad: 0xffc63d, padOff: 0x46506a, ambient: 1.5, sun: 2.1,
};

const LIGHT: Palette = {
  sky: 0xdfe9f6, haze: 0xdfe9f6, floor: [0x86b98f, 0x7db187], lines: 0xffffff, wall: 0x5f7fb5, stands: 0xdde5f0, apron: 0xc3d0e2, ballPanel: 0x39435a, ball: 0xffffff,
  teams: [0x1f74ff, 0xff7a12], teamDeep: [0x2f6fd6, 0xe07a24], pad: 0xffb300, padOff: 0x7d8a86, ambient: 1.9, sun: 2.0,
};

/** The colours for a theme. */
export function palette(dark: boolean): Palette {
  return dark ? DARK : LIGHT;
}
