// Whether the server answers: a lamp in the bar. While all is well other questions show that; only in silence it asks itself.
import type { About } from "./api";
import { h, say } from "./dom";

const QUIET = 15_000;
const AGAIN = 2_000;

export class Connection {
  readonly element: HTMLElement;
  here = true;
  private readonly text = h("span", null, "connected");
  private last = performance.now();
  /** The server was gone, and nobody was told yet that it is back. */
  private lost = false;

  constructor() {
    this.element = h("div", { class: "connection", id: "connection", role: "status", title: "The server answers" }, h("i"), this.text);
  }

  /** Is told of every question that was asked. */
  heard(answered: boolean): void {
    this.last = performance.now();
    if (answered === this.here) return;
    this.here = answered;
    this.lost ||= !answered;
    this.element.classList.toggle("gone", !answered);
    this.element.title = answered ? "The server answers" : "The server does not answer. The run goes on without it. Start it again: wavedash watch";
    say(this.text, answered ? "connected" : "server gone");
  }

  /** Asks now and then from now on; `back` is called when the server answers again. */
  watch(ask: () => Promise<About>, back: (about: About) => void): void {
    const look = async () => {
      if (!document.hidden && (this.lost || performance.now() - this.last > QUIET)) {
        try {
          const about = await ask();
          if (this.lost) back(about);
          this.lost = false;
        } catch { /* The lamp shows it. */ }
      }
      window.setTimeout(() => void look(), AGAIN);
    };
    window.setTimeout(() => void look(), AGAIN);
  }
}
