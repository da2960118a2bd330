"""Debug switches name the mistakes that happen in practice, leave the training as it is, and never end a run."""
from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.debug.mistakes import Grows
from tests.test_several_processes import run_in_two
from wavedash.config import EnvConfig
from wavedash.envs.gymnasium.kind import GymnasiumKind
from wavedash.envs.kinds import Kind
from wavedash.errors import UserError
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import Listener
from wavedash.training import resume, train

HERE = "tests.debug.mistakes"
SMALL = ("env.count=4", "ppo.rollout_steps=16", "ppo.epochs=2", "ppo.minibatch_size=32", "policy.hidden=[8]", "device=cpu",
         "report.console=off", "report.tensorboard=false", "threads=1", "debug.all=true")
SWITCHES = ("actions", "learning", "checkpoints", "starts", "rewards")


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))


def run_folder(tmp_path: Path) -> Path:
    (folder,) = tmp_path.glob("runs/*/*/")
    return folder


def problems(folder: Path, switch: str) -> list[str]:
    """What a report says is wrong."""
    text = (folder / "debug" / f"{switch}.txt").read_text(encoding="utf-8")
    return [line.removeprefix("* ") for line in text.splitlines() if line.startswith("* ") and line != "* nothing looks wrong"]


def trained(tmp_path: Path, *overrides: str, preset: str = "cartpole", listeners: list[Listener] | None = None) -> Path:
    assert train(preset, *SMALL, "total_steps=640", *overrides, trust=True, listeners=listeners or []) == 0
    return run_folder(tmp_path)


def own_env(**kwargs: float) -> list[str]:
    return ["env.id=null", f"env.factory={HERE}:OneStep", f"env.kwargs={kwargs}"]


@pytest.mark.parametrize("preset", ["cartpole", "pendulum"])
def test_nothing_is_wrong_with_a_preset(preset: str, tmp_path: Path) -> None:
    """This is the control of all tests below."""
    folder = trained(tmp_path, "checkpoint.every=128", preset=preset)
    assert {switch: problems(folder, switch) for switch in SWITCHES} == {switch: [] for switch in SWITCHES}
    log = (folder / "log.txt").read_text(encoding="utf-8")
    for switch in SWITCHES:
        assert f"--- debug.{switch}, " in log
    assert "every byte is as it was written, and its weights are those of the policy" in log


@pytest.mark.parametrize(("switch", "overrides", "expected"), [
    ("learning", ["ppo.learning_rate=1e-60"], "no weight has changed in 10 iterations, because the learning rate is"),
    ("learning", ["ppo.learning_rate=1e-12"], "the policy acts as before every update"),
    ("learning", ["ppo.learning_rate=0.5", "ppo.epochs=10"], "updates throw the policy around"),
    ("learning", own_env(length=5), "the observation is always the same"),
    ("learning", own_env(length=5, seen=1e5), "3 of 3 numbers of the observation are huge"),
    ("learning", own_env(length=5, reward=0.0), "no reward was paid in 10 iterations"),
    ("learning", own_env(length=50, scale=1e4), "values are far from their targets"),
    ("learning", own_env(length=1), "all advantages are equal"),
    ("rewards", own_env(length=5, reward=0.0), "no reward was paid in 640 steps"),
    ("starts", own_env(length=1), "100% of the episodes are over after 2 steps or fewer"),
    ("checkpoints", ["checkpoint.every=100_000"], "no checkpoint is due before the end of the run, after 640 steps"),
])
def test_a_mistake_is_named(switch: str, overrides: list[str], expected: str, tmp_path: Path) -> None:
    found = problems(trained(tmp_path, *overrides), switch)
    assert any(expected in problem for problem in found), found


@pytest.mark.slow
def test_a_policy_that_does_always_the_same_is_named(tmp_path: Path) -> None:
    """One action is paid, and the learning rate is far too high: in ten iterations nothing else is chosen."""
    folder = trained(tmp_path, *own_env(length=5), f"env.factory={HERE}:PaysZero", "ppo.learning_rate=0.05", "ppo.epochs=20",
                     "ppo.max_grad_norm=null", "total_steps=2560", "debug.iterations=40")
    assert any("the policy hardly explores any more" in problem for problem in problems(folder, "learning"))


def test_continuous_actions_beyond_their_bounds_are_named(tmp_path: Path) -> None:
    found = problems(trained(tmp_path, "policy.initial_std=5", preset="pendulum"), "actions")
    assert any(re.match(r"action\[0\] is beyond its bounds in [89]\d% of 576 steps", problem) for problem in found), found


