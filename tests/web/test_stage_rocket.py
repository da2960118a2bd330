"""A game on the stage: heads say what policies really did, humans drive, bodies are placed, games are recorded."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from wavedash.config import EnvConfig
from wavedash.errors import UserError
from wavedash.league.players import find_entrant
from wavedash.recordings import Layout, read
from wavedash.rocket.actions import LookupTable
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.observations import AdvancedObsPlus, DefaultObs
from wavedash.rocket.parts import Start
from wavedash.rocket.state import GameState
from wavedash.rocket.task import Task
from wavedash.web.stage.base import Out
from wavedash.web.stage.human import FORGOTTEN, Human, checked
from wavedash.web.stage.rocket import RocketStage

pytest.importorskip("RocketSim")


class Kept(Out):
    """Keeps what a stage says."""

    def __init__(self) -> None:
        self.game = 0
        self.messages: list[dict[str, Any]] = []
        self.records: list[bytes] = []

    def send(self, message: Any) -> None:
        self.messages.append(dict(message))

    def frame(self, record: bytes) -> None:
        self.records.append(record)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["type"] == kind]

    def last(self, name: str) -> np.ndarray:
        layout = Layout.from_json(self.of("header")[-1]["record"])
        return layout.decode(np.frombuffer(self.records[-1], layout.dtype), name)[0]


def staged(tmp_path: Path, **asked: Any) -> tuple[RocketStage, Kept]:
    out = Kept()
    stage = RocketStage({"blue": "champion", "orange": "chaser", "seed": 3, "folder": str(tmp_path), **asked}, out)
    stage.begin()
    return stage, out


def test_the_head_is_what_the_policy_did(tmp_path: Path) -> None:
    """The chosen action is the one whose controls the car has; probabilities and value are those of the policy for the
    observation that is shown, computed from the state by a copy of the policy's own parts."""
    stage, out = staged(tmp_path)
    policy = find_entrant("champion", size=1).run.policy.policy
    table = torch.tensor(LookupTable().rows())
    for step in range(120):
        before, last = stage.state.clone(), stage.env.controls[0].clone()
        stage.step()
        stage.head_sent = 0.0
        stage.obey({"do": "head", "car": 0, "observation": True})
        decision = out.of("head")[-1]["decision"]
        assert np.allclose(out.last("cars.controls")[0], table[decision["action"]], atol=1 / 127)
        assert out.last("cars.action")[0] == decision["action"] == out.last("cars.top_action")[0, 0]
        if step % 2:  # this step was none of the policy's decisions: it still says its last one
            continue
        seen, actions = AdvancedObsPlus(**_options(stage)), LookupTable()
        for part in (seen, actions):
            part.bind(before)
        obs = {"obs": seen.build(before, last)[0, :1], "action_mask": actions.mask(before)[0, :1].to(torch.int8)}
        assert np.allclose([x for _, x in decision["observation"]], obs["obs"][0], atol=1e-6)
        with torch.no_grad():
            distribution, _ = policy.step_actor(policy.normalize(obs), {})
            value = policy.value(policy.normalize(obs), {})
        best, which = distribution.probs[0].topk(5)
        for (action, probability), expected, index in zip(decision["top"], best, which, strict=False):
            assert probability == pytest.approx(float(expected), abs=1e-5) and (action == index or expected < 1e-6)
        assert decision["value"] == pytest.approx(float(value), abs=1e-4)
        assert out.last("cars.value")[0] == pytest.approx(decision["value"], abs=1e-6)
    assert len({message["decision"]["action"] for message in out.of("head")}) > 3
    stage.close()


def _options(stage: RocketStage) -> dict[str, Any]:
    observation = stage.policies[0].observation
    assert isinstance(observation, AdvancedObsPlus)
    return dict(observation.given)


class From(Start):
    """Begins from one state."""

    def __init__(self, state: GameState) -> None:
        self.state = state

    def write(self, state: GameState, generator: torch.Generator) -> None:
        state.memory.copy_(self.state.memory.expand_as(state.memory))


