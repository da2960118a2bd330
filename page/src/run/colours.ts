// Colours of lines. All of them can be told from the ground in light and in dark (3 : 1 at least).
export const PALETTE = ["#3d7bf5", "#e06a1c", "#17965f", "#b455d6", "#b98900", "#e0476b", "#0f93a6", "#8a7a63", "#6f7dff", "#5c9a14"];

/** Dashes by which runs differ where colours mean metrics. */
export const DASHES: (number[] | undefined)[] = [undefined, [7, 3], [2, 3], [9, 3, 2, 3], [5, 2, 1, 2], [1, 2], [12, 4], [4, 6]];