@pytest.mark.slow
def test_a_mask_that_forbids_too_much_is_named(tmp_path: Path) -> None:
    folder = trained(tmp_path, f"env.rocket.action={HERE}:OneChoice", "rating=null", "total_steps=256", "debug.all=false",
                     "debug.actions=true", preset="rocket-1v1")
    found = problems(folder, "actions")
    assert any(text.startswith("the mask leaves one choice only in 100% of 128 steps") for text in found), found
    assert any(text.startswith("the mask has never allowed 89 of 90 choices") for text in found), found
    assert any(text.startswith("action is 17 in 100% of 128 steps") for text in found), found


@pytest.mark.slow
def test_a_reward_that_drowns_the_others_and_one_that_never_changes_are_named(tmp_path: Path) -> None:
    folder = trained(tmp_path, f"env.rocket.rewards={{face_ball: 100, '{HERE}:Alive': 1}}", "rating=null", "total_steps=64",
                     "debug.all=false", "debug.rewards=true", preset="rocket-1v1")
    found = problems(folder, "rewards")
    assert any(re.match(r"reward face_ball is 9\d% of everything that was paid in 512 steps", text) for text in found), found
    assert any(text.startswith("reward alive pays the same in every step, 1,") for text in found), found


@pytest.mark.slow
def test_terms_of_lanes_do_not_hide_those_of_the_main_task(tmp_path: Path) -> None:
    """The first arenas play the lane, which has other rewards; what the main task pays is told without them."""
    lanes = f"{{drill: {{share: 0.5, starts: {{kickoff: 1}}, rewards: {{'{HERE}:Alive': 7, speed: 1}}}}}}"
    folder = trained(tmp_path, f"env.rocket.rewards={{face_ball: 100, '{HERE}:Alive': 1}}", f"env.rocket.lanes={lanes}",
                     "rating=null", "total_steps=256", "debug.all=false", "debug.rewards=true", preset="rocket-1v1")
    found = problems(folder, "rewards")
    assert any(re.match("reward face_ball is 9[0-9]% of everything", problem) for problem in found)
    assert any(problem.startswith("reward alive pays the same in every step, 1,") for problem in found)
    text = (folder / "debug" / "rewards.txt").read_text(encoding="utf-8")
    assert "nan" not in text and "of arena 2, played apart" in text and "of arena 0, played apart" not in text
    told = re.search(r"in the ([0-9,]+) steps of the main task", text)
    assert told is not None
    steps = told[1]
    (line,) = (line.split() for line in text[told.start():].splitlines() if line.strip().startswith("alive "))
    assert float(line[1]) == int(steps.replace(",", "")) and float(line[2]) == 1.0, "one for every step of the main task"


def test_checkpoints_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    class InTheWay(Listener):
        """A file takes the place of the folder of checkpoints: also root cannot write into it."""

        def on_start(self, learner: Learner) -> None:
            folder = run_folder(tmp_path) / "checkpoints"
            shutil.rmtree(folder)
            folder.write_text("a file")

    with pytest.raises(UserError, match="was not saved"):
        train("cartpole", *SMALL, "total_steps=640", "checkpoint.every=128", listeners=[InTheWay()])
    found = "\n".join(problems(run_folder(tmp_path), "checkpoints"))
    assert "nothing can be written into" in found
    assert "checkpoint(s) could not be saved by step" in found
    assert "the run cannot be resumed" in found


def test_checkpoints_that_grow_are_named(tmp_path: Path) -> None:
    found = problems(trained(tmp_path, "checkpoint.every=64", listeners=[Grows()]), "checkpoints")
    assert any("checkpoints grow" in problem and "listeners.safetensors" in problem for problem in found), found


# --- the training is the same ------------------------------------------------------------------------------------------

