// The tab Steer. (Stub: to be replaced.)
import { h } from "../dom";
import type { Context, Tab } from "../context";

export function mountSteer(container: HTMLElement, _context: Context): Tab {
  container.append(h("p", { class: "quiet" }, "Steer"));
  return { shown() {}, hidden() {} };
}
