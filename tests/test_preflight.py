"""`wavedash config check` and `wavedash train` agree on what is valid, and refuse the rest with the same message."""
from __future__ import annotations

import importlib.util
import re
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from wavedash.config_file import load_config, preset_names
from wavedash.errors import UserError
from wavedash.preflight import check_run
from wavedash.rocket.parts import Action, Ending, Observation, Reward, Start
from wavedash.training import train

HERE = "tests.test_preflight"
SHORT = ["total_steps=32", "ppo.rollout_steps=8", "ppo.epochs=1", "ppo.minibatch_size=8", "policy.hidden=[8]", "env.count=2",
         "report.console=off", "report.tensorboard=false", "device=cpu"]


class AnySpaces(gymnasium.Env):
    """It has any spaces, and its observations are samples of them."""

    def __init__(self, observation: Any = None, action: Any = None, shows: Any = None) -> None:
        self.observation_space = observation or spaces.Box(-1, 1, (3,))
        self.action_space = action or spaces.Discrete(3)
        self.shows = shows

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._look(), {}

    def step(self, action):
        return self._look(), 0.0, False, False, {}

    def _look(self):
        return self.observation_space.sample() if self.shows is None else self.shows


def unbounded():
    return AnySpaces(action=spaces.Box(-np.inf, np.inf, (2,)))


def masked(size: int = 3, continuous: bool = False, zeros: bool = False):
    seen = spaces.Dict({"obs": spaces.Box(-1, 1, (3,)), "action_mask": spaces.MultiBinary(size)})
    shown = {"obs": np.zeros(3, np.float32), "action_mask": np.full(size, not zeros, np.int8)}
    return AnySpaces(seen, spaces.Box(-1, 1, (2,)) if continuous else None, shown)


def text():
    return AnySpaces(spaces.Text(3))


def wrong_shape():
    return AnySpaces(shows=np.zeros(4, np.float32))


def raises():
    raise ZeroDivisionError("no such level")


def old_reset():
    class Old(AnySpaces):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0]

    return Old(shows=np.zeros(3, np.float32))


class WideReward(Reward):
    def __call__(self, state, previous, events):
        return state.cars.position


class RaisingReward(Reward):
    def __call__(self, state, previous, events):
        return state.cars.posture


class WideEnding(Ending):
    def __call__(self, state, previous, events):
        return state.cars.present


class ShortObservation(Observation):
    def size(self, seats):
        return 7

    def build(self, state, controls, stepped=True):
        return torch.zeros(state.arenas, state.seats, 6)


class FlatAction(Action):
    space, ticks, delay = spaces.Discrete(3), 8, 0

    def parse(self, action, state):
        return torch.zeros(state.arenas, 8)


class WideMask(Action):
    space, ticks, delay = spaces.Discrete(3), 8, 0

    def parse(self, action, state):
        return torch.zeros(state.arenas, state.seats, 8)

    def mask(self, state):
        return torch.ones(state.arenas, state.seats, 4)


class Underground(Start):
    def write(self, state, generator):
        state.ball.position[:, 2] = -100.0


