// The tab Run. (Stub: to be replaced.)
import { h } from "../dom";
import type { Context, Tab } from "../context";

export function mountRun(container: HTMLElement, _context: Context): Tab {
  container.append(h("p", { class: "quiet" }, "Run"));
  return { shown() {}, hidden() {} };
}
