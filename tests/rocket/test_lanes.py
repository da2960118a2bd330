"""Lanes of Rocket League: a share of the arenas has starts, rewards, endings and measures of its own."""
from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.test_env import random_actions, simulated
from wavedash.config import RocketConfig
from wavedash.config_file import load_config
from wavedash.errors import UserError
from wavedash.evaluate.matches import Match
from wavedash.rocket import names
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.line_up import Opponents
from wavedash.rocket.live import change_tasks, live_keys
from wavedash.rocket.measures import Turtle
from wavedash.rocket.parts import Ending, Reward, Start
from wavedash.rocket.players import Idle
from wavedash.rocket.rewards.measures import on_roof
from wavedash.rocket.task import Task

HERE = "tests.rocket.test_lanes"
ARENAS = 12
MAIN, TURTLE, AIR = range(3)
TASK: dict[str, Any] = {
    "rewards": {f"{HERE}:Pay": 1.0, "touch": 1.0},
    "starts": {"kickoff": 1.0},
    "endings": {"time_out": {"seconds": 0.6}},
    "measures": ["turtle"],
    "lanes": {
        "turtle": {"share": 0.25, "most": 0.5, "starts": {"turtle": 1.0}, "rewards": {f"{HERE}:Pay": 10.0, "recovery": 1.0},
                   "endings": {"time_out": {"seconds": 0.2}}, "measures": ["turtle"]},
        "air": {"share": 0.25, "starts": {"air_dribble": 1.0}, "rewards": {f"{HERE}:Pay": {"weight": 1.0, "coins": 5}},
                "measures": [{"turtle": {"window": 0.1}}, {"air_dribble": {"least": 1}}]},
    },
}
"""Of twelve arenas, six are set aside for the lane turtle, of which three play it, and three for the lane air."""
LENGTHS = {MAIN: 9, TURTLE: 3, AIR: 9}
"""Steps of an episode, 15 a second; the lane air has the endings of the main task"""


class Pay(Reward):
    """Pays so many coins in every step."""

    def __init__(self, coins: float = 1.0) -> None:
        self.coins = coins

    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        return torch.full_like(state.cars.boost, self.coins)


class Seat(Reward):
    """Pays every car the number of its seat."""

    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        return torch.arange(state.seats).expand(state.shape).float()


class Stubborn(Ending):
    """Never ends; has an option that cannot change while a run runs."""

    def __init__(self, truncates: bool = False) -> None:
        self.truncates = truncates

    def __call__(self, state: Any, previous: Any, events: Any) -> Tensor:
        return torch.zeros_like(state.game.tick, dtype=torch.bool)


def task(**changes: Any) -> RocketConfig:
    return RocketConfig.model_validate({**TASK, **changes})


def with_share(lane: str, share: float) -> RocketConfig:
    lanes = {name: {**own, **({"share": share} if name == lane else {})} for name, own in TASK["lanes"].items()}
    return task(lanes=lanes)


def arenas(config: RocketConfig | None = None, simulator: str = "warp", count: int = ARENAS, groups: int = 1) -> RocketEnv:
    if simulator == "rocketsim":
        pytest.importorskip("RocketSim")
    rocket = (config or task()).model_copy(update={"simulator": simulator})
    made = load_config("rocket-1v1", [f"env.count={count}", f"env.groups={groups}"]).env.model_copy(update={"rocket": rocket})
    return RocketEnv.configured(made)


def lanes_of(env: RocketEnv) -> Tensor:
    """[E]"""
    return torch.cat([each.lanes.lane for each in env.tasks])


def in_the_air(env: RocketEnv) -> Tensor:
    return torch.cat([shard.state.ball.position[:, 2] > 400 for shard in env._shards])


def turtled(env: RocketEnv) -> Tensor:
    return torch.cat([on_roof(shard.state.cars).any(-1) for shard in env._shards])


