// The tab Watch. (Skeleton: grows soon.)
import { h } from "../dom";
import type { Context, Tab } from "../context";
import { HeadPanel } from "./head";

export function mountWatch(container: HTMLElement, context: Context): Tab {
  container.append(h("p", { class: "quiet" }, "Watch"), new HeadPanel(context, () => {}).element);
  return { shown() {}, hidden() {} };
}
