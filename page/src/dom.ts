// Tiny helpers that build the document without innerHTML, so that no data ever becomes markup.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, unknown>;

const SVG = "http://www.w3.org/2000/svg";

function fill(element: Element, attributes: Attributes | null, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2).toLowerCase(), value as EventListener);
    } else if (name === "value" && "value" in element) {
      (element as HTMLInputElement).value = String(value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, ...children);
}

/** Adds children; text becomes text nodes. */
export function append(element: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** A new HTML element: `h("button", { class: "primary", onclick: go, "aria-label": "Play" }, "Play")`. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes | null = null, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** A new SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K, attributes: Attributes | null = null, ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  fill(element, attributes, children);
  return element;
}

/** Replaces everything inside an element. */
export function replace(element: Element, ...children: Child[]): void {
  element.textContent = "";
  append(element, ...children);
}

/** Sets the text of an element, if it is another one: the document is not touched for nothing. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets a custom CSS property, which CSP allows where a style attribute is forbidden. */
export function property(element: HTMLElement | SVGElement, name: string, value: string | number): void {
  element.style.setProperty(name, String(value));
}

/** Seconds as 0:05 or 1:02:03; with `digits`, as 0:05.25. */
export function clock(seconds: number, digits = 0): string {
  if (!Number.isFinite(seconds)) return "–";
  const sign = seconds < 0 ? "-" : "";
  const unit = 10 ** digits;
  const whole = Math.floor(Math.abs(seconds) * unit + 1e-6) / unit;
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  const rest = (whole % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  return hours ? `${sign}${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${sign}${minutes}:${rest}`;
}

/** A count in few characters: 1.2k, 5.99G. */
export function count(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    if (size >= unit) return `${Number((value / unit).toPrecision(digits))}${letter}`;
  }
  return String(Number(value.toPrecision(digits)));
}

/** Bytes in words: 1.2 MB. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let index = 0;
  while (value >= 1000 && index < units.length - 1) {
    value /= 1000;
    index += 1;
  }
  return `${Number(value.toPrecision(3))} ${units[index]}`;
}