@pytest.mark.parametrize(("simulator", "groups"), [("warp", 1), ("warp", 2), ("rocketsim", 1)])
def test_every_arena_has_the_task_of_its_lane(simulator: str, groups: int) -> None:
    env = arenas(simulator=simulator, groups=groups)
    env.reset(0)
    halves = [TURTLE] * 2 + [MAIN] + [AIR] * 1 + [MAIN] * 2  # of six arenas, 1.5 are rounded to 2, and the ends to 3 and 4
    lane = torch.tensor([TURTLE] * 3 + [MAIN] * 3 + [AIR] * 3 + [MAIN] * 3 if groups == 1 else 2 * halves)
    assert tuple(env.lanes) == ("turtle", "air")
    age = torch.zeros_like(lane)
    began = torch.zeros(3)
    for action in random_actions(env, 40):
        fresh = age == 0
        began += torch.stack([(fresh & (lane == number)).sum() for number in range(3)])
        assert torch.equal(turtled(env)[fresh], (lane == TURTLE)[fresh]), "starts"
        assert torch.equal(in_the_air(env)[fresh], (lane == AIR)[fresh])
        step = env.step(action)
        assert step.lane is not None and torch.equal(step.lane.view(-1, 2), lane.unsqueeze(-1).expand(-1, 2))
        age += 1
        done = (step.terminated | step.truncated).view(-1, 2)[:, 0]
        assert torch.equal(done, age == torch.tensor([LENGTHS[number] for number in lane.tolist()])), "endings"
        paid = {name: x.view(-1, 2) for name, x in step.metrics.items() if name.startswith("reward/")}
        rows = lane.unsqueeze(-1).expand(-1, 2)
        assert torch.equal(paid["reward/pay"], torch.tensor([1.0, 10.0, 5.0])[rows]), "weights and options"
        total = paid["reward/pay"] + paid["reward/touch"].nan_to_num(0.0) + paid["reward/recovery"].nan_to_num(0.0)
        assert torch.equal(step.reward.view(-1, 2), total)
        assert torch.equal(paid["reward/touch"].isnan(), rows != MAIN), "a lane does not have the others' rewards"
        assert torch.equal(paid["reward/recovery"].isnan(), rows != TURTLE)
        assert torch.equal(step.metrics["attempt/air_dribble"].isnan().view(-1, 2) | (rows == AIR), torch.ones_like(rows) > 0)
        assert torch.equal(step.metrics["per_minute/air_dribble_attempts"].isnan().view(-1, 2), rows != AIR)
        age[done] = 0
    assert (began > 5).all()
    env.close()


def test_a_lane_without_a_share_is_not_there() -> None:
    """The negative control: with shares of 0 everything is as in the main task alone, but for the room."""
    lanes = {name: {**own, "share": 0.0, "most": 0.25} for name, own in TASK["lanes"].items()}
    env, plain = arenas(task(lanes=lanes)), arenas(task(lanes={}))
    for each in (env, plain):
        each.reset(0)
    assert not lanes_of(env).any()
    for action in random_actions(env, 12):
        step, expected = env.step(action), plain.step(action)
        assert torch.equal(step.truncated, expected.truncated), "endings are those of the main task"
        assert step.lane is not None and not step.lane.any()
        assert torch.equal(step.metrics["reward/pay"], torch.ones(2 * ARENAS))
        assert step.metrics["reward/recovery"].isnan().all() and step.metrics["attempt/air_dribble"].isnan().all()
        assert not turtled(env)[step.truncated.view(-1, 2)[:, 0]].any()
    for each in (env, plain):
        each.close()


def test_one_lane_may_have_all_arenas_and_another_none() -> None:
    """The lane air has measures of its own, which then have no arena to look at."""
    shares = {"turtle": {"share": 1.0, "most": 1.0}, "air": {"share": 0.0}}
    env = arenas(task(lanes={name: {**own, **shares[name]} for name, own in TASK["lanes"].items()}))
    env.reset(0)
    assert (lanes_of(env) == TURTLE).all()
    for action in random_actions(env, 4):
        step = env.step(action)
        assert torch.equal(step.metrics["reward/pay"], torch.full((2 * ARENAS,), 10.0))
        assert step.metrics["attempt/air_dribble"].isnan().all(), "nobody plays the lane"
        assert step.metrics["per_minute/air_dribble_attempts"].isnan().all()
    env.close()


