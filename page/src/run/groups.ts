// Which metrics are drawn, in which groups: what matters of a game, of a walk and of any other task, then the algorithm.

export interface ChartPlan {
  title: string;
  names: string[];
  /** Draws each metric as its signed share of the sum of all sizes: which reward term counts for how much. */
  share?: boolean;
  /** Lower and upper end of an interval around the first metric. */
  interval?: [string, string];
  /** Values are shares of 1, written in percent. */
  percent?: boolean;
}

/** `closed`: what the group holds is asked for only once it is opened. */
export interface Group { title: string; charts: ChartPlan[]; closed?: boolean }

const LABELS: Record<string, string> = {
  "recent/return": "Return", "recent/length": "Episode length", "recent/success": "Success rate", "rollout/reward": "Reward per step",
  "policy/entropy": "Entropy", "policy/entropy_share": "Entropy, share of the greatest", "policy/kl": "KL divergence",
  "policy/clip_fraction": "Clip fraction", "loss/value": "Value loss", "loss/policy": "Policy loss",
  "loss/explained_variance": "Explained variance", "optim/learning_rate": "Learning rate", "optim/grad_norm": "Gradient norm",
  "optim/update_size": "Size of the update", "optim/clip_range": "Clip range", "optim/entropy_coef": "Entropy coefficient",
  "optim/skipped": "Updates skipped by the NaN guard", "time/steps_per_second": "Steps per second", "env/walk/error": "Velocity error (m/s)",
  "env/walk/level": "Level of the terrain", "env/walk/speed": "Speed (m/s)", "env/walk/wanted": "Speed wanted (m/s)",
  "env/walk/power": "Power (W)", "env/walk/falls": "Falls", "health/worker_restarts": "Restarts of workers",
  "league/win_rate": "All opponents", "phase/number": "Phase",
};

const MEANINGS: Record<string, string> = {
  "recent/return": "Mean sum of rewards of the last episodes. It must rise; what it is worth depends on the rewards.",
  "recent/length": "Mean steps of the last episodes.",
  "policy/entropy": "How undecided the policy is. It falls slowly while the policy learns; a sudden fall is a collapse.",
  "policy/entropy_share": "Entropy as a share of the greatest there is: 1 is chance, 0 is always the same action.",
  "policy/kl": "How far an update moves the policy. Far above the band the updates are too wild, far below nothing is learned.",
  "policy/clip_fraction": "Share of samples whose ratio was clipped. Far above the band: lower the learning rate, or fewer epochs.",
  "loss/explained_variance": "How well the critic foresees returns: 1 is perfect, 0 is no better than a constant.",
  "loss/value": "Squared error of the critic.",
  "optim/grad_norm": "Length of the gradient before it is clipped.",
  "optim/update_size": "Length of the step that the weights made.",
  "rating/elo": "Strength in games against fixed players; the chaser has 1000 by definition. The band is the 95 % interval.",
  "time/steps_per_second": "Steps of the environment per second, without ratings.",
};

/** A name for people: "Touches per minute" instead of env/per_minute/touches. */
export function label(name: string): string {
  if (LABELS[name]) return LABELS[name];
  const last = name.split("/").pop()!.replace(/^(win_rate|goal_share)_/, "");
  const words = last.replace(/_/g, " ");
  const capital = words.charAt(0).toUpperCase() + words.slice(1);
  if (name.startsWith("env/per_minute/")) return `${capital} per minute`;
  if (name.startsWith("lane/")) return `${capital} (lane ${name.split("/")[1]})`;
  return capital;
}

/** What a metric says about a run, where that is worth a sentence. */
export function meaning(name: string): string | null {
  return MEANINGS[name] ?? null;
}

/** Numbers that count something which the axis shows already. */
const DULL = /^(total_steps|run\/(iteration|episodes)|recent\/count|phase\/(number|steps)|rollout\/(steps|episodes)|optim\/gradient_steps)$/;

