// An editor for the value of one setting, by its type, and how its text is read.
import { h } from "../dom";

/** A value as it is typed after `wavedash set`. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? number(value) : JSON.stringify(value);
}

/** 0.0003 and 1e-7 as people write them; nothing is rounded. */
function number(value: number): string {
  return String(value).replace("e+", "e");
}

/** Reads what was typed: numbers, true, false, null, lists and mappings as JSON, everything else as a word. */
export function parse(typed: string): unknown {
  const trimmed = typed.trim();
  if (/^[+-]?(\d[\d_]*\.?[\d_]*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed)) return Number(trimmed.replace(/_/g, ""));
  try {
    return JSON.parse(trimmed);
  } catch {
    return trimmed;
  }
}

export interface Editor {
  element: HTMLInputElement | HTMLSelectElement;
  /** What was chosen. */
  value(): unknown;
  /** Shows another value. */
  set(value: unknown): void;
}

/** A list for a few words, a field for everything else. */
export function editor(key: string, value: unknown, choices: string[] | undefined, changed: () => void): Editor {
  const label = { class: "input number", "aria-label": `New value of ${key}`, oninput: changed };
  if (choices) {
    const all = choices.includes(text(value)) ? choices : [text(value), ...choices];
    const element = h("select", label, ...all.map((word) => h("option", { value: word }, word)));
    element.value = text(value);
    return { element, value: () => parse(element.value), set: (other) => { element.value = text(other); } };
  }
  const element = h("input", { ...label, type: "text", inputmode: typeof value === "number" ? "decimal" : null, value: text(value), spellcheck: "false", autocomplete: "off", autocapitalize: "off" });
  return { element, value: () => parse(element.value), set: (other) => { element.value = text(other); } };
}