def test_metrics_of_a_lanes_own_measures_are_those_of_its_arenas() -> None:
    """The lane air has a turtle measure with another window than the main task: each counts in its own arenas."""
    env = arenas(task(starts={"turtle": 1.0}, endings={"time_out": {"seconds": 1.0}}))
    env.reset(1)
    shard = env._shards[0]
    everywhere = torch.ones(ARENAS, dtype=torch.bool)
    plain = {MAIN: Turtle(), AIR: Turtle(window=0.1)}
    for measure in plain.values():
        measure.bind(shard.state)
        measure.begin(shard.state, everywhere)
    lane, decided = lanes_of(env).unsqueeze(-1).expand(-1, 2), 0
    receive, expected = shard.simulator.recv, {}

    def received() -> None:
        receive()
        for number, measure in plain.items():
            outcome = measure(shard.state, shard.previous, shard.state.events)
            expected[number] = torch.where(outcome.over, outcome.success.float(), -1.0)

    shard.simulator.recv = received
    for action in random_actions(env, 45):
        step = env.step(action)
        both = torch.where(lane == AIR, expected[AIR], expected[MAIN])
        assert torch.equal(step.metrics["attempt/turtle"].nan_to_num(-1).view(-1, 2), both)
        decided += int((expected[AIR] >= 0)[lane == AIR].sum())
        for measure in plain.values():
            measure.begin(shard.state, step.truncated.view(-1, 2)[:, 0])
    env.close()


def test_a_share_counts_where_episodes_begin() -> None:
    env = arenas()
    env.reset(0)
    actions = random_actions(env, 40)
    env.step(actions[0])
    before = lanes_of(env).clone()
    change_tasks(env.tasks, with_share("turtle", 0.5))
    env.prepare()
    assert torch.equal(lanes_of(env), before), "nothing changes in the middle of an episode"
    wanted = torch.tensor([TURTLE] * 6 + [AIR] * 3 + [MAIN] * 3)
    ended = torch.zeros(ARENAS, dtype=torch.bool)
    for action in actions[1:20]:
        now = lanes_of(env).clone()
        step = env.step(action)
        done = (step.truncated | step.terminated).view(-1, 2)[:, 0]
        assert step.lane is not None and torch.equal(step.lane[::2], now), "the step was made in the lane before"
        ended |= done
        assert torch.equal(lanes_of(env), torch.where(ended, wanted, before))
        assert torch.equal(turtled(env)[done], (wanted == TURTLE)[done]), "the start is that of the new lane"
    assert ended.all()
    change_tasks(env.tasks, with_share("turtle", 0.0))
    env.prepare()
    for action in actions[20:]:
        env.step(action)
    assert torch.equal(lanes_of(env), torch.tensor([MAIN] * 6 + [AIR] * 3 + [MAIN] * 3))
    with pytest.raises(UserError, match=r"room for a share of the environments from 0 to 0\.5, not 0\.75.*most=0\.75"):
        env.tasks[0].lanes.set_shares({"turtle": 0.75})
    env.close()


def record(env: RocketEnv, actions: Tensor) -> list[Tensor]:
    kept = []
    for action in actions:
        step = env.step(action)
        assert step.lane is not None and isinstance(step.obs, dict)
        kept += [step.obs["obs"].clone(), step.reward, step.truncated, step.terminated, step.lane,
                 *(x.nan_to_num(-9) for x in step.metrics.values())]
    return kept


