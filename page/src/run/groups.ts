// Which metrics are drawn, in which groups: what matters of a game, of a walk and of any other task, then the algorithm.

export interface ChartPlan {
  title: string;
  names: string[];
  /** Draws each metric as its signed share of the sum of all sizes: which reward term counts for how much. */
  share?: boolean;
  /** The metric whose healthy band is shaded. */
  band?: string;
  /** Lower and upper end of an interval around the first metric. */
  interval?: [string, string];
}

export interface Group { title: string; charts: ChartPlan[] }

const LABELS: Record<string, string> = {
  "recent/return": "Return", "recent/length": "Episode length", "recent/success": "Success rate", "rollout/reward": "Reward per step",
  "policy/entropy": "Entropy", "policy/entropy_share": "Entropy, share of the most possible", "policy/kl": "KL divergence",
  "policy/clip_fraction": "Clip fraction", "loss/value": "Value loss", "loss/policy": "Policy loss",
  "loss/explained_variance": "Explained variance", "optim/learning_rate": "Learning rate", "optim/grad_norm": "Gradient norm",
  "optim/update_size": "Size of the update", "time/steps_per_second": "Steps per second", "env/walk/error": "Velocity error (m/s)",
  "env/walk/level": "Level of the terrain", "env/walk/speed": "Speed (m/s)", "env/walk/falls": "Falls",
};

/** A name for people: "Touches per minute" instead of env/per_minute/touches. */
export function label(name: string): string {
  if (LABELS[name]) return LABELS[name];
  const words = name.split("/").pop()!.replace(/_/g, " ");
  const capital = words.charAt(0).toUpperCase() + words.slice(1);
  if (name.startsWith("env/per_minute/")) return `${capital} per minute`;
  if (name.startsWith("lane/")) return `${capital} (lane ${name.split("/")[1]})`;
  return capital;
}

/** The groups for a run that has these metrics; metrics that it does not have are left out, and so are empty groups. */
export function groupsFor(names: Iterable<string>): Group[] {
  const known = new Set(names);
  const all = [...known];
  const single = (...list: string[]): ChartPlan[] => list.filter((name) => known.has(name)).map((name) => ({ title: label(name), names: [name] }));
  const under = (prefix: string, skip?: RegExp) => all.filter((name) => name.startsWith(prefix) && !skip?.test(name)).sort();
  const together = (title: string, list: string[], more: Partial<ChartPlan> = {}): ChartPlan[] => (list.length ? [{ title, names: list, ...more }] : []);

  const terms = under("env/reward/");
  const skill: ChartPlan[] = known.has("rating/elo")
    ? [{ title: "Rating (Elo, 95 % interval)", names: ["rating/elo"], interval: ["rating/low", "rating/high"] }] : [];
  const walk = under("env/walk/");
  const main = ["env/walk/error", "env/walk/level", "env/walk/falls"];
  return [
    { title: "Learning", charts: [...single("recent/return"), ...together("Reward terms, share", terms, { share: true }),
      ...single("recent/length", "recent/success", "rollout/reward")] },
    { title: "Skill", charts: [...skill, ...together("Goals and shots per car and minute",
      ["env/per_minute/goals", "env/per_minute/shots", "env/per_minute/saves"].filter((name) => known.has(name))),
      ...single("env/per_minute/touches"), ...together("Share of goals", under("rating/goal_share_")),
      ...together("Points against opponents", under("league/win_rate")),
      ...together("Success of measures", under("env/attempt/", /_ticks$/)),
      ...together("Success of measures in lanes", all.filter((name) => /^lane\/.*\/attempt\/(?!.*_ticks$)/.test(name)).sort())] },
    { title: "Walking", charts: [...single(...main), ...single(...walk.filter((name) => !main.includes(name)))] },
    { title: "Policy", charts: [...single("policy/entropy_share", "policy/entropy", "policy/kl"),
      ...single("policy/clip_fraction").map((chart) => ({ ...chart, band: "policy/clip_fraction" }))] },
    { title: "Critic and optimiser", charts: single("loss/value", "loss/explained_variance", "optim/learning_rate", "optim/grad_norm", "optim/update_size", "loss/policy") },
    { title: "Student and teacher", charts: single(...under("distill/")) },
    { title: "Speed", charts: single("time/steps_per_second") },
  ].filter((group) => group.charts.length);
}
