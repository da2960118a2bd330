// The bar below the picture: play, steps, speed, loop, time and going live.
import { clock, h } from "../dom";
import { iconButton, setIcon } from "./icons";
import type { Control } from "./control";
import { SPEEDS, type Player } from "./player";
import type { Source } from "./source";

export class Transport {
  readonly element: HTMLElement;
  private readonly play: HTMLButtonElement;
  private readonly loop: HTMLButtonElement;
  private readonly live: HTMLButtonElement;
  private readonly speed: HTMLSelectElement;
  private readonly time = h("span", { class: "time number" });
  private shown = "";

  constructor(private readonly player: Player, private readonly control: Control, goLive: () => void) {
    this.play = iconButton("play", "Play", () => control.toggle(), { key: "Space", class: "play", id: "play" });
    this.loop = iconButton("loop", "Loop", () => control.loop(), { key: "L", pressed: false, id: "loop" });
    this.live = h("button", { class: "tool live", type: "button", id: "live", title: "Back to the live game (End)", hidden: true, onclick: () => goLive() },
      h("span", { class: "dot" }), "Go live");
    this.speed = h("select", { class: "input speed", id: "speed", "aria-label": "Speed", title: "Speed", onchange: () => control.setSpeed(Number(this.speed.value)) },
      ...SPEEDS.map((speed) => h("option", { value: speed }, `${speed}×`)));
    this.element = h("div", { class: "group" },
      iconButton("before", "The event before", () => control.jump(-1), { key: "[", class: "wide" }),
      iconButton("back", "One frame back", () => control.step(-1), { key: ",", id: "step-back" }),
      this.play,
      iconButton("on", "One frame on", () => control.step(1), { key: ".", id: "step-on" }),
      iconButton("after", "The event after", () => control.jump(1), { key: "]", class: "wide" }),
      this.time, this.live,
      h("span", { class: "speeds" }, iconButton("slower", "Slower", () => this.change(-1), { key: "-" }), this.speed, iconButton("faster", "Faster", () => this.change(1), { key: "+" })),
      this.loop);
  }

  /** The speed that counts now: of the stage where its newest frame is followed. */
  get current(): number {
    return this.player.following ? this.player.stageSpeed : this.player.speed;
  }

  /** The next slower or faster speed. */
  change(step: 1 | -1): void {
    const now = this.current;
    const next = step > 0 ? SPEEDS.find((speed) => speed > now * 1.001) : [...SPEEDS].reverse().find((speed) => speed < now * 0.999);
    if (next) this.control.setSpeed(next);
  }

  /** Shows how the player stands. `canGoLive`: whether there is a live game at all. */
  update(canGoLive: boolean, source: Source): void {
    const { player } = this;
    const plays = player.following ? player.stagePlaying : player.playing;
    setIcon(this.play, plays ? "pause" : "play");
    this.play.setAttribute("aria-label", plays ? "Pause" : "Play");
    this.loop.setAttribute("aria-pressed", String(player.loop));
    this.loop.disabled = player.growing;
    this.live.hidden = !canGoLive || (source.isLive && (player.following || !player.recording));
    const speed = this.current;
    if (!SPEEDS.includes(speed) && !this.speed.querySelector(`option[value="${speed}"]`)) this.speed.append(h("option", { value: speed }, `${speed}×`));
    this.speed.value = String(speed);
  }

  /** Shows the time. It is called for every picture. */
  tick(): void {
    const text = this.player.recording ? `${clock(this.player.time, 1)} / ${clock(this.player.duration, 1)}` : "–";
    if (text === this.shown) return;
    this.shown = text;
    this.time.textContent = text;
  }
}
