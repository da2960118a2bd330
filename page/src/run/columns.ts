// What a chart draws of its metrics: shares, smoothing, logarithms and outliers, as pure functions of columns.
import type { Column } from "./series";

/** Each term as its signed share of the sum of all sizes in the row. */
export function shares(columns: Column[]): Column[] {
  const rows = columns[0]?.length ?? 0;
  const sums = Array.from({ length: rows }, (_, row) => columns.reduce((sum, column) => sum + Math.abs(column[row] ?? 0), 0));
  return columns.map((column) => column.map((value, row) => (value === null || !sums[row] ? null : value / sums[row])));
}

/** An exponential mean without a bias at the beginning; `weight` 0 changes nothing. Missing values stay missing. */
export function smooth(column: Column, weight: number): Column {
  if (!weight) return column;
  let mean = 0;
  let sum = 0;
  return column.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    sum = weight * sum + (1 - weight);
    return mean / sum;
  });
}

/** What a logarithmic axis can show. */
export function positive(column: Column): Column {
  return column.map((value) => (value !== null && value > 0 ? value : null));
}

export function last(column: readonly (number | null | undefined)[] | undefined): number | null {
  for (let row = (column?.length ?? 0) - 1; row >= 0; row--) {
    const value = column![row];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}

/** The row nearest to `row` that has a value, at most `reach` rows away; null if there is none. */
export function nearest(column: readonly (number | null | undefined)[] | undefined, row: number, reach: number): number | null {
  if (!column) return null;
  for (let away = 0; away <= reach; away++) {
    for (const one of [row - away, row + away]) if (column[one] !== null && column[one] !== undefined) return one;
  }
  return null;
}

/** The range that holds the given share of the values: what is farther out are outliers. */
export function usual(values: number[], share = 0.98): [number, number] | null {
  if (!values.length) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const cut = Math.floor((sorted.length * (1 - share)) / 2);
  return [sorted[cut], sorted[sorted.length - 1 - cut]];
}
