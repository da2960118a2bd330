"""The state of listeners is saved and restored with the learner, wherever a run was interrupted."""
from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import wavedash
from tests.ppo.combinations import differences
from tests.ppo.learners import ACTIONS, learner_over, run_config
from tests.ppo.test_interrupted_iteration import Quiet, run_with
from tests.toy_vec_envs import IdentityEnv
from wavedash.envs.vec_env import Step, VecEnv
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.ppo.listeners import ListenerError
from wavedash.runs.find import resolve_checkpoint
from wavedash.runs.store import CheckpointStore

TOTAL = 8 * 16 * 7
"""One calibration rollout and six iterations."""


class WeightedRewardEnv(IdentityEnv):
    """Its rewards have a weight that may change during a run."""

    weight = 1.0

    def step(self, action: Tensor) -> Step:
        step = super().step(action)
        return step._replace(reward=step.reward * self.weight)


class Ramp(Listener):
    """Lowers the weight of the reward after every iteration, by how well it went."""

    def __init__(self) -> None:
        self.weight, self.seen, self.trail = 1.0, 0, torch.zeros(0, dtype=torch.float64)

    def on_start(self, learner: Learner) -> None:
        self._weigh(learner.env)

    def on_iteration(self, learner: Learner, report: IterationReport) -> dict[str, float]:
        self.seen += 1
        self.weight *= 0.9 if report.metrics["rollout/reward"] > 0 else 0.5
        self.trail = torch.cat([self.trail, torch.tensor([self.weight], dtype=torch.float64)])
        self._weigh(learner.env)
        return {"ramp/weight": self.weight}

    def _weigh(self, env: VecEnv) -> None:
        assert isinstance(env, WeightedRewardEnv)
        env.weight = self.weight

    def state_dict(self) -> dict[str, Any]:
        return {"weight": self.weight, "seen": self.seen, "trail": self.trail}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.weight, self.seen, self.trail = float(state["weight"]), int(state["seen"]), state["trail"]


class Forgetful(Ramp):
    """The control: it keeps nothing, and begins anew when the run goes on."""

    def state_dict(self) -> dict[str, Any]:
        return {}


def fresh(*listeners: Listener) -> Learner:
    ppo = {"rollout_steps": 16, "minibatch_size": 64, "epochs": 1, "normalize_reward": True}
    env = WeightedRewardEnv(ACTIONS["discrete"], rows=8)
    return learner_over(env, run_config(ppo, total_steps=TOTAL, seed=5), started=False, listeners=listeners)


def through_a_file(learner: Learner, folder: Path) -> tuple[Any, Any]:
    CheckpointStore(folder).save(learner.steps, *learner.state(), {})
    checkpoint = CheckpointStore(folder).newest()
    assert checkpoint is not None
    return checkpoint.load()


