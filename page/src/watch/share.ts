// What leaves the page: a file of what is shown, or a link to its moment.
import type { Context } from "../context";
import { fileName, saveAs } from "./drop";
import type { Link } from "./link";
import type { Player } from "./player";
import type { Source } from "./source";

/** Saves what is shown as a recording: a live game as far as it arrived. */
export async function download(player: Player): Promise<void> {
  const { recording } = player;
  if (recording) saveAs(await recording.pack(), fileName(recording.header.title));
}

/** Copies a link to this moment and camera, or to the live game. */
export async function copyLink(context: Context, source: Source, player: Player, link: Link): Promise<void> {
  link.flush();
  if (!source.isLive && source.rec === null) {
    context.say("This recording is only in your browser: send the file instead.");
    return;
  }
  const address = new URL(location.href);
  const hash = new URLSearchParams(address.hash.slice(1));
  hash.delete("token");
  if (!source.isLive) hash.set("t", player.time.toFixed(2));
  address.hash = String(hash);
  try {
    await navigator.clipboard.writeText(address.href);
    context.say("The link is copied.", "good");
  } catch {  // Only pages of this machine or with https may write to the clipboard.
    context.route.set(Object.fromEntries(hash));
    context.say("The address bar holds the link: copy it from there.");
  }
}

/** Shows an element on the full screen, or leaves it. */
export async function fullscreen(context: Context, element: Element | null): Promise<void> {
  try {
    if (document.fullscreenElement) await document.exitFullscreen();
    else await element?.requestFullscreen();
  } catch {
    context.say("This browser does not show parts of a page on the full screen.");
  }
}