/** All metrics of a run in groups. Every metric is in one of them; those that are not known here are in "Other". */
export function groupsFor(names: Iterable<string>): Group[] {
  const known = new Set(names);
  const left = new Set(known);
  const take = (list: string[]): string[] => list.filter((name) => known.has(name) && left.delete(name));
  const all = (pattern: RegExp): string[] => [...left].filter((name) => pattern.test(name)).sort();
  const single = (...list: string[]): ChartPlan[] => take(list).map((name) => ({ title: label(name), names: [name] }));
  const together = (title: string, list: string[], more: Partial<ChartPlan> = {}): ChartPlan[] => {
    const found = take(list);
    return found.length ? [{ title, names: found, ...more }] : [];
  };
  const terms = all(/^env\/reward\//);
  const rating: ChartPlan[] = single("rating/elo").map((plan) => ({
    ...plan, title: "Rating (Elo, 95 % interval)", ...(take(["rating/low", "rating/high"]).length === 2 ? { interval: ["rating/low", "rating/high"] } : {}),
  }));
  const groups: Group[] = [
    { title: "Learning", charts: [...single("recent/return"), ...together("Reward terms, mean of a step", terms),
      ...(terms.length > 1 ? [{ title: "Reward terms, share of all", names: terms, share: true }] : []),
      ...single("recent/length", "recent/success", "rollout/reward")] },
    { title: "Skill", charts: [...rating,
      ...together("Points against the panel", all(/^rating\/win_rate_/), { percent: true }),
      ...together("Goals, shots and saves per car and minute", ["env/per_minute/goals", "env/per_minute/shots", "env/per_minute/saves"]),
      ...single("env/per_minute/touches"),
      ...together("Share of goals against the panel", all(/^rating\/goal_share_/), { percent: true }),
      ...together("Points against opponents", all(/^league\/win_rate/), { percent: true }),
      ...single(...all(/^env\/per_minute\//)),
      ...together("Mechanics that succeed", all(/^env\/attempt\/(?!.*_ticks$)/), { percent: true }),
      ...together("Mechanics that succeed, in lanes", all(/^lane\/.*\/attempt\/(?!.*_ticks$)/), { percent: true })] },
    { title: "Walking", charts: single("env/walk/error", "env/walk/level", "env/walk/falls", ...all(/^env\/walk\//)) },
    { title: "Policy", charts: single("policy/kl", "policy/clip_fraction", "policy/entropy_share", "policy/entropy", ...all(/^policy\//)) },
    { title: "Critic", charts: single("loss/value", "loss/explained_variance") },
    { title: "Rates and optimiser", charts: single("optim/learning_rate", "optim/clip_range", "optim/entropy_coef", "optim/grad_norm",
      "optim/update_size", "loss/policy") },
    { title: "Student and teacher", charts: single(...all(/^distill\//)) },
    { title: "Lanes", charts: [...together("Reward of lanes", all(/^lane\/[^/]+\/reward$/)), ...together("Share of lanes", all(/^lane\/[^/]+\/share$/), { percent: true }),
      ...together("Length of episodes in lanes", all(/^lane\/[^/]+\/length$/))] },
    { title: "Speed and health", charts: [...single("time/steps_per_second"), ...together("Seconds of an iteration", all(/^time\//)),
      ...together("Trouble, counted since the start", all(/^health\//)), ...single("optim/skipped")] },
  ];
  all(DULL).forEach((name) => left.delete(name));
  groups.push({ title: "Other", charts: single(...[...left].sort()), closed: true });
  return groups.filter((group) => group.charts.length);
}

/** The charts whose title or metrics have these words. */
export function matching(groups: Group[], words: string): Group[] {
  const wanted = words.trim().toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return groups;
  const fits = (plan: ChartPlan) => {
    const text = `${plan.title} ${plan.names.join(" ")} ${plan.names.map(label).join(" ")}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  };
  return groups.map((group) => ({ ...group, closed: false, charts: group.charts.filter(fits) })).filter((group) => group.charts.length);
}
