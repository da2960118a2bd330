"""Scripts may set attributes of a Learner while it runs; they take effect from the next iteration on.

Attributes are plain numbers under rlgym-ppo's names. Before every iteration they are compared with their last values: a change
is applied, or refused where it is not possible. So it does not matter where, when, or through which object they are set.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wavedash.compat.rlgym_ppo.ppo.optimizer import LiveAdam
from wavedash.errors import UserError
from wavedash.ppo.listener import IterationReport, Listener

if TYPE_CHECKING:
    from wavedash.compat.rlgym_ppo.learner import Learner
    from wavedash.ppo.learner import Learner as OurLearner

OF_LEARNER = {
    "timestep_limit": "timestep_limit", "save_every_ts": "save_every_ts", "n_checkpoints_to_keep": "n_checkpoints_to_keep",
    "gae_gamma": "gae_gamma", "gae_lambda": "gae_lambda",
    "ts_per_epoch": "ts_per_iteration", "exp_buffer_size": "exp_buffer_size", "standardize_returns": "standardize_returns",
}
OF_PPO = {"ent_coef": "ppo_ent_coef", "clip_range": "ppo_clip_range", "n_epochs": "ppo_epochs", "batch_size": "ppo_batch_size",
          "mini_batch_size": "ppo_minibatch_size"}
"""Names of attributes, and of the arguments that set them"""
FIXED = ("ts_per_iteration", "exp_buffer_size", "standardize_returns")
"""Arguments that decide the size and layout of memory"""
OURS = __name__.rpartition(".")[0]
SMALLEST_RATE = 1e-30
"""A schedule may end at zero, which our configuration does not allow."""


class LiveSettings(Listener):
    """Holds the last values of the arguments of one Learner. It is the last listener, so that it sees what others set."""

    def __init__(self, owner: Learner) -> None:
        self._owner = owner
        self._last = self._current()
        self._networks = owner.ppo_learner.policy, owner.ppo_learner.value_net

    def on_iteration(self, learner: OurLearner, report: IterationReport) -> None:
        self.apply()

    def apply(self) -> None:
        """Applies what was set since the last call, from the next iteration on. UserError: it cannot be changed."""
        owner = self._owner
        self._refuse_replaced()
        now = self._current()
        changed = {name for name, value in now.items() if value != self._last[name]}
        for name in changed & set(FIXED):
            raise UserError(f"{name} was changed to {now[name]} after the Learner was made: it decides the size of memory. "
                            f"Pass it to the constructor: Learner(..., {name}={now[name]})")
        if changed:
            owner.change_settings(now)
            self._last = now
        owner.reporter.logger, owner.reporter.run.run = owner.metrics_logger, owner.wandb_run

    def _current(self) -> dict[str, Any]:
        owner, ppo = self._owner, self._owner.ppo_learner
        rates = {name: max(_rate(optimizer), SMALLEST_RATE)
                 for name, optimizer in (("policy_lr", ppo.policy_optimizer), ("critic_lr", ppo.value_optimizer))}
        return {**{argument: getattr(owner, name) for name, argument in OF_LEARNER.items()},
                **{argument: getattr(ppo, name) for name, argument in OF_PPO.items()}, **rates}

    def _refuse_replaced(self) -> None:
        """Raises UserError if a script has replaced what it could replace in rlgym-ppo, but what is never called or trained
        here."""
        owner = self._owner
        for part, name in ((owner, "add_new_experience"), (owner.agent, "collect_timesteps"), (owner.ppo_learner, "learn")):
            if not getattr(getattr(part, name), "__module__", "").startswith(OURS):
                raise UserError(f"{type(part).__name__}.{name} was replaced, but it is never called here: collecting, "
                                "advantages and updates are done by Wavedash. Remove it, and change settings in a "
                                "metrics_logger, which is called once an iteration")
        policy, value_net = self._networks
        for part, name, ours in ((owner.ppo_learner, "policy", policy), (owner.ppo_learner, "value_net", value_net),
                                 (owner.agent, "policy", policy)):
            now = getattr(part, name)
            if now is not ours and getattr(now, "_orig_mod", None) is not ours:  # the latter is by torch.compile
                raise UserError(f"{type(part).__name__}.{name} was replaced by a {type(now).__name__}, which would not be "
                                "trained. Load weights into the network that is there (load_state_dict), set its layers with "
                                "policy_layer_sizes and critic_layer_sizes, or train your own network with wavedash.Learner")


def _rate(optimizer: Any) -> float:
    if not isinstance(optimizer, LiveAdam):
        raise UserError(f"an optimiser was replaced by a {type(optimizer).__name__}, which would not step. Set the learning "
                        "rate of the one that is there: learner.update_learning_rate(...), or param_groups[0]['lr']")
    return optimizer.rate