def test_from_any_line_a_listener_goes_on_as_if_the_run_had_never_been_stopped(tmp_path):
    """An interrupted iteration is done again, and its listener has not been told of it."""
    whole = fresh(Ramp(), Quiet())
    lines = run_with(whole, None)
    assert whole.listeners[0].seen == 6
    for k in range(10):
        first, second = fresh(Ramp(), Quiet()), fresh(Ramp(), Quiet())
        run_with(first, 1 + (lines - 2) * k // 10)
        second.load_state(*through_a_file(first, tmp_path / str(k)))
        second.learn()
        assert differences(whole, second) == set(), k
        assert second.listeners[0].trail.tolist() == whole.listeners[0].trail.tolist()


def test_a_listener_that_forgets_leads_elsewhere(tmp_path):
    """The control: what the listener knew matters."""
    whole, first, second = fresh(Ramp()), fresh(Forgetful()), fresh(Forgetful())
    whole.learn()
    run_with(first, run_with(fresh(Forgetful()), None) // 2)
    second.load_state(*through_a_file(first, tmp_path))
    second.learn()
    assert not torch.equal(whole.updater.optimizer.parameters, second.updater.optimizer.parameters)


def test_after_an_error_in_a_later_listener_the_run_is_saved_as_the_iteration_began(tmp_path):
    class Breaks(Listener):
        def on_iteration(self, learner: Learner, report: IterationReport) -> None:
            if report.iteration == 3:
                raise ValueError("from inside")

    whole, first, second = fresh(Ramp()), fresh(Ramp(), Breaks()), fresh(Ramp())
    whole.learn()
    with pytest.raises(ValueError, match="from inside"):
        first.learn()
    assert first.listeners[0].seen == 3, "it was told of the iteration that is done again"
    tensors, plain = through_a_file(first, tmp_path)
    assert plain["listeners"]["Ramp"]["seen"] == 2 and len(tensors["listeners"]["Ramp/trail"]) == 2
    second.load_state(tensors, plain)
    second.learn()
    assert differences(whole, second) == set()


def test_a_new_listener_begins_fresh_and_one_that_is_gone_is_dropped_with_a_line(caplog):
    first = fresh(Ramp())
    first.start()
    first.listeners.tell(first, first.iterate())

    class Other(Ramp):
        pass

    second = fresh(Other())
    second.load_state(*first.state())
    assert second.listeners[0].seen == 0
    with caplog.at_level(logging.INFO, "wavedash"):
        second.learn()
    assert "the state of the listener Ramp is dropped" in caplog.text
    assert list(second.state()[1]["listeners"]) == ["Other"] and second.listeners[0].seen == 5


def test_a_listener_that_is_added_after_the_state_was_loaded_gets_its_own(caplog):
    """The listeners of a run are made like this, once its folder is known."""
    first, ramp = fresh(Ramp()), Ramp()
    first.start()
    first.listeners.tell(first, first.iterate())
    second = fresh()
    second.load_state(*first.state())
    second.listeners.add(ramp)
    assert ramp.seen == 1
    second.listeners.add(Quiet())
    assert ramp.seen == 1, "its state is restored only once"
    second.learn()
    assert "dropped" not in caplog.text


def test_two_listeners_of_one_name_are_refused_unless_one_is_saved_under_another():
    with pytest.raises(ListenerError, match="two listeners keep their state under the name 'Ramp'"):
        fresh(Ramp(), Ramp())
    other = Ramp()
    other.saved_as = "second-ramp"
    learner = fresh(Ramp(), other, Quiet(), Quiet())  # those without state need no names
    learner.start()
    learner.saved.take_snapshot()
    assert set(learner.state()[1]["listeners"]) == {"Ramp", "second-ramp"}
    other.saved_as = "a/b"
    with pytest.raises(ListenerError, match="saved_as='a/b' of Ramp cannot name saved state"):
        fresh(other)


class Keeping(Listener):
    def __init__(self, state: Any):
        self.state = state

    def state_dict(self) -> Any:
        return self.state


@pytest.mark.parametrize(("state", "message"), [
    ([1], "the listener Keeping: state_dict\\(\\) returned a list"),
    ({"a": object()}, r"Keeping.a, is a object"),
    ({"a": [1, {"b": {1, 2}}]}, r"Keeping.a\[1\].b, is a set"),
    ({"a": [torch.zeros(1)]}, r"Keeping.a\[0\], is a Tensor.*inside lists or dicts cannot be saved"),
    ({"a": {1: 2}}, r"Keeping.a, has the key 1: keys must be strings"),
    ({1: 2}, r"Keeping, has the key 1"),
])
def test_what_is_not_data_is_refused_before_the_first_iteration(state, message):
    learner = fresh(Keeping(state))
    with pytest.raises(ListenerError, match=message):
        learner.learn()
    assert learner.iteration == 0


def test_data_comes_back_as_it_was(tmp_path):
    class Back(Keeping):
        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.state = state

    state = {"none": None, "yes": True, "n": 3, "x": float("inf"), "name": "ä", "list": [1, [2.5]], "dict": {"a": {"b": []}},
             "tensor": torch.arange(6).view(2, 3)}
    first, second = fresh(Back(state)), fresh(Back({}))
    first.start()
    second.load_state(*through_a_file(first, tmp_path))
    back = second.listeners[0].state
    assert torch.equal(back.pop("tensor"), state.pop("tensor")) and back == state


def test_a_saved_state_that_a_listener_does_not_take_is_refused_with_its_name():
    first = fresh(Keeping({"height": 1}))
    first.start()
    tensors, plain = first.state()

    class Keeps(Ramp):
        saved_as = "Keeping"

    with pytest.raises(ListenerError, match=r"the listener Keeping does not take .* \(KeyError: 'weight'\): mend its"):
        fresh(Keeps()).load_state(tensors, plain)


def test_metrics_of_a_listener_reach_those_after_it():
    seen: list[dict[str, float]] = []

    class Reads(Listener):
        def on_iteration(self, learner: Learner, report: IterationReport) -> None:
            seen.append(dict(report.metrics))

    ramp = Ramp()
    learner = fresh(Reads(), ramp, Reads())
    learner.start()
    learner.listeners.tell(learner, learner.iterate())
    before, after = seen
    assert after == {**before, "ramp/weight": ramp.weight} and "ramp/weight" not in before

    class Steals(Listener):
        def on_iteration(self, learner: Learner, report: IterationReport) -> dict[str, float]:
            return {"policy/kl": 0.0}

    learner.listeners = [Steals()]
    with pytest.raises(ListenerError, match="the listener Steals returns a metric 'policy/kl', which is there already"):
        learner.listeners.tell(learner, learner.iterate())


# --- whole runs --------------------------------------------------------------------------------------------------------


class Cooling(Listener):
    """Lowers the entropy bonus with every iteration, and stops once where it is told to."""

    def __init__(self, stop_at: int | None = None):
        self.stop_at, self.coefficient = stop_at, 0.05

    def on_start(self, learner: Learner) -> None:
        self._set(learner)

    def on_iteration(self, learner: Learner, report: IterationReport) -> dict[str, float]:
        self.coefficient *= 0.8
        self._set(learner)
        if report.iteration == self.stop_at:
            learner.stop("enough for now")
        return {"cooling/next": self.coefficient}

    def _set(self, learner: Learner) -> None:
        ppo = learner.config.ppo.model_copy(update={"entropy_coef": self.coefficient})
        learner.change(learner.config.model_copy(update={"ppo": ppo}))

    def state_dict(self) -> dict[str, Any]:
        return {"coefficient": self.coefficient}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.coefficient = float(state["coefficient"])


SMALL = ["total_steps=4000", "report.tensorboard=false", "report.console=off", "ppo.epochs=2", "device=cpu"]


def final_policy(folder: Path) -> dict[str, Tensor]:
    return resolve_checkpoint(folder / "runs/cartpole/final").load(["policy"])[0]["policy"]


def test_train_and_resume_take_listeners(tmp_path, monkeypatch, caplog):
    folders = [tmp_path / name for name in ("whole", "stopped")]
    for folder in folders:
        folder.mkdir()
    monkeypatch.chdir(folders[0])
    assert wavedash.train("cartpole", *SMALL, listeners=[Cooling()]) == 0
    monkeypatch.chdir(folders[1])
    wavedash.train("cartpole", *SMALL, listeners=[Cooling(stop_at=2)])
    with caplog.at_level(logging.INFO, "wavedash"):
        assert wavedash.resume(listeners=[Cooling()]) == 0
    assert "dropped" not in caplog.text
    whole, resumed = (final_policy(folder) for folder in folders)
    assert all(torch.equal(x, resumed[name]) for name, x in whole.items())
    (lines,) = (path.read_text().splitlines() for path in folders[1].glob("runs/*/*/metrics.jsonl"))
    assert len(lines) > 4 and all('"cooling/next"' in line and '"optim/entropy_coef"' in line for line in lines)


class Fading(Listener):
    """Lowers the weight of a reward of the task with every iteration."""

    def __init__(self, stop_at: int | None = None):
        self.stop_at, self.weight = stop_at, 0.5

    def on_start(self, learner: Learner) -> None:
        self._set(learner)

    def on_iteration(self, learner: Learner, report: IterationReport) -> dict[str, float]:
        self.weight *= 0.5
        self._set(learner)
        if report.iteration == self.stop_at:
            learner.stop("enough for now")
        return {"fading/next": self.weight}

    def _set(self, learner: Learner) -> None:
        for task in learner.env.tasks:
            task.rewards.set_weights({"face_ball": self.weight})

    def state_dict(self) -> dict[str, Any]:
        return {"weight": self.weight}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.weight = float(state["weight"])


@pytest.mark.slow
def test_the_weight_of_a_reward_that_a_listener_lowers_goes_on_falling_after_a_resume(tmp_path, monkeypatch):
    small = ["total_steps=1600", "env.count=4", "ppo.rollout_steps=64", "ppo.minibatch_size=128", "device=cpu",
             "policy.hidden=[16]", "report.tensorboard=false", "report.console=off"]
    lines: dict[str, list[dict[str, float]]] = {}
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        wavedash.train("rocket-touch", *small, listeners=[Fading(stop_at=2 if name == "stopped" else None)])
        if name == "stopped":
            wavedash.resume(listeners=[Fading()])
        (path,) = (tmp_path / name).glob("runs/*/*/metrics.jsonl")
        lines[name] = [json.loads(line) for line in path.read_text().splitlines()]
    weights = [0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125]
    assert [line["fading/next"] for line in lines["whole"]] == [line["fading/next"] for line in lines["stopped"]] == weights
    paid, paid_after = ([line["env/reward/face_ball"] for line in lines[name]] for name in ("whole", "stopped"))
    assert paid_after[2] == paid[2], "the first iteration after the resume pays what it would have paid without one"
    assert abs(paid_after[2]) <= 0.125, "it is at most the lowered weight"
    assert paid_after == pytest.approx(paid, rel=0.05, abs=1e-3)


def test_a_resume_that_a_listener_refuses_leaves_the_run_as_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wavedash.train("cartpole", *SMALL, listeners=[Cooling(stop_at=1)])

    class Refuses(Cooling):
        saved_as = "Cooling"

        def load_state_dict(self, state: dict[str, Any]) -> None:
            raise ValueError("from an older version")

    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ListenerError, match=r"Cooling does not take .*ValueError: from an older version"):
        wavedash.resume(listeners=[Refuses()])
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path: x for path, x in after.items() if path.name != "lock"} == {
        path: x for path, x in before.items() if path.name != "lock"}
