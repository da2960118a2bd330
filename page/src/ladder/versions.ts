// Names of players on a ladder: `NAME@STEPS` is a version of a run, everything else is a fixed player.
import type { Ladder, Rated } from "../api";
import { count } from "../dom";

export interface Version { run: string; steps: number }

export function versionOf(player: string): Version | null {
  const found = /^(.+)@(\d+)$/.exec(player);
  return found ? { run: found[1], steps: Number(found[2]) } : null;
}

/** A name in few letters: "my-bot@2.5M". */
export function shortName(player: string): string {
  const version = versionOf(player);
  return version ? `${version.run}@${count(version.steps, 4)}` : player;
}

/** Players that do not learn here: scripts, champions, and policies of which one version played. */
export function fixedPlayers(ladder: Ladder): ({ player: string } & Rated)[] {
  return ladder.ratings.filter(({ player }) => {
    const version = versionOf(player);
    return version === null || !(version.run in ladder.runs);
  });
}

/** "1234 (1180 to 1290)". */
export function inWords(rated: Rated): string {
  const { value, low, high } = rated;
  return low === high ? `${Math.round(value)} by definition` : `${Math.round(value)} (${Math.round(low)} to ${Math.round(high)})`;
}
