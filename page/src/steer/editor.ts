// An editor for the value of one setting, by its type, and how its text is read.
import { h } from "../dom";

/** A value as it is typed after `wavedash set`. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Reads what was typed: numbers, true, false, null, lists and mappings as JSON, everything else as a word. */
export function parse(typed: string): unknown {
  const trimmed = typed.trim();
  const plain = /^[+-]?[\d_]+(\.\d*)?(e[+-]?\d+)?$/i.test(trimmed) ? trimmed.replace(/_/g, "").replace(/^\+/, "") : trimmed;
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) return Number(plain);
  try {
    return JSON.parse(plain);
  } catch {
    return trimmed;
  }
}

/** A switch for true and false, a field for everything else. `value()` is what was chosen. */
export function editor(key: string, value: unknown): { element: HTMLInputElement | HTMLSelectElement; value(): unknown } {
  const label = { class: "input number", "aria-label": `New value of ${key}` };
  if (typeof value === "boolean") {
    const element = h("select", label, h("option", { value: "true" }, "true"), h("option", { value: "false" }, "false"));
    element.value = String(value);
    return { element, value: () => element.value === "true" };
  }
  const element = h("input", { ...label, type: "text", inputmode: typeof value === "number" ? "decimal" : null, value: text(value), spellcheck: "false", autocomplete: "off" });
  return { element, value: () => parse(element.value) };
}
