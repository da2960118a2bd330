// What the status line and the badge say.
import type { StageStatus } from "./live";
import type { Player } from "./player";
import type { Source } from "./source";

export interface Said { text: string; bad: boolean; badge: string; badgeKind: string }

/** One line about what is going on, and the badge beside it. */
export function describe(source: Source, player: Player, status: StageStatus): Said {
  if (source.trouble) return { ...source.trouble, badge: "", badgeKind: "" };
  if (!source.isLive) {
    if (!player.recording) return { text: "nothing is shown: choose a recording", bad: false, badge: "", badgeKind: "" };
    return { text: player.playing ? "playing" : "paused", bad: false, badge: "Recording", badgeKind: "replay" };
  }
  const late = player.recording && !player.following ? Math.max(0, player.duration - player.time) : 0;
  const badge = player.following || !player.recording ? "Live" : source.behind ? "An earlier game" : `${late.toFixed(0)} s behind`;
  const badgeKind = player.following && status.state === "playing" ? "on" : "off";
  if (status.state === "lost") return { text: `connection lost: ${status.text}`, bad: true, badge: "Lost", badgeKind: "lost" };
  if (status.state === "failed") return { text: `failed: ${status.text}`, bad: true, badge, badgeKind };
  const state = player.following ? status.state : player.playing ? "playing" : "paused";
  const line = status.state === "starting" || status.state === "connecting" ? `${status.state}…` : state;
  return { text: status.text && status.state !== "connecting" ? `${line} ${status.text}` : line, bad: false, badge, badgeKind };
}
