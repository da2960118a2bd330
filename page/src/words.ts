// Numbers and times as people write them.
import { count } from "./dom";

/** Seconds as "3.5 min". */
export function span(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  for (const [unit, name] of [[86400, "d"], [3600, "h"], [60, "min"]] as const) {
    if (seconds >= unit) return `${seconds >= 100 * unit ? Math.round(seconds / unit) : +(seconds / unit).toPrecision(2)} ${name}`;
  }
  return `${Math.round(seconds)} s`;
}

/** A share of 1 as "37 %"; small ones keep a digit. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  const hundredths = share * 100;
  return `${Math.abs(hundredths) < 9.95 && hundredths !== Math.round(hundredths) ? hundredths.toFixed(1) : Math.round(hundredths)} %`;
}

/** A time as people write it; the text itself where it is none. */
export function when(time: unknown, seconds = true): string {
  const date = asDate(time);
  if (date === null) return time === null || time === undefined ? "" : String(time);
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: seconds ? "medium" : "short" });
}

/** Seconds since a time; null where it is none. */
export function since(time: unknown): number | null {
  const date = asDate(time);
  return date === null ? null : Math.max(0, (Date.now() - date.getTime()) / 1000);
}

function asDate(time: unknown): Date | null {
  if (time === null || time === undefined || time === "") return null;
  const date = new Date(typeof time === "number" ? time * (time < 1e12 ? 1000 : 1) : String(time));
  return Number.isNaN(date.getTime()) ? null : date;
}

/** The ticks of an axis, with as many digits as their distance needs. */
export function ticks(values: (number | null)[], distance: number): string[] {
  const most = Math.max(...values.map((value) => Math.abs(value ?? 0)));
  const [unit, letter] = ([[1e9, "G"], [1e6, "M"], [1e4, "k"]] as const).find(([size]) => most >= size) ?? [1, ""] as const;
  const size = unit === 1e4 ? 1e3 : unit;
  if (most && most < 1e-3) return values.map((value) => (value === null ? "" : value === 0 ? "0" : value.toExponential(1).replace(".0e", "e")));
  const step = distance / size;
  let digits = 0;
  while (digits < 6 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6 * step * 10 ** digits) digits += 1;
  return values.map((value) => (value === null ? "" : value === 0 ? "0" : `${(value / size).toFixed(digits)}${letter}`));
}

/** Every tick for itself, as logarithmic axes need it. */
export function eachTick(values: (number | null)[]): string[] {
  return values.map((value) => (value === null ? "" : Math.abs(value) < 1e-3 && value ? value.toExponential(0) : count(value)));
}

/** A value in five characters or so, also where it is tiny. */
export function short(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value !== 0 && Math.abs(value) < 1e-3) return value.toExponential(2);
  return count(value, digits);
}