ROCKET = ("env.count=8", "ppo.rollout_steps=8", "env.groups=2", "rating=null", "ppo.normalize_obs=true")


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "overrides"), [
    ("cartpole", ()),
    ("cartpole-memory", ("policy.memory.sequence=8", "ppo.normalize_obs=true")),
    ("pendulum", ("policy.std=gsde",)),
    ("cartpole", ("env.id=null", "env.factory=wavedash.envs.puzzles:masked_cartpole")),
    ("cartpole", ("env.id=null", f"env.factory={HERE}:Global")),
    ("cartpole", ("env.workers=2",)),
    ("rocket-1v1", ROCKET),
    ("rocket-1v1", (*ROCKET, "policy.memory.kind=gru", "policy.memory.sequence=8")),
    ("rocket-1v1", (*ROCKET, "opponents={share: 0.5, slots: 2}")),
    ("rocket-1v1", (*ROCKET, "env.rocket.simulator=rocketsim", "env.workers=2", "env.count=4")),
], ids=lambda value: value if isinstance(value, str) else " ".join(value)[-40:])
def test_the_training_is_the_same_bit_for_bit(preset: str, overrides: tuple[str, ...], tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    contents = []
    for switch in ("true", "false"):
        monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / switch))
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        assert train(preset, *SMALL, *overrides, "total_steps=320", f"debug.all={switch}", trust=True) == 0
        (final,) = tmp_path.glob(f"{switch}/*/*/final/*")
        contents.append({file.name: file.read_bytes() for file in final.glob("*.safetensors")})
        reports = list(tmp_path.glob(f"{switch}/*/*/debug/*.txt"))
        assert len(reports) == (len(SWITCHES) if switch == "true" else 0)
        assert not any(" failed (" in file.read_text(encoding="utf-8") for file in tmp_path.glob(f"{switch}/*/*/log.txt"))
    assert contents[0] == contents[1]


@pytest.mark.slow
def test_without_a_switch_nothing_of_it_is_imported(tmp_path: Path) -> None:
    """In a process of its own: other tests import it."""
    code = ("import sys, wavedash; wavedash.train('cartpole', 'total_steps=64', 'ppo.rollout_steps=8', 'report.console=off'); "
            "sys.exit(any(name.startswith('wavedash.debug') for name in sys.modules))")
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0
    assert not list(tmp_path.glob("**/debug"))


@pytest.mark.slow
def test_of_several_processes_the_first_reports(tmp_path: Path) -> None:
    run_in_two(tmp_path, "-m", "wavedash", "train", "cartpole", *SMALL, "total_steps=512", "debug.iterations=2",
        "ppo.normalize_obs=true")
    folder = run_folder(tmp_path)
    log = (folder / "log.txt").read_text(encoding="utf-8")
    assert " failed (" not in log
    for switch in ("actions", "learning", "starts", "rewards"):
        assert log.count(f"--- debug.{switch}, the first 2 iterations (step 384)") == 1


# --- a report never ends a run -----------------------------------------------------------------------------------------


class Failing(GymnasiumKind):
    """A kind whose reports fail."""

    def make(self, config: EnvConfig, device: Any) -> Any:
        return super().make(config.model_copy(update={"factory": None, "id": "CartPole-v1", "kwargs": {}}), device)

    def debug_report(self, *_: Any) -> Any:
        raise ZeroDivisionError("a mistake in a report")


def test_a_report_that_fails_is_logged_and_the_run_goes_on(tmp_path: Path) -> None:
    assert issubclass(Failing, Kind)
    folder = trained(tmp_path, "env.id=null", f"env.factory={__name__}:Failing")
    log = (folder / "log.txt").read_text(encoding="utf-8")
    for switch in ("actions", "starts", "rewards"):
        assert f"debug.{switch} failed (ZeroDivisionError: a mistake in a report): the run goes on without this report" in log
    assert list(folder.glob("final/*"))


def test_a_folder_that_cannot_be_written_leaves_the_reports_in_the_log(tmp_path: Path) -> None:
    class InTheWay(Listener):
        def on_start(self, learner: Learner) -> None:
            (run_folder(tmp_path) / "debug").write_text("a file")

    log = (trained(tmp_path, listeners=[InTheWay()]) / "log.txt").read_text(encoding="utf-8")
    assert "the report is in the log only" in log and "--- debug.learning, the first 10 iterations" in log


def test_reports_of_a_run_that_is_shorter_than_they_look_come_at_its_end(tmp_path: Path) -> None:
    folder = trained(tmp_path, "total_steps=1", "checkpoint.every=1")
    for switch in ("actions", "learning", "starts", "rewards"):
        assert "the first iteration (step 64)" in (folder / "debug" / f"{switch}.txt").read_text(encoding="utf-8")


def test_a_resumed_run_is_reported_on_anew(tmp_path: Path) -> None:
    folder = trained(tmp_path, "debug.all=false")
    assert not (folder / "debug").exists()
    assert resume(str(folder), "total_steps=1280", "debug.learning=true", "debug.iterations=2") == 0
    assert [path.name for path in (folder / "debug").iterdir()] == ["learning.txt"]
    text = (folder / "debug" / "learning.txt").read_text(encoding="utf-8")
    assert "the first 2 iterations (step 768)" in text
