"""PPOLearner holds networks, optimisers and settings of the update, under rlgym-ppo's names.

`learner.ppo_learner` is one around our learner's own networks. One that a script makes (to play what was trained) has networks
of its own: it loads and saves, and does not learn.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import gymnasium
import torch
from torch import Tensor

from wavedash.compat.rlgym_ppo.ppo.continuous_policy import ContinuousPolicy
from wavedash.compat.rlgym_ppo.ppo.discrete_policy import DiscreteFF
from wavedash.compat.rlgym_ppo.ppo.multi_discrete_policy import MultiDiscreteFF
from wavedash.compat.rlgym_ppo.ppo.network import Network, own_copy
from wavedash.compat.rlgym_ppo.ppo.optimizer import LiveAdam
from wavedash.compat.rlgym_ppo.ppo.value_estimator import ValueEstimator
from wavedash.compat.rlgym_ppo.read_checkpoint import FILES
from wavedash.compat.rlgym_ppo.util.torch_functions import MapContinuousToAction
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic

if TYPE_CHECKING:
    from wavedash.ppo.learner import Learner

MULTI_DISCRETE, CONTINUOUS = 1, 2
"""Numbers of kinds of policies in rlgym-ppo; any other is one choice among n."""


class PPOLearner:
    """Networks, optimisers and settings. The settings (`ent_coef`, `clip_range`, `n_epochs`, `batch_size`, `mini_batch_size`)
    may be changed at any time and take effect from the next iteration on."""

    def __init__(self, obs_space_size: int, act_space_size: int, policy_type: Any, policy_layer_sizes: Sequence[int],
                 critic_layer_sizes: Sequence[int], continuous_var_range: tuple[float, float], batch_size: int, n_epochs: int,
                 policy_lr: float, critic_lr: float, clip_range: float, ent_coef: float, mini_batch_size: int,
                 device: torch.device | str) -> None:
        self.policy: Network
        if policy_type == CONTINUOUS:
            outputs = 2 * act_space_size
            self.policy = ContinuousPolicy(obs_space_size, outputs, policy_layer_sizes, device, *continuous_var_range)
        elif policy_type == MULTI_DISCRETE:
            self.policy = MultiDiscreteFF(obs_space_size, policy_layer_sizes, device)
        else:
            self.policy = DiscreteFF(obs_space_size, act_space_size, policy_layer_sizes, device)
        self.value_net = ValueEstimator(obs_space_size, critic_layer_sizes, device)
        self.policy_optimizer: torch.optim.Optimizer = torch.optim.Adam(self.policy.parameters(), policy_lr)
        self.value_optimizer: torch.optim.Optimizer = torch.optim.Adam(self.value_net.parameters(), critic_lr)
        self._set(device, batch_size, mini_batch_size, n_epochs, clip_range, ent_coef)

    def _set(self, device: torch.device | str, batch_size: int, mini_batch_size: int, n_epochs: int, clip_range: float,
             ent_coef: float) -> None:
        self.device = device
        self.batch_size, self.mini_batch_size, self.n_epochs = batch_size, mini_batch_size, n_epochs
        self.clip_range, self.ent_coef = clip_range, ent_coef
        self._earlier_updates = 0  # those that the optimiser has not counted

    @classmethod
    def around(cls, learner: Learner, **settings: Any) -> Self:
        """Makes a view of the networks and moments that `learner` trains."""
        view = cls.__new__(cls)
        policy, optimizer = learner.policy, learner.updater.optimizer
        view.policy, view.value_net = policy_of(policy), value_net_of(policy)
        view.policy_optimizer = LiveAdam(view.policy, optimizer, "actor")
        view.value_optimizer = LiveAdam(view.value_net, optimizer, "critic")
        view._set(**settings)
        return view

    @property
    def cumulative_model_updates(self) -> int:
        optimizer = self.policy_optimizer
        return self._earlier_updates + (optimizer.updates if isinstance(optimizer, LiveAdam) else 0)

    @cumulative_model_updates.setter
    def cumulative_model_updates(self, number: int) -> None:
        self._earlier_updates += int(number) - self.cumulative_model_updates

    def learn(self, exp: Any) -> NoReturn:
        """Raises UserError."""
        raise UserError("ppo_learner.learn() cannot be called from outside, and a loop of your own around it cannot be run: "
                        "call learner.learn(), and change what you want to change in a metrics_logger, which is called once "
                        "an iteration")

    def save_to(self, folder_path: str | Path) -> None:
        """Writes the four files that rlgym-ppo reads, and nothing else: `learner.save` writes a whole checkpoint."""
        os.makedirs(folder_path, exist_ok=True)
        for name, part in self._parts().items():
            torch.save(own_copy(part.state_dict()), Path(folder_path) / FILES[name])

    def load_from(self, folder_path: str | Path) -> None:
        """Loads networks and optimisers, but not counters and statistics, which `learner.load` loads too."""
        for name, part in self._parts().items():
            path = Path(folder_path) / FILES[name]
            if not path.is_file():
                raise UserError(f"{path} is not there: name a folder that rlgym-ppo, learner.save or save_to wrote")
            try:
                part.load_state_dict(torch.load(path, map_location=self.policy.device, weights_only=True))
            except Exception as error:  # a file can be wrong in many ways
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                raise UserError(f"{path} does not hold what fits here ({reason}); name another folder") from error

    def _parts(self) -> dict[str, Any]:
        return {"policy": self.policy, "value": self.value_net, "policy_optimizer": self.policy_optimizer,
                "value_optimizer": self.value_optimizer}


def policy_of(policy: ActorCritic) -> Network:
    """Returns the actor under rlgym-ppo's names."""
    space, layers, normalize = policy.action_space, layers_of(policy, "actor"), _normalizing(policy)
    if isinstance(space, gymnasium.spaces.Box):
        continuous = ContinuousPolicy.around(layers, normalize)
        continuous.affine_map = MapContinuousToAction(*policy.config.std_range)
        return continuous
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        several = MultiDiscreteFF.around(layers, normalize)
        several.splits = [int(n) for n in space.nvec.reshape(-1)]
        return several
    return DiscreteFF.around(layers, normalize)


def value_net_of(policy: ActorCritic) -> ValueEstimator:
    return ValueEstimator.around(layers_of(policy, "critic"), _normalizing(policy))


def layers_of(policy: ActorCritic, side: str) -> list[torch.nn.Linear]:
    """Returns the layers from the observation to the output."""
    hidden: Any = policy.trunks[side].body.layers
    last: Any = policy.critic["head"]
    if side == "actor":
        last = policy.head.outputs if isinstance(policy.action_space, gymnasium.spaces.Box) else policy.head.logits
    return [*hidden, last]


def _normalizing(policy: ActorCritic) -> Any:
    return None if policy.normalizer is None else partial(_normalized, policy)


def _normalized(policy: ActorCritic, rows: Tensor) -> Tensor:
    """Normalises observations as in training."""
    normalized: Any = policy.normalize(rows.reshape(-1, *(policy.observation_space.shape or ())))
    return normalized.reshape(rows.shape)

