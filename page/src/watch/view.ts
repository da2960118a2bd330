// The tab Watch: the picture, what lies over and below it, and the panels beside it. watch.ts decides what they do.
import type { Context, Tab } from "../context";
import { h } from "../dom";
import { Watch } from "./watch";

export function mountWatch(container: HTMLElement, context: Context): Tab {
  const watch = new Watch(context);
  const { hud, picture, timeline, transport, cameraBar, tools, recordings, headPanel, course } = watch;
  const { placing, driving } = watch.modes;
  container.append(h("div", { class: "watch" },
    recordings.element,
    h("div", { class: "watch-main" },
      h("div", { class: "stage-box" },
        picture.element,
        h("div", { class: "hud" },
          h("div", { class: "hud-top" }, tools.top, hud.score, h("div", { class: "hud-right" }, hud.badge, hud.status)),
          hud.cars, course.element, hud.gauge, hud.notice, driving.banner, hud.said)),
      h("div", { class: "controls" }, timeline.element,
        h("div", { class: "controls-row" }, transport.element, cameraBar.element, tools.bottom))),
    placing.panel,
    headPanel.element));
  return { shown: () => watch.shown(), hidden: () => watch.hidden() };
}
