"""Recording demonstrations: what a policy sees and does in its own environment, or game states of games that somebody plays."""
from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from wavedash.envs.kinds import kind_of
from wavedash.envs.obs import ACTION_MASK, Obs, action_mask, map_obs
from wavedash.envs.vec_env import VecEnv
from wavedash.imitate.demonstrations import episode_begins, prepare, write_samples
from wavedash.loading import LoadedRun
from wavedash.seeding import stream_seed


class Recorded(NamedTuple):
    """What was written."""

    path: Path
    episodes: int
    samples: int
    """Actions that are known"""

    def __str__(self) -> str:
        return f"wrote {self.samples:,} samples of {self.episodes:,} episodes to {self.path}"


def record_episodes(run: LoadedRun, path: Path, episodes: int, deterministic: bool = True, seed: int = 1) -> Recorded:
    """Plays whole episodes of a run's own task, and writes what its policy saw and did."""
    config = run.config.env
    prepare(path)
    rounds = -(-episodes // min(episodes, kind_of(config).evaluation(config).environments))
    env = run.make_env(-(-episodes // rounds))
    try:
        return _play(env, run, path, rounds, deterministic, stream_seed(seed, "demonstrations"))
    finally:
        env.close()


@torch.no_grad()
def _play(env: VecEnv, run: LoadedRun, path: Path, rounds: int, deterministic: bool, seed: int) -> Recorded:
    """Every row plays so many episodes, so that short ones are not favored."""
    policy, obs, rows = run.policy, env.reset(seed), env.num_rows
    policy.reset()
    first = getattr(env.action_space, "start", 0)  # files hold actions as the environment counts them
    played = torch.zeros(rows, dtype=torch.int64)
    seen: list[Obs] = []
    acted: list[Tensor] = []
    number: list[Tensor] = []
    while int(played.min()) < rounds:
        action = policy.step(obs, deterministic)
        seen.append(map_obs(lambda x: x.cpu().clone(), obs))
        acted.append(action.cpu() + torch.as_tensor(first))
        step = env.step(action)
        counted = step.active.cpu() & (played < rounds)
        number.append(torch.where(counted, torch.arange(rows) * rounds + played, -1))
        done = step.terminated | step.truncated
        policy.reset(done | ~step.active)
        played += done.cpu()
        obs = step.obs
        if bool(done.any()):
            env.prepare()
    episode = torch.stack(number, 1).flatten()  # [N, T]: the steps of a row follow each other
    kept = episode >= 0

    def rows_first(*each: Tensor) -> Tensor:
        return torch.stack(each, 1).flatten(0, 1)[kept]

    whole = map_obs(rows_first, seen[0], *seen[1:])
    mask = action_mask(whole)
    if isinstance(whole, dict):
        whole = {key: x for key, x in whole.items() if key != ACTION_MASK}
    write_samples(path, whole, rows_first(*acted), episode[kept], mask, {"player": str(run.path)})
    return Recorded(path, int(episode_begins(episode[kept]).sum()), int(kept.sum()))
