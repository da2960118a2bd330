"""RLGym environments: real ones on RocketSim, and a toy whose every number is known. Worker processes import this module."""
from __future__ import annotations

import random
from typing import Any

import gymnasium
import numpy as np
from rlgym.api import ActionParser, DoneCondition, ObsBuilder, RewardFunction, RLGym, StateMutator, TransitionEngine


def one_against_one(padding: int | None = None) -> RLGym:
    return rocket(1, 1, padding=padding)


def rocket(*team_sizes: int, padding: int | None = None, timeout: float = 0.6, **options: Any) -> RLGym:
    """A kickoff of `blue, orange` players, or of equal teams of 1 to `n` if one number is given."""
    from rlgym.rocket_league.action_parsers import LookupTableAction, RepeatAction
    from rlgym.rocket_league.done_conditions import AnyCondition, GoalCondition, NoTouchTimeoutCondition, TimeoutCondition
    from rlgym.rocket_league.obs_builders import DefaultObs
    from rlgym.rocket_league.reward_functions import CombinedReward, GoalReward, TouchReward
    from rlgym.rocket_league.sim import RocketSimEngine
    from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator, KickoffMutator, MutatorSequence

    teams = FixedTeamSizeMutator(*team_sizes) if len(team_sizes) == 2 else RandomTeamSize(*team_sizes)
    return RLGym(
        state_mutator=MutatorSequence(teams, KickoffMutator(), Scattered()),
        obs_builder=options.pop("obs_builder", DefaultObs(zero_padding=padding)),
        action_parser=RepeatAction(LookupTableAction(), repeats=8),
        reward_fn=CombinedReward((GoalReward(), 10.0), (TouchReward(), 1.0)),
        transition_engine=RocketSimEngine(),
        termination_cond=GoalCondition(),
        truncation_cond=AnyCondition(NoTouchTimeoutCondition(timeout), TimeoutCondition(3 * timeout)),
        **options,
    )


class RandomTeamSize(StateMutator):
    """Teams are equal, of 1 to `largest` players, drawn from numpy's global generator."""

    def __init__(self, largest: int) -> None:
        self.largest = largest

    def apply(self, state: Any, shared_info: dict) -> None:
        from rlgym.rocket_league.state_mutators import FixedTeamSizeMutator

        size = np.random.randint(1, self.largest + 1)
        FixedTeamSizeMutator(size, size).apply(state, shared_info)


class Scattered(StateMutator):
    """The boost of every car is drawn from numpy's generator, so that no two episodes begin alike."""

    def apply(self, state: Any, shared_info: dict) -> None:
        for car in state.cars.values():
            car.boost_amount = float(np.random.uniform(0, 100))


# --- a toy: walkers on a line -----------------------------------------------------------------------------------------

class Walkers(TransitionEngine):
    """The state is {agent: [where it began, steps so far, its last action]}."""

    max_num_agents = 8
    config: dict = {}  # noqa: RUF012 (RLGym's name)

    def __init__(self) -> None:
        self._state: dict[str, list[float]] = {}

    @property
    def agents(self) -> list[str]:
        return list(self._state)

    @property
    def state(self) -> Any:
        return self._state

    def create_base_state(self) -> Any:
        return {}

    def set_state(self, desired_state: Any, shared_info: dict) -> Any:
        self._state = desired_state
        return self._state

    def step(self, actions: dict, shared_info: dict) -> Any:
        assert actions.keys() == self._state.keys(), "there is an action for every agent that is present, and for no other"
        for agent, action in actions.items():
            begun, steps, _ = self._state[agent]
            self._state[agent] = [begun, steps + 1, float(np.sum(action))]
        for agent in [a for a, (_, steps, _) in self._state.items() if steps >= shared_info.get("gone", {}).get(a, 99)]:
            del self._state[agent]
        return self._state

    def close(self) -> None:
        pass