@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
@pytest.mark.parametrize("share", [None, 0.5])
def test_resume_is_exact_in_the_middle_of_a_lane_and_after_a_change_of_its_share(simulator: str, share: float | None) -> None:
    """A change while it runs equals a resume with the same setting."""
    config = task() if share is None else with_share("turtle", share)
    env, resumed = arenas(simulator=simulator), arenas(config, simulator)
    actions = random_actions(env, 40)
    env.reset(0)
    record(env, actions[:10])
    saved = {name: x.clone() for name, x in env.save_state().items()}
    if share is not None:
        change_tasks(env.tasks, config)
    env.prepare()
    resumed.reset(7)
    resumed.load_state(saved)
    resumed.prepare()
    first, second = record(env, actions[10:22]), record(resumed, actions[10:22])
    assert all(torch.equal(x, y) for x, y in zip(first, second, strict=True))
    again = arenas(config, simulator)
    again.load_state({name: x.clone() for name, x in env.save_state().items()})
    again.prepare()
    first, second = record(env, actions[22:]), record(again, actions[22:])
    assert all(torch.equal(x, y) for x, y in zip(first, second, strict=True))
    for each in (env, resumed, again):
        each.close()


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of starts as they are written from now on."""
    written: list[str] = []
    for name, kind in names.shipped("start").items():
        assert issubclass(kind, Start)

        def write(self: Any, state: Any, generator: Any, name: str = name, write: Any = kind.write) -> None:
            written.append(name)
            write(self, state, generator)

        monkeypatch.setattr(kind, "write", write)
    return written


def test_starts_that_cannot_be_drawn_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = {"kickoff": 1.0, "shot": 0.0, "dribble": 0.0, "wall": 0.5, "turtle": 0.0}
    lanes = {"on": {"share": 0.25, "most": 0.5, "starts": {"air_dribble": 1.0, "dribble": 1.0, "shot": 0.0}},
             "off": {"share": 0.0, "most": 0.25, "starts": {"turtle": 1.0, "save": 1.0}}}

    def config(share: float) -> RocketConfig:
        return task(starts=starts, lanes=lanes | {"off": lanes["off"] | {"share": share}})

    env, resumed = arenas(config(0.0)), arenas(config(0.25))
    env.reset(0)
    written = counted(monkeypatch)
    shard = env._shards[0]
    shard._write_beginnings()
    assert written[2:] == ["kickoff", "dribble", "wall", "air_dribble"], "after the default kick-off and the mixture itself"
    actions = random_actions(env, 24)
    for action in actions[:4]:
        env.step(action)
    saved = {name: x.clone() for name, x in env.save_state().items()}
    written.clear()
    change_tasks(env.tasks, config(0.25))
    env.prepare()
    assert written[2:] == ["kickoff", "dribble", "wall", "turtle", "air_dribble", "save"]
    resumed.load_state(saved)
    resumed.prepare()
    first, second = record(env, actions[4:]), record(resumed, actions[4:])
    assert all(torch.equal(x, y) for x, y in zip(first, second, strict=True))
    for each in (env, resumed):
        each.close()


def test_starts_write_the_beginnings_of_those_arenas_that_may_draw_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twelve arenas, three play each lane, and the store has several beginnings for every arena."""
    env = arenas()
    shard = env._shards[0]
    sizes: dict[str, int] = {}
    for name, start in shard.task.start.parts.items():
        def write(state: Any, generator: Any, name: str = name, write: Any = start.write) -> None:
            sizes[name] = state.arenas
            write(state, generator)

        monkeypatch.setattr(start, "write", write)
    for share, playing in ((0.25, 3), (0.5, 6), (0.0, 0)):
        change_tasks(env.tasks, with_share("turtle", share))
        sizes.clear()
        env.reset(0)
        expected = {"kickoff": 9 - playing, "turtle.turtle": playing, "air.air_dribble": 3}
        assert sizes == {name: shard.depth * count for name, count in expected.items() if count}
        lane = shard.task.lanes.following.repeat(shard.depth)
        drawn = [list(shard.task.start.parts.keys())[i] for i in shard.task.start.drawn.tolist()]
        assert drawn == [["kickoff", "turtle.turtle", "air.air_dribble"][number] for number in lane.tolist()]
        ball = shard.fresh.ball.position[:, 2]
        assert torch.equal(ball > 400, lane == AIR), "each is written where it was drawn"
        assert torch.equal(on_roof(shard.fresh.cars).any(-1), lane == TURTLE)
    env.close()


def test_what_steps_keep_of_lanes_follows_every_change() -> None:
    """Weights, endings and lanes that change in the middle of a run count as in arenas that begin with them."""
    env = arenas()
    env.reset(0)
    lanes = {name: {**own, "share": 0.5 if name == "turtle" else 0.25, "rewards": {**own["rewards"], f"{HERE}:Pay": weight}}
             for (name, own), weight in zip(TASK["lanes"].items(), (7.0, {"weight": 2.0, "coins": 5}), strict=True)}
    lanes["turtle"] = {**lanes["turtle"], "endings": {"time_out": None}}
    changed = task(lanes=lanes, zero_sum=0.5)
    shard = env._shards[0]
    for step, action in enumerate(random_actions(env, 30)):
        if step == 8:
            change_tasks(env.tasks, changed)
        env.step(action)
        rewards, endings, lane = shard.task.rewards, shard.task.endings, shard.task.lanes.lane
        assert torch.equal(rewards._current.squeeze(-1), rewards._factors[:, lane])
        assert torch.equal(rewards._current_zero_sums.squeeze(-1), rewards._zero_sums[:, lane])
        assert torch.equal(endings._counting, endings.counts[:, lane])
    assert shard.task.lanes.settled and (lane == TURTLE).sum() == 6
    fresh = Task.configured(changed)
    assert torch.equal(shard.task.rewards._factors, fresh.rewards._factors)
    env.close()


