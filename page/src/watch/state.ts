// What tests see of the watch tab, as `window.wavedash.state().watch`.
import { CarBody } from "../scene/cars";
import { RocketScene } from "../scene/rocket";
import type { Watch } from "./watch";

const round = (value: number): number => Math.round(value * 100) / 100;

export function stateOf(watch: Watch): Record<string, unknown> {
  const { player, source, live, cameras, modes, picture } = watch;
  const moment = modes.placing.active ? modes.placing.moment() : player.moment();
  const kind = picture.stage?.kind;
  const place = (x: number, y: number, z: number): Record<string, number> => ({ x: round(x), y: round(y), z: round(z) });
  const cars = (kind?.bodies ?? []).map((body) => {
    if (!(body instanceof CarBody)) return { ...place(body.position.x, body.position.y, body.position.z), boost: 0, present: body.present };
    return { ...place(body.game[0], body.game[1], body.game[2]), boost: body.boost, present: body.present };
  });
  const ball = kind instanceof RocketScene ? place(kind.ballGame[0], kind.ballGame[1], kind.ballGame[2]) : null;
  return {
    live: source.isLive, following: player.following, time: round(player.time), duration: round(player.duration),
    playing: player.following ? player.stagePlaying : player.playing, speed: watch.transport.current, loop: player.loop,
    frame: moment?.frame ?? -1, frames: player.recording?.frames ?? 0, score: moment?.recording.has("score") ? moment.read("score") : null,
    cars, ball, camera: { mode: cameras.mode, car: cameras.car, ballCam: cameras.ballCam, at: cameras.flight.map(round) },
    status: live.status.state, text: watch.hud.text, who: live.status.who, humans: live.status.humans, viewers: live.viewers,
    title: player.recording?.header.title ?? null, kind: player.recording?.header.kind ?? null, rec: source.rec,
    marks: watch.timeline.marks.list.length, latency: live.latency(),
    placing: modes.placing.active, driving: modes.driving.car, controls: modes.driving.controls, webgl: picture.stage !== null,
  };
}