def test_reward_terms_are_those_of_the_own_task(tmp_path: Path) -> None:
    """An environment of the run's own task that begins from the same state and gets the same actions pays, in each of its
    steps, the sum of the terms; and the champion's rewards are zero-sum, so what the other car earned is part of it."""
    stage, out = staged(tmp_path, orange="champion", deterministic=False)
    rocket = find_entrant("champion", size=1).task
    assert rocket is not None and stage.pace.ticks == 4
    begins = stage.state.clone()

    def task() -> Task:
        made = Task.configured(rocket)
        made.start = From(begins)
        return made

    config = EnvConfig.model_validate({"rocket": rocket.model_copy(update={"simulator": "rocketsim", "lanes": {}}).model_dump(),
                                       "count": 1, "workers": 0, "groups": 1})
    env = RocketEnv.configured(config, task=task)
    env.reset(0)
    paid, expected = [], []
    for _ in range(100):
        stage.step()
        stage.step()
        if stage.over:
            break
        actions = torch.stack([stage.policies[car].thought.action[0] for car in (0, 1)])
        expected.append(env.step(actions).reward.tolist())
        paid.append(out.last("cars.reward").sum(-1).tolist())
        assert torch.allclose(stage.state.ball.position, env.state_of(0).ball.position, atol=1.0)
    assert len(paid) > 30 and np.ptp(expected) > 0.01
    assert np.allclose(paid, expected, atol=1e-3)
    assert np.abs(np.array(paid) - np.array(expected)[:, ::-1]).max() > 0.01  # the negative control: not those of the other car
    env.close()
    stage.close()