def test_arenas_that_begin_twice_after_a_share_has_changed_tell_their_lanes() -> None:
    env = arenas()
    env.reset(0)
    actions = random_actions(env, 5)
    for action in actions[:4]:
        env.step(action)
    change_tasks(env.tasks, with_share("turtle", 0.5))
    env.reset(1)
    env.reset(2)
    lane = env.step(actions[4]).lane
    assert lane is not None and torch.equal(lane.view(-1, 2)[:, 0], torch.tensor([TURTLE] * 6 + [AIR] * 3 + [MAIN] * 3))
    env.close()


@pytest.mark.parametrize("chosen", [["kickoff", "wall", "turtle"], ["wall", "kickoff", "random", "shot"]])
def test_beginnings_without_weights_of_0_are_those_of_a_plain_mixture(chosen: list[str]) -> None:
    """The reference draws with a cumulative sum and writes every start, as a mixture always did."""
    weights = torch.tensor([0.3, 0.1, 0.7, 0.2][:len(chosen)])
    env = arenas(task(lanes={}, starts=dict(zip(chosen, weights.tolist(), strict=True))))
    env.reset(0)
    shard = env._shards[0]
    generator = torch.Generator()
    generator.set_state(shard.generator.get_state())
    expected, start = shard.fresh.clone(), shard.task.start
    shard._write_beginnings()
    shard.kickoff.write(expected, generator)
    below = weights.cumsum(-1)
    drawn = (torch.rand(expected.shape[0], 1, generator=generator) * below[-1] >= below[:-1]).sum(-1)
    default = expected.clone()
    for index, part in enumerate(start.starts):
        written = default.clone()
        part.write(written, generator)
        expected.copy_(written, drawn == index)
    assert torch.equal(shard.fresh.memory, expected.memory)
    assert torch.equal(generator.get_state(), shard.generator.get_state())
    env.close()


def test_starts_with_lanes_serve_a_match_without_them() -> None:
    """As `wavedash eval RUN --against X --starts task` plays it: by the weights of the main task."""
    rocket = task(starts={"kickoff": 0.0, "wall": 1.0})
    config = load_config("rocket-1v1", ["env.count=4"]).env.model_copy(update={"rocket": rocket})
    match = Match(config, Idle(), Idle(), 4, own_starts=True, limit=1.0)
    match.play(1)
    assert match.env.tasks[0].start.drawn.tolist() == [1] * len(match.env.tasks[0].start.drawn)
    match.env.close()


def test_lanes_that_are_new_or_gone_on_resume_begin_with_their_next_episodes() -> None:
    env, plain = arenas(), arenas(task(lanes={}))
    other = {"other": {"share": 0.25, "starts": {"kickoff": 1.0}, "measures": ["wall"]}, "air": TASK["lanes"]["air"]}
    exchanged = arenas(task(lanes=other))
    actions = random_actions(env, 40)
    for each in (env, plain):
        each.reset(0)
        for action in actions[:4]:
            each.step(action)
    of_lanes, of_main = env.save_state(), plain.save_state()
    env.load_state({name: x.clone() for name, x in of_main.items()})
    assert not lanes_of(env).any(), "episodes that go on stay in the main task"
    plain.load_state({name: x.clone() for name, x in of_lanes.items()})
    exchanged.load_state({name: x.clone() for name, x in of_lanes.items()})
    assert lanes_of(exchanged).tolist() == [0] * 6 + [2] * 3 + [0] * 3, "the lane air goes on by its name"
    for each in (env, plain, exchanged):
        each.prepare()
        for action in actions[4:]:
            each.step(action)
        each.close()
    assert lanes_of(env).tolist() == [TURTLE] * 3 + [MAIN] * 3 + [AIR] * 3 + [MAIN] * 3
    assert lanes_of(exchanged).tolist() == [1] * 3 + [2] * 3 + [0] * 6


def test_weights_and_settings_of_lanes_change_while_a_run_runs() -> None:
    env = arenas()
    env.reset(0)
    lanes = {name: dict(own) for name, own in TASK["lanes"].items()}
    lanes["turtle"] |= {"rewards": {f"{HERE}:Pay": 20.0, "recovery": 0.0}, "endings": {"time_out": {"seconds": 0.4}}}
    lanes["air"] |= {"rewards": {f"{HERE}:Pay": {"weight": 3.0, "coins": 5}}}
    action = random_actions(env, 1)[0]
    addresses = [x.data_ptr() for x in (env.tasks[0].rewards._factors, env.tasks[0].endings.counts)]
    change_tasks(env.tasks, task(lanes=lanes))
    assert [x.data_ptr() for x in (env.tasks[0].rewards._factors, env.tasks[0].endings.counts)] == addresses
    env.prepare()
    lane = lanes_of(env).clone()
    steps = [env.step(action) for _ in range(5)]
    assert torch.equal(steps[0].metrics["reward/pay"][::2], torch.tensor([1.0, 20.0, 15.0])[lane])
    assert not any(step.truncated.any() for step in steps), "neither the lane nor, as before, the main task has ended"
    assert torch.equal(env.step(action).truncated[::2], lane == TURTLE)
    env.close()


