// Where a robot walks: terrain, level and layout of the live walk, as the stage lists them.
import { h, replace } from "../dom";

type Facts = Record<string, unknown>;

export class CourseBar {
  readonly element = h("div", { class: "course glass", hidden: true, role: "group", "aria-label": "Where the robot walks" });
  private shown = "";

  constructor(private readonly send: (command: Record<string, unknown>) => void, private readonly writable: boolean) {}

  /** Shows what the stage says about itself; other stages than those of walks have no course. */
  update(facts: Facts | null): void {
    const walks = facts?.kind === "walk" && Array.isArray(facts.terrains);
    this.element.hidden = !walks;
    const text = JSON.stringify(walks ? [facts.terrain, facts.level, facts.layout, facts.terrains, facts.levels, facts.layouts] : null);
    if (!walks || text === this.shown) return;
    this.shown = text;
    const levels = [...(facts.layout === "training" ? [null] : []), ...Array.from({ length: Number(facts.levels) }, (_, level) => level)];
    replace(this.element,
      this.select("Terrain", "terrain", facts.terrains as string[], facts.terrain),
      this.select("Level", "level", levels, facts.level),
      this.select("Layout", "layout", (facts.layouts as string[]) ?? [], facts.layout));
  }

  private select(text: string, key: string, values: (string | number | null)[], now: unknown): HTMLElement {
    const input = h("select", { class: "input", disabled: !this.writable, "data-course": key, onchange: () => this.send({ do: "course", [key]: values[input.selectedIndex] }) },
      ...values.map((value) => h("option", null, value === null ? "curriculum" : String(value))));
    input.selectedIndex = values.findIndex((value) => value === (now ?? null));
    return h("label", { class: "field" }, text, input);
  }
}