def test_the_goal_is_seen_and_the_next_game_begins(tmp_path: Path) -> None:
    stage, out = staged(tmp_path, blue="idle", orange="idle")
    stage.obey({"do": "place", "ball": {"position": [0, 5000, 100], "velocity": [0, 2000, 0]}})
    assert out.of("header")[-1]["game"] == 2
    for _ in range(60):
        stage.step()
        if stage.over:
            break
    assert out.of("end")[-1] == {"type": "end", "game": 2, "result": {"score": [1, 0]}}
    assert out.last("ball.position")[1] > 5120 and out.last("goal") == 0 and out.last("score").tolist() == [1, 0]
    recording = read(stage.record())
    assert recording.frames == -(-int(recording["tick"][-1]) // 4) + 1  # a goal ends its step
    assert recording["ball.position"][-1, 1] > 5120 and recording.header["score"] == [1, 0]
    assert [event["kind"] for event in recording.header["events"]] == ["goal"]
    stage.step()
    assert out.of("header")[-1]["game"] == 3 and abs(out.last("ball.position")[1]) < 100
    assert out.last("score").tolist() == [1, 0]
    stage.close()


def test_touches_are_told_where_the_ball_was_touched(tmp_path: Path) -> None:
    """Every touch of a recorded game is near an event of the same car, and the viewers were told the same."""
    stage, out = staged(tmp_path, orange="chaser")
    for _ in range(400):
        stage.step()
        if stage.over:
            break
    recording = read(stage.record())
    told = [(event["frame"], event["car"]) for event in recording.header["events"] if event["kind"] == "touch"]
    assert [(message["event"]["frame"], message["event"]["car"]) for message in out.of("event")
            if message["event"]["kind"] == "touch"] == told
    touching = np.argwhere(recording["cars.flags"] >> 7 & 1).tolist()
    assert len(told) >= 2
    for frame, car in touching:
        assert any(whose == car and frame - 15 < at <= frame for at, whose in told)
    assert all([at, whose] in touching for at, whose in told)
    stage.close()


def test_a_human_takes_a_seat_and_leaves_it(tmp_path: Path) -> None:
    stage, out = staged(tmp_path, orange="idle")
    clock = [0.0]
    stage.line_up.human.clock = lambda: clock[0]
    with pytest.raises(UserError, match="take its seat"):
        stage.obey({"do": "controls", "car": 1, "controls": [0.0] * 8})
    stage.obey({"do": "drive", "car": 1})
    stage.obey({"do": "controls", "controls": [9.0, -0.5, 0, 0, 0, 0, 1, 0]})
    stage.step()
    stage.step()
    assert np.allclose(out.last("cars.controls")[1], [1, -0.5, 0, 0, 0, 0, 1, 0], atol=0.01) and stage.facts()["humans"] == [1]
    clock[0] = FORGOTTEN + 0.1
    stage.step()
    stage.step()
    assert not out.last("cars.controls")[1].any()
    stage.obey({"do": "drive", "car": 0})
    stage.step()
    stage.step()
    assert not out.last("cars.controls")[0].any() and np.isnan(out.last("cars.value")[0])
    stage.obey({"do": "leave"})
    for _ in range(4):
        stage.step()
    assert out.last("cars.controls")[0].any() and stage.facts()["humans"] == []
    stage.close()


@pytest.mark.parametrize("controls", [None, [0.0] * 7, [float("nan")] * 8, ["1"] * 8, [True] * 8, {"a": 1}])
def test_what_is_no_controls_is_refused(controls: Any) -> None:
    with pytest.raises(UserError, match="list of 8 numbers"):
        checked(controls)
    with pytest.raises(UserError):
        Human().hold(0, controls)


def test_impossible_places_are_refused(tmp_path: Path) -> None:
    stage, out = staged(tmp_path, blue="idle", orange="idle")
    wrong: dict[str, Any]
    for wrong, why in [({"ball": {"position": [0, 0, float("nan")]}}, "finite"),
                       ({"ball": {"velocity": [9e5, 0, 0]}}, "faster"),
                       ({"cars": [{"position": [0, 0, 0]}, {"position": [10, 0, 0]}]}, "stand in each other"),
                       ({"cars": [{}] * 3}, "at most 2"), ({"ball": [1]}, "object"), ({"cars": [{"yaw": "x"}]}, "yaw")]:
        with pytest.raises(UserError, match=why):
            stage.obey({"do": "place", **wrong})
    assert len(out.of("header")) == 1
    rng = np.random.default_rng(0)
    for _ in range(30):  # whatever the place, it is clipped into the arena
        where = rng.uniform(-9000, 9000, 3).tolist()
        stage.obey({"do": "place", "ball": {"position": where}, "cars": [{"position": [0, 0, 17], "yaw": 1.0, "boost": 300}]})
        assert out.last("cars.boost")[0] == 100
    stage.close()


def test_every_number_of_an_observation_has_a_name() -> None:
    for observation, seats in ((AdvancedObsPlus(), 2), (DefaultObs(), 4), (DefaultObs(zero_padding=None), 6)):
        names = observation.names(seats)
        assert len(set(names)) == len(names) == observation.size(seats)


def test_names_of_the_default_observation_are_in_its_order(tmp_path: Path) -> None:
    stage, _ = staged(tmp_path, blue="idle", orange="idle")
    observation, state = DefaultObs(zero_padding=None), stage.state
    observation.bind(state)
    seen = dict(zip(observation.names(2), observation.build(state, stage.env.controls[0])[0, 0].tolist(), strict=True))
    assert seen["own.boost"] == pytest.approx(float(state.cars.boost[0, 0]) / 100)
    assert seen["ball.position.z"] == pytest.approx(float(state.ball.position[0, 2]) / 2300)
    assert seen["other1.position.y"] == pytest.approx(float(state.cars.position[0, 1, 1]) / 2300)
    assert seen["other1.on_ground"] == 1.0
    stage.close()


def test_starts_are_names_and_no_code(tmp_path: Path) -> None:
    for asked, why in (({"start": "os:getcwd"}, "no start"), ({"size": 9}, "1 to 3"), ({"simulator": "x"}, "rocketsim")):
        with pytest.raises(UserError, match=why):
            staged(tmp_path, **asked)
    stage, _ = staged(tmp_path, start="shot", blue="chaser")
    stage.step()
    stage.close()