class CountFills(TorchDispatchMode):
    """Counts how often numbers are filled into these tensors."""

    def __init__(self, tensors: list[Tensor]) -> None:
        super().__init__()
        self.memory, self.count = {x.untyped_storage().data_ptr() for x in tensors}, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func.name() == "aten::fill_.Scalar" and args[0].untyped_storage().data_ptr() in self.memory
        return func(*args, **(kwargs or {}))


def test_a_change_while_a_run_runs_writes_only_numbers_that_differ() -> None:
    """On a GPU each is a kernel, and a ramp changes one of a hundred in every iteration."""
    env = arenas(groups=2)
    tables = [x for each in env.tasks for x in (each.rewards._factors, each.rewards._zero_sums, each.start.below,
                                                each.endings.counts, each.lanes._target)]

    def fills(config: RocketConfig) -> int:
        with CountFills(tables) as counter:
            change_tasks(env.tasks, config)
        fresh = Task.configured(config)
        for each in env.tasks:
            assert torch.equal(each.rewards._factors, fresh.rewards._factors), "as if it had been configured"
            assert torch.equal(each.rewards._zero_sums, fresh.rewards._zero_sums)
            assert torch.equal(each.start.below, fresh.start.below) and torch.equal(each.endings.counts, fresh.endings.counts)
        return counter.count

    pay = f"{HERE}:Pay"
    changed = task(rewards={pay: 1.0, "touch": 2.0})
    assert [fills(task()), fills(changed), fills(changed), fills(task())] == [0, 2, 0, 2], "one in each of two groups"
    lanes = {name: dict(own) for name, own in TASK["lanes"].items()}
    lanes["turtle"] |= {"rewards": {pay: 20.0, "recovery": 3.0}, "starts": {"turtle": 2.0}}
    assert fills(task(lanes=lanes)) == 2 * (2 + len(env.tasks[0].start.names) - 1), "two weights, and sums from the start on"
    assert fills(task(lanes=lanes, zero_sum=0.5)) == 2 * len(env.tasks[0].rewards.names), "in the main task only"
    env.close()


def test_metrics_of_a_step_are_those_of_the_lanes_in_which_it_was_made() -> None:
    """An arena changes its lane within the step that ends an episode, after the metrics of the step were taken."""
    lane = {"share": 0.0, "most": 0.5, "starts": {"kickoff": 1.0}, "measures": [{"air_dribble": {"least": 1}}]}
    env = arenas(task(lanes={"air": lane}, measures=[]))
    env.reset(0)
    switched = 0
    for t, action in enumerate(random_actions(env, 40)):
        if t in (4, 20):
            change_tasks(env.tasks, task(lanes={"air": lane | {"share": 0.5 if t == 4 else 0.0}}, measures=[]))
            env.prepare()
        step = env.step(action)
        assert step.lane is not None
        assert torch.equal(step.metrics["per_minute/air_dribble_attempts"].isnan(), step.lane == MAIN)
        switched += int((lanes_of(env) != step.lane[::2]).sum())
    assert switched == ARENAS, "half of them into the lane and out again"
    env.close()


def test_the_mode_of_rewards_is_for_those_of_the_main_task() -> None:
    lanes = {"own": {"share": 0.25, "starts": {"kickoff": 1.0}, "rewards": {f"{HERE}:Pay": 10.0}},
             "shared": {"share": 0.25, "starts": {"kickoff": 1.0}}}
    env = arenas(task(lanes=lanes, reward_mode="hybrid", dense_scale=0.5))
    env.reset(0)
    paid = env.step(random_actions(env, 1)[0]).metrics["reward/pay"]
    assert paid[::2].tolist() == [10.0] * 3 + [0.5] * 9
    env.close()