BROKEN = {
    # The run
    "a name that is no folder's": ("cartpole", ["name=a/b"], "name 'a/b' cannot name a folder"),
    "an empty name": ("cartpole", ["name="], "expected a valid string|cannot name a folder"),
    "a device that is not there": ("cartpole", ["device=cuda:99"], "device cuda:99 cannot be used"),
    "a device that does not exist": ("cartpole", ["device=tpu"], "there is no device 'tpu'"),
    "sequences that do not divide the rollout": ("cartpole-memory", ["ppo.rollout_steps=30", "policy.memory.sequence=16"],
                                                 "must be a multiple of policy.memory.sequence=16"),
    "more workers than environments": ("cartpole", ["env.workers=3", "env.groups=1"], "leaves workers without an environment"),
    "more groups than workers": ("cartpole", ["env.workers=1", "env.groups=2"], "needs at least as many env.workers"),
    # Gymnasium
    "an unknown id": ("cartpole", ["env.id=CartPoel-v1"], "no environment 'CartPoel-v1'.*did you mean"),
    "an unknown version": ("cartpole", ["env.id=CartPole-v99"], "CartPole-v99"),
    "an option that the environment does not have": (
        "cartpole", ["env.kwargs={speed: 3}"], r"env.kwargs=\{'speed': 3\} raised T"),
    "a module that is not there": ("own", ["env.factory=nowhere:make"], "cannot import 'nowhere'"),
    "a function that is not there": ("own", [f"env.factory={HERE}:rises"], "no callable 'rises'.*did you mean 'raises'"),
    "a path without a colon": ("own", ["env.factory=nowhere"], "is not an import path"),
    "a factory that raises": ("own", [f"env.factory={HERE}:raises"], "raised ZeroDivisionError: no such level"),
    "a module that raises": (
        "own", ["env.factory=tests.broken_module:make"], "importing 'tests.broken_module'.*raised ValueE"),
    "a factory of something else": ("own", ["env.factory=builtins:dict"], "it must return a gymnasium.Env"),
    "observations of text": ("own", [f"env.factory={HERE}:text"], "observation space '' is Text"),
    "an observation of another shape": (
        "own", [f"env.factory={HERE}:wrong_shape"], r"has shape \(4,\) but its space says \(3,\)"),
    "a reset of old": ("own", [f"env.factory={HERE}:old_reset"], r"reset\(\) must return \(observation, info\)"),
    "a wrapper that is not there": ("cartpole", ["env.wrappers=[TimeLimitt]"], "no wrapper 'TimeLimitt'; did you mean"),
    "a wrapper that does harm": ("cartpole", ["env.wrappers=[NormalizeReward]"], "NormalizeReward is not for training"),
    # The policy
    "beta without bounds": (
        "own", [f"env.factory={HERE}:unbounded", "policy.distribution=beta"], "needs an action space with b"),
    "tanh without bounds": (
        "own", [f"env.factory={HERE}:unbounded", "policy.distribution=tanh"], "needs an action space with b"),
    "an encoder of a key that is not there": ("cartpole", ["policy.encoders={camera: {kind: conv}}"], r"key\(s\) camera"),
    "an actor that sees nothing": ("cartpole", ["policy.actor_keys=[]"], "must see something"),
    "an actor of a key that is not there": ("cartpole", ["policy.actor_keys=[camera]"], r"key\(s\) camera"),
    "a picture that is none": ("cartpole", ["policy.encoders={obs: {kind: conv}}"], "kind=conv needs a picture"),
    "a mask of another size": ("own", [f"env.factory={HERE}:masked", "env.kwargs={size: 4}"], r"has the shape \(4,\), but"),
    "a mask on continuous actions": ("own", [f"env.factory={HERE}:masked", "env.kwargs={continuous: true}"], "are continuous"),
    "a mask that allows nothing": (
        "own", [f"env.factory={HERE}:masked", "env.kwargs={zeros: true}"], "environment 0.*no action"),
    # Rocket League
    "an unknown reward": ("rocket-1v1", ["env.rocket.rewards={goll: 1}"], "no reward 'goll'; did you mean 'goal'"),
    "an unknown option of a reward": (
        "rocket-1v1", ["env.rocket.rewards={goal: {weight: 1, colour: red}}"], "no option 'colour'"),
    "a reward without a weight": ("rocket-1v1", ["env.rocket.rewards={goal: {}}"], "reward 'goal' needs a weight"),
    "a weight that is not finite": (
        "rocket-1v1", ["env.rocket.rewards={goal: {weight: .nan}}"], "reward 'goal' needs a weight"),
    "no reward": ("rocket-1v1", ["env.rocket.rewards={}"], "rewards need at least one"),
    "a reward of another kind": (
        "rocket-1v1", [f"env.rocket.rewards={{'{HERE}:WideEnding': 1}}"], "cannot be used as a reward"),
    "a reward from nowhere": ("rocket-1v1", ["env.rocket.rewards={'nowhere:Mine': 1}"], "cannot import 'nowhere'"),
    "a reward of another shape": ("rocket-1v1", [f"env.rocket.rewards={{'{HERE}:WideReward': 1}}"],
                                  r"reward '.*WideReward': __call__\(\) returned \[2, 2, 3\] .* not a tensor \[2, 2\]"),
    "a reward that raises": ("rocket-1v1", [f"env.rocket.rewards={{'{HERE}:RaisingReward': 1}}"],
                             "reward '.*RaisingReward' raised AttributeError: .*posture"),
    "an unknown start": ("rocket-1v1", ["env.rocket.starts={nowhere: 1}"], "no start 'nowhere'"),
    "no start": ("rocket-1v1", ["env.rocket.starts={}"], "mixture of starts needs weights"),
    "a start of negative weight": ("rocket-1v1", ["env.rocket.starts={kickoff: -1}"], "weight of 0 or more, not -1"),
    "frames that are not there": (
        "rocket-1v1", ["env.rocket.starts={replay_frames: {path: none.npz}}"], "no such file of frames"),
    "a start below the floor": ("rocket-1v1", [f"env.rocket.starts={{'{HERE}:Underground': 1}}"], "ball.position is outside"),
    "a start with impossible options": (
        "rocket-1v1", ["env.rocket.starts={fuzzed_kickoff: {distance: 9000}}"], "outside the ar"),
    "an unknown ending": ("rocket-1v1", ["env.rocket.endings={never: {}}"], "no ending 'never'"),
    "an option of the wrong type": ("rocket-1v1", ["env.rocket.endings={time_out: {seconds: soon}}"],
                                    "ending 'time_out' cannot be made with seconds='soon'"),
    "an ending of another shape": (
        "rocket-1v1", [f"env.rocket.endings={{'{HERE}:WideEnding': {{}}}}"], r"returned \[2, 2\] .*\[2\]"),
    "an unknown observation": ("rocket-1v1", ["env.rocket.observation=blind"], "no observation 'blind'"),
    "an observation of another size": (
        "rocket-1v1", [f"env.rocket.observation='{HERE}:ShortObservation'"], r"\[2, 2, 6\] .*2, 7\]"),
    "two observations": ("rocket-1v1", ["env.rocket.observation={default_obs: {}, advanced_obs_plus: {}}"], "takes one name"),
    "an unknown action": ("rocket-1v1", ["env.rocket.action=joystick"], "no action 'joystick'"),
    "an action of another shape": ("rocket-1v1", [f"env.rocket.action='{HERE}:FlatAction'"], r"parse\(\) returned \[2, 8\]"),
    "a mask of another size than the action": ("rocket-1v1", [f"env.rocket.action='{HERE}:WideMask'"], r"shape \(4,\), but"),
    "no car": ("rocket-1v1", ["env.rocket.blue=0", "env.rocket.orange=0"], "at least one car"),
}
SOUND = {
    "cartpole": ("cartpole", []),
    "a policy with memory": ("cartpole-memory", ["policy.memory.sequence=8"]),
    "a minibatch larger than the rollout": ("cartpole", ["ppo.minibatch_size=100000"]),
    "one's own environment": ("own", [f"env.factory={HERE}:AnySpaces"]),
    "frames and wrappers": ("cartpole", ["env.frame_stack=3", "env.wrappers=[{ClipReward: {max_reward: 1.0}}]"]),
    "a mask": ("own", [f"env.factory={HERE}:masked"]),
    "rocket league": ("rocket-1v1", ["env.rocket.endings={}", "env.rocket.starts={random: 1, kickoff: 0}"]),
    "rocketsim": ("rocket-1v1", ["env.rocket.simulator=rocketsim", "env.rocket.action=continuous", "policy.distribution=beta"]),
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The messages of `check` and of `train`, or None from the one that accepts the configuration."""
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
    own = tmp_path / "own.yaml"
    own.write_text("name: own\nenv: {factory: x}\n")

    def verdicts(source: str, overrides: list[str]) -> list[str | None]:
        arguments = (str(own) if source == "own" else source, [*SHORT, *overrides])
        return [_message(lambda: check_run(load_config(*arguments))), _message(lambda: train(arguments[0], *arguments[1]))]

    return verdicts


def _message(call) -> str | None:
    try:
        call()
    except UserError as error:
        return str(error)
    return None


@pytest.mark.parametrize("case", BROKEN)
def test_what_train_refuses_check_refuses_in_the_same_words(case, run):
    source, overrides, says = BROKEN[case]
    checked, trained = run(source, overrides)
    assert checked is not None and trained is not None
    assert _without_seed(checked) == _without_seed(trained)
    assert re.search(says, checked, re.DOTALL), checked


def _without_seed(message: str) -> str:
    """The message without the seed of an episode, which differs between runs."""
    return re.sub(r"\(seed \d+\)", "", message)


@pytest.mark.parametrize("case", SOUND)
def test_what_check_calls_valid_trains(case, run):
    assert run(*SOUND[case]) == [None, None]


def test_a_run_that_needs_wandb_is_refused_if_it_is_not_installed(run, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "wandb" else find(name, *rest))
    checked, trained = run("cartpole", ["report.wandb=true"])
    assert checked == trained and "needs the wandb package" in checked


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_valid(name):
    message = _message(lambda: check_run(load_config(name, ["device=cpu"])))
    if message and "needs a package that is not installed" in message:
        pytest.skip(message)
    if load_config(name).distill is not None:  # its teacher is a run that is to be trained before
        assert message is not None and "no checkpoint found" in message
        return
    assert message is None
