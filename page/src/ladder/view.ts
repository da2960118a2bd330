// The tab Ladder. (Stub: to be replaced.)
import { h } from "../dom";
import type { Context, Tab } from "../context";

export function mountLadder(container: HTMLElement, _context: Context): Tab {
  container.append(h("p", { class: "quiet" }, "Ladder"));
  return { shown() {}, hidden() {} };
}