def test_zero_sum_is_for_rewards_of_the_main_task() -> None:
    """Both cars of an arena are paid the same, so a share of 1 leaves nothing, and a share of 0 everything."""
    pay = f"{HERE}:Pay"
    lanes = {"own": {"share": 0.25, "rewards": {pay: 10.0}, "starts": {"kickoff": 1.0}},
             "chosen": {"share": 0.25, "rewards": {pay: {"weight": 10.0, "zero_sum": 0.5}}, "starts": {"kickoff": 1.0}},
             "shared": {"share": 0.25, "starts": {"kickoff": 1.0}}}

    def paid(zero_sum: float) -> list[float]:
        config = task(lanes=lanes, rewards={pay: 1.0}, zero_sum=zero_sum)
        change_tasks(env.tasks, config)
        fresh = arenas(config)
        fresh.reset(0)
        reward = env.step(action).reward
        assert torch.equal(reward, fresh.step(action).reward), "a change while it runs equals a start with it"
        fresh.close()
        assert torch.equal(reward[::2], reward[1::2])
        return reward[::6].tolist()

    env = arenas(task(lanes=lanes, rewards={pay: 1.0}))
    env.reset(0)
    action = random_actions(env, 1)[0]
    assert paid(1.0) == [10.0, 5.0, 0.0, 0.0]
    assert paid(0.25) == [10.0, 5.0, 0.75, 0.75]
    assert paid(0.0) == [10.0, 5.0, 1.0, 1.0]
    env.close()


def test_team_spirit_counts_in_lanes() -> None:
    lanes = {"own": {"share": 0.5, "rewards": {f"{HERE}:Seat": 10.0}, "starts": {"kickoff": 1.0}}}
    env = arenas(task(lanes=lanes, rewards={f"{HERE}:Seat": 1.0}, team_spirit=0.5, zero_sum=1.0, blue=2, orange=2), count=2)
    env.reset(0)
    paid = env.step(random_actions(env, 1)[0]).reward.view(2, 4)
    assert paid[0].tolist() == [2.5, 7.5, 22.5, 27.5], "0, 10, 20, 30, half of it shared"
    assert paid[1].tolist() == [-2.25, -1.75, 1.75, 2.25], "0, 1, 2, 3, half of it shared, less the mean of the others"
    env.close()


def test_an_ending_that_is_null_ends_nothing_and_remembers() -> None:
    off, on = task(lanes={}, endings={"time_out": None}), task(lanes={}, endings={"time_out": {"seconds": 0.6}})
    env = arenas(off)
    env.reset(0)
    actions = random_actions(env, 20)
    assert not any(env.step(action).truncated.any() for action in actions[:12])
    change_tasks(env.tasks, on)
    assert env.step(actions[12]).truncated.all(), "it has counted the time"
    change_tasks(env.tasks, off)
    assert not any(env.step(action).truncated.any() for action in actions[13:])
    env.close()


def test_an_ending_cannot_be_switched_on_with_options_that_only_a_resume_can_give() -> None:
    stubborn = f"{HERE}:Stubborn"
    env = arenas(task(lanes={}, endings={stubborn: None, "time_out": {}}))
    change_tasks(env.tasks, task(lanes={}, endings={stubborn: {"truncates": False}, "time_out": {}}))
    with pytest.raises(UserError, match="has truncates=False, which cannot become True while the run runs"):
        change_tasks(env.tasks, task(lanes={}, endings={stubborn: {"truncates": True}, "time_out": {}}))
    env.close()


def test_an_option_of_a_lanes_ending_is_not_lost_though_the_main_task_has_the_same_ending() -> None:
    stubborn = f"{HERE}:Stubborn"

    def config(of_lane: Any) -> RocketConfig:
        lane = {"share": 0.25, "starts": {"kickoff": 1.0}, "endings": {stubborn: of_lane, "goal": None}}
        return task(lanes={"own": lane}, endings={stubborn: {}, "goal": {}})

    env = arenas(config(None))
    assert set(env.tasks[0].endings.keys()) == {stubborn, "goal", f"own.{stubborn}"}, "only what has no options is shared"
    change_tasks(env.tasks, config({}))
    with pytest.raises(UserError, match=r"has truncates=False, which cannot become True.*stop the run and resume it"):
        change_tasks(env.tasks, config({"truncates": True}))
    with pytest.raises(UserError, match=r"the endings of the task differ in no_touch, .*stop the run and resume it"):
        change_tasks(env.tasks, config({}).model_copy(update={"endings": {"goal": {}, "no_touch": {}}}))
    env.close()