class Line(StateMutator):
    """Puts walkers at places that are drawn from both global generators."""

    def __init__(self, names: tuple[str, ...], fewest: int, gone: dict[str, int]) -> None:
        self.names, self.fewest, self.gone = names, fewest, gone

    def apply(self, state: Any, shared_info: dict) -> None:
        shared_info["gone"] = self.gone
        count = self.fewest + np.random.randint(len(self.names) - self.fewest + 1)
        for name in self.names[:count]:
            state[name] = [random.randrange(100) + float(np.random.randint(100)) / 100, 0.0, -1.0]


class Place(ObsBuilder):
    def __init__(self, space: Any) -> None:
        self.space = space

    def get_obs_space(self, agent: str) -> Any:
        return self.space

    def reset(self, agents: list, initial_state: Any, shared_info: dict) -> None:
        pass

    def build_obs(self, agents: list, state: Any, shared_info: dict) -> dict:
        return {agent: self.build(state[agent]) for agent in agents}

    def build(self, walker: list[float]) -> Any:
        if isinstance(self.space, gymnasium.spaces.Dict):
            return {"flat": np.array(walker), "kind": int(walker[0]) % 4}
        if isinstance(self.space, gymnasium.spaces.Discrete) or self.space == ("discrete", 4):
            return int(walker[0]) % 4
        return np.array(walker)


class NoisyPlace(Place):
    """Every observation draws from numpy's global generator."""

    def build(self, walker: list[float]) -> Any:
        return np.array([*walker[:2], np.random.normal()])


class Steps(ActionParser):
    def __init__(self, space: Any, received: list | None) -> None:
        self.space, self.received = space, received

    def get_action_space(self, agent: str) -> Any:
        return self.space

    def reset(self, agents: list, initial_state: Any, shared_info: dict) -> None:
        pass

    def parse_actions(self, actions: dict, state: Any, shared_info: dict) -> dict:
        if self.received is not None:
            self.received.append(actions)
        return actions


class StartReward(RewardFunction):
    """The reward of each step is the place where the walker began; or 1 for one action and 0 for the others."""

    def __init__(self, action: int | None) -> None:
        self.action = action

    def reset(self, agents: list, initial_state: Any, shared_info: dict) -> None:
        pass

    def get_rewards(self, agents: list, state: Any, is_terminated: dict, is_truncated: dict, shared_info: dict) -> dict:
        return {agent: state[agent][0] if self.action is None else float(state[agent][2] == self.action) for agent in agents}


class After(DoneCondition):
    """An agent is done after so many steps, and says so at every later step too."""

    def __init__(self, steps: dict[str, int]) -> None:
        self.steps = steps

    def reset(self, agents: list, initial_state: Any, shared_info: dict) -> None:
        pass

    def is_done(self, agents: list, state: Any, shared_info: dict) -> dict:
        return {agent: state[agent][1] >= self.steps.get(agent, 99) for agent in agents}


NAMES = ("ann", "bob", "cat")


def walkers(names: tuple[str, ...] = NAMES, fewest: int | None = None, terminated: dict | None = None,
            truncated: dict | None = None, gone: dict | None = None, observed: Any = ("real", 3),
            action: Any = ("discrete", 5), received: list | None = None, noisy: bool = False,
            paid_action: int | None = None) -> RLGym:
    """`terminated`, `truncated` and `gone` say after how many steps, by agent. By default ann terminates after 2 steps, bob is
    truncated after 3, cat terminates after 5."""
    return RLGym(
        state_mutator=Line(names, len(names) if fewest is None else fewest, gone or {}),
        obs_builder=(NoisyPlace if noisy else Place)(observed),
        action_parser=Steps(action, received),
        reward_fn=StartReward(paid_action),
        transition_engine=Walkers(),
        termination_cond=After({"ann": 2, "cat": 5} if terminated is None else terminated),
        truncation_cond=After({"bob": 3} if truncated is None else truncated),
    )


def changing_teams() -> RLGym:
    return walkers(fewest=1)


def noisy_walkers() -> RLGym:
    return walkers(fewest=1, noisy=True)


def generous() -> RLGym:
    return walkers(fewest=1, paid_action=2)


def two_against_two() -> RLGym:
    """Games of 1v1 or 2v2, with padded observations."""
    return rocket(2, padding=2)
