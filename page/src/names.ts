// Names of players as they are shown.
import { count } from "./dom";

/** A name, or a title with names, in few letters: champion-1v1@5994970112 was trained for so many steps, which nobody reads to the last digit. */
export function shortName(name: string): string {
  return name.replace(/@(\d{4,})(?=$|[\s,])/g, (_, steps: string) => ` ${count(Number(steps))}`);
}