def test_what_may_change_of_lanes() -> None:
    keys = {".".join(key) for key in live_keys(task(endings={"no_touch": None, "time_out": {"seconds": 1}}))}
    assert {"lanes.turtle.share", "lanes.turtle.starts.turtle", "lanes.turtle.rewards.recovery", "endings.no_touch",
            "endings.no_touch.seconds", "lanes.turtle.endings.time_out.seconds", "lanes.turtle.endings.time_out",
            f"lanes.air.rewards.{HERE}:Pay.weight"} <= keys
    assert not keys & {"lanes", "lanes.turtle", "lanes.turtle.most", "lanes.turtle.measures", "lanes.air.endings"}


def test_lanes_and_opponents_that_need_more_than_all_arenas_are_refused() -> None:
    def against(share: float) -> Any:
        made = Task.configured(task())
        made.line_up = Opponents(made.action, [Idle()], share)
        return made

    config = load_config("rocket-1v1", [f"env.count={ARENAS}", "env.groups=1"]).env.model_copy(update={"rocket": task()})
    RocketEnv.configured(config, task=lambda: against(0.25)).close()
    with pytest.raises(UserError, match=r"of 12 arenas in a group the lanes need 9 and the opponents 6: lower `share`.*"
                                        r"or opponents.slots"):
        RocketEnv.configured(config, task=lambda: against(0.5))
    with pytest.raises(UserError, match=r"the lanes turtle, air need 2 environments in every group.*raise env.count"):
        arenas(count=1)
    with pytest.raises(ValueError, match="the lanes turtle, more may need 120% of the arenas"):
        task(lanes={"turtle": TASK["lanes"]["turtle"], "more": {"share": 0.7, "starts": {"kickoff": 1}}})
    with pytest.raises(ValueError, match="a name has letters, digits, _ and -, not 'a/b'"):
        task(lanes={"a/b": TASK["lanes"]["air"]})


@pytest.mark.parametrize(("count", "rooms", "blocks"), [
    (64, (0.05, 0.1), [(0, 3), (3, 10)]), (3, (0.5, 0.5), [(0, 2), (2, 3)]), (10, (0.01, 0.01), [(0, 1), (1, 2)]),
    (8, (0.0, 0.5), [(0, 0), (0, 4)]), (1, (1.0, 0.0), [(0, 1), (1, 1)]),
])
def test_lanes_have_about_their_share_of_the_arenas_and_at_least_one(count: int, rooms: Any, blocks: Any) -> None:
    lanes = {str(index): {"share": room, "starts": {"kickoff": 1.0}} for index, room in enumerate(rooms)}
    made = Task.configured(task(lanes=lanes)).lanes
    made.set_aside(count)
    assert [(block.start, block.stop) for block in made.blocks.values()] == blocks


def test_a_step_with_lanes_reads_nothing_on_the_host() -> None:
    env = arenas()
    env.reset(0)
    shard = env._shards[0]
    shard.on_host = shard.task.measures.may_read = shard.task.lanes.settled = False  # as on a GPU
    actions = random_actions(env, 12)
    for action in actions:
        shard.send(action)
        shard.simulator.recv()
        receive, shard.simulator.recv = shard.simulator.recv, lambda: None
        place, shard.simulator.place = shard.simulator.place, lambda arenas: None
        with NoHostSync():
            shard.recv()
        shard.simulator.recv, shard.simulator.place = receive, place
        shard.simulator.place(torch.ones(ARENAS, dtype=torch.bool))
    env.close()


def test_success_in_lanes_is_on_the_screen() -> None:
    env = arenas()
    shown = {headline.title: dict(headline.metrics) for headline in env.headlines}
    assert shown["success of attempts"] == {"attempt/turtle": "turtle", "attempt/turtle_ticks": "turtle ticks"}
    assert shown["success in lane turtle"] == {"lane/turtle/attempt/turtle": "turtle",
                                               "lane/turtle/attempt/turtle_ticks": "turtle ticks"}
    assert list(shown["success in lane air"].values()) == ["turtle", "turtle ticks", "air dribble"]
    assert list(shown["share of each reward"]) == ["reward/pay", "reward/touch"], "rewards of the main task"
    (headline,) = (each for each in env.headlines if each.title == "success in lane turtle")
    assert headline.measured({"lane/turtle/attempt/turtle": 0.5, "env/attempt/turtle": 1.0}, "env/") == {
        "lane/turtle/attempt/turtle": 0.5}
    env.close()


def test_a_task_without_lanes_saves_what_it_did() -> None:
    env = simulated()
    assert not any("lanes" in name or "counts" in name for name in env.save_state())
    env.close()
