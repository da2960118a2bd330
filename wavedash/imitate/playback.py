"""Playback: demonstrations as a VecEnv, whose rows read them at different places whatever the policy does.

So rollouts are collected from a file as from a game, with the policy's memory, masks, statistics of observations and state.
The samples that are learned from form a circle of whole episodes. N rows begin at equal distances and go round, one sample a
step; when each has gone an Nth of the circle, every sample was seen once. A row that begins inside of an episode knows nothing
of what was before, which happens once in a run.
"""
from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from wavedash.envs.errors import EnvError
from wavedash.envs.kinds import Spaces
from wavedash.envs.obs import map_obs
from wavedash.envs.vec_env import Obs, Step, VecEnv
from wavedash.errors import UserError
from wavedash.imitate.samples import Samples
from wavedash.policy.memory import State
from wavedash.ppo.loss import Labeller
from wavedash.ppo.ranks import ALONE, Ranks
from wavedash.saved import Saved

ACTION, KNOWN = "action", "known"
PLACE = "place"


class Playback(VecEnv):
    """N rows that go round a circle of samples."""

    rewarding = False
    capturable = True

    def __init__(self, samples: Samples, circle: Tensor, spaces: Spaces, rows: int, ranks: Ranks = ALONE) -> None:
        """`circle`: the numbers of the samples, whole episodes one after another. Rows of all `ranks` share the distances."""
        every = rows * ranks.size
        if len(circle) < every:
            raise UserError(f"the demonstrations to learn from are {len(circle):,} samples, fewer than the {every:,} places "
                            "where they are read at the same time: record more, or lower env.count")
        self.samples, self.circle, self.num_rows, self.device = samples, circle, rows, circle.device
        self.observation_space, self.action_space = spaces.observation_space, spaces.action_space
        self.source_space = spaces.source_space
        number = torch.arange(rows, device=self.device) + rows * ranks.rank
        self._first = number * len(circle) // every
        self.place = self._first.clone()
        """[N]: where on the circle each row is"""
        self._reward = torch.zeros(rows, device=self.device)
        self._active = torch.ones(rows, dtype=torch.bool, device=self.device)

    @property
    def current(self) -> Tensor:
        """[N]: the numbers of the samples that the rows are at."""
        return self.circle[self.place]

    def reset(self, seed: int | None = None) -> Obs:
        self.place.copy_(self._first)
        return self._seen()

    def step(self, action: Tensor) -> Step:
        self.place.add_(1).remainder_(len(self.circle))
        obs = self._seen()
        return Step(obs=obs, reward=self._reward, terminated=self.samples.begins[self.current], truncated=~self._active,
                    final_obs=obs, active=self._active, metrics={})

    def _seen(self) -> Obs:
        now = self.current
        return map_obs(lambda x: x[now], self.samples.obs)

    def save_state(self) -> dict[str, Tensor]:
        return {PLACE: self.place}

    def load_state(self, state: dict[str, Tensor]) -> Obs:
        if state[PLACE].shape != self.place.shape:
            raise EnvError(f"the demonstrations were read at {len(state[PLACE]):,} places, and now are at {self.num_rows:,} "
                           "(env.count)")
        saved = Saved("env", state)
        saved.is_like(PLACE, self.place)
        saved.is_between(PLACE, 0, len(self.circle) - 1)
        self.place.copy_(state[PLACE])
        return self._seen()


class Demonstrated(Labeller):
    """Labels each step of a playback with what was done there, and whether that is known."""

    def __init__(self, playback: Playback) -> None:
        self.playback = playback
        self.shapes = {ACTION: tuple(playback.samples.action.shape[1:]), KNOWN: ()}

    def label(self, obs: Obs, memory: State) -> tuple[Mapping[str, Tensor], State]:
        now, samples = self.playback.current, self.playback.samples
        return {ACTION: samples.action[now], KNOWN: samples.known[now]}, memory
