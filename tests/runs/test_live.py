"""Changes to a run while it runs: what counts, what is refused, what is kept.

The reference of every change is another run: one that was stopped at that step and resumed with the same overrides. Both must
be equal bit for bit, weights and metrics. Requests are handed to real runs through the files that `wavedash set` uses.
"""
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import prepared
from tests.envs.whole_envs import PayKind, Rows
from wavedash.config import EnvConfig, OpponentsConfig
from wavedash.config_file import load_config
from wavedash.envs.vec_env import VecEnv
from wavedash.errors import UserError
from wavedash.league.league import live_options
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.runs import inbox, live_file
from wavedash.runs.ask import read_request, running
from wavedash.runs.changes import ChangeError, change, live_keys
from wavedash.runs.find import find_run
from wavedash.runs.folder import RunFolder
from wavedash.runs.inbox import Answer, Inbox, Request, ask
from wavedash.runs.plain import to_json
from wavedash.runs.saver import Saver
from wavedash.training import resume, train

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TINY = ("env.count=4", "ppo.rollout_steps=8", "ppo.epochs=2", "ppo.minibatch_size=16", "policy.hidden=[8]", "device=cpu",
        "threads=1", "report.console=off", "report.tensorboard=false", "checkpoint.every=1_000_000", "checkpoint.keep=100")
CARTPOLE = ("cartpole", *TINY, "total_steps=256", "ppo.normalize_reward=true")
"""A rollout that calibrates and seven iterations, 32 steps each."""
ROCKET = ("rocket-2v2", *TINY, "env.count=4", "env.groups=2", "total_steps=1024", "rating=null",
          "env.rocket.rewards={goal: {weight: 10, zero_sum: 1}, touch: 1, velocity_player_to_ball: 0.1}",
          "env.rocket.starts={kickoff: 1, random: {weight: 1, ball_in_air: 0.5}}",
          "env.rocket.endings={goal: {}, no_touch: {seconds: 0.5}, time_out: {seconds: 1}}")
"""Eight iterations of 128 steps, in two shards."""
LANES = (*ROCKET, "env.rocket.lanes={turtle: {share: 0.5, most: 1, starts: {turtle: 1, kickoff: 0}, endings: {goal: {}, "
         "time_out: {seconds: 0.3}}, rewards: {recovery: 1, touch: 2}, measures: [turtle]}}",
         "env.rocket.endings={goal: {}, no_touch: null, time_out: {seconds: 1}}")
LEAGUE = ("rocket-1v1", *TINY, "ppo.rollout_steps=4", "total_steps=192", "rating=null",
          "env.rocket.endings={time_out: {seconds: 0.1}}", "opponents.share=0.5", "opponents.slots=2",
          "opponents.snapshot_every=20", "opponents.refresh_every=1")
"""Eight iterations of 24 steps with two opponents, and a snapshot in each."""
ROOMY = ("rocket-1v1", *TINY, "env.count=8", "env.groups=1", "ppo.rollout_steps=4", "total_steps=384", "rating=null",
         "env.rocket.endings={time_out: {seconds: 0.1}}", "opponents.most=0.5", "opponents.slots=2",
         "opponents.snapshot_every=20", "opponents.refresh_every=1", "policy.memory={kind: gru, size: 4, sequence: 4}")
"""The same with room: opponents in none, 25 or 50 % of the arenas."""
WALK = ("walk-flat", *TINY, "total_steps=256", "env.walk.endings={fallen: {}, off_tile: null, time_out: {seconds: 0.2}}")
"""Eight iterations of 32 steps with four robots."""
AT = 4
"""The iteration after which settings change."""


class Doing(Listener):
    """Does something after one iteration. It is called before the listener that takes requests, which finds them at once."""

    def __init__(self, act: Callable[[Learner], Any], at: int = AT) -> None:
        self.act, self.at = act, at
        self.result: Any = None

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        if report.iteration == self.at:
            self.result = self.act(learner)


class Asking(Doing):
    """Hands requests over, and does not wait for the answers: the run is in this thread."""

    def __init__(self, *words: str, at: int = AT) -> None:
        super().__init__(lambda learner: post(folder_of(learner), *words), at)


class LastWords(Listener):
    """Keeps what the requests before it were answered."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.told: list[tuple[int, str]] = []

    def on_event(self, learner: Learner, event: str) -> None:
        self.told.append((learner.steps, event))

    def between_iterations(self, learner: Learner) -> None:
        folder = folder_of(learner) / inbox.FOLDER
        for path in sorted(folder.glob(f"*{inbox.ANSWER}")):
            self.answers.append(Answer(**json.loads(path.read_text())))
            path.unlink()

    def on_stop(self, learner: Learner, error: BaseException | None) -> None:
        self.between_iterations(learner)


def folder_of(learner: Learner) -> Path:
    (saver,) = (listener for listener in learner.listeners if isinstance(listener, Saver))
    return saver._run.path


def post(run: Path, *words: str) -> None:
    """Writes a request as `wavedash set` does."""
    request = read_request(words)
    content = {"values": request.values, "orders": list(request.orders), "by": "a test"}
    path = run / inbox.FOLDER / f"{time.time_ns():020d}-test"
    path.with_suffix(".tmp").write_text(to_json(content))
    path.with_suffix(".tmp").rename(path.with_name(path.name + inbox.ASK))


def trained(folder: Path, settings: Sequence[str], *listeners: Listener) -> Path:
    """Trains in a folder of its own, and returns that of the run."""
    root = folder / "runs"
    assert train(*settings, listeners=listeners) == 0
    (run,) = (path.parent for path in root.glob("*/*/config.yaml"))
    return run


@pytest.fixture(autouse=True)
def _root(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))


def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder.mkdir()
    monkeypatch.setenv("WAVEDASH_RUNS", str(folder / "runs"))
    return folder


def ending(run: Path) -> tuple[dict[str, torch.Tensor], list[dict[str, float]]]:
    """The tensors of the final checkpoint, and the metrics of every iteration, without times."""
    final = RunFolder(run).store("final").newest()
    assert final is not None
    tensors, _ = final.load()
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    timed = ("second", "time")
    return ({f"{file}/{name}": x for file, content in tensors.items() for name, x in content.items()},
            [{key: value for key, value in row.items() if not any(word in key for word in timed)} for row in rows])


def equal(one: Path, other: Path, marks: bool = False) -> bool:
    """Whether both ended alike, bit for bit. `marks`: with the metric that counts changes; a resume with overrides has none."""
    (mine, my_rows), (theirs, their_rows) = ending(one), ending(other)
    if not marks:
        my_rows, their_rows = ([{key: value for key, value in row.items() if key != "live/changes"} for row in rows]
                               for rows in (my_rows, their_rows))
    if my_rows != their_rows or mine.keys() != theirs.keys():
        return False
    return all(torch.equal(x, theirs[name]) for name, x in mine.items())


def events(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]


CHANGES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "rates": (CARTPOLE, ("ppo.learning_rate=1e-4", "ppo.schedule.kind=cosine", "ppo.schedule.floor=0.3", "total_steps=288")),
    "coefficients": (CARTPOLE, ("ppo.entropy_coef=0.05", "ppo.clip_range=0.1", "ppo.epochs=3",
                                "ppo.clip_schedule.kind=linear")),
    "discounts": (CARTPOLE, ("ppo.gamma=0.9", "ppo.gae_lambda=0.5")),
    "a discount that moves": (CARTPOLE, ("ppo.gamma=0.9", "ppo.gamma_end=0.99")),
    "the critic's rate": ((*CARTPOLE, "ppo.critic_learning_rate=1e-3", "ppo.schedule.kind=kl"),
                          ("ppo.critic_learning_rate=1e-2", "ppo.schedule.target_kl=0.5")),
    "rewards": (ROCKET, ("env.rocket.rewards.goal.weight=20", "env.rocket.rewards.touch=-3",
                         "env.rocket.rewards.velocity_player_to_ball.weight=2", "env.rocket.team_spirit=0.5",
                         "env.rocket.zero_sum=0.5", "env.rocket.reward_mode=hybrid", "env.rocket.dense_scale=0.3")),
    "episodes": (ROCKET, ("env.rocket.starts.kickoff=0", "env.rocket.starts.random.weight=3",
                          "env.rocket.endings.no_touch.seconds=0.2", "env.rocket.endings.time_out.seconds=0.4")),
    "endings that are switched": (LANES, ("env.rocket.endings.no_touch={seconds: 0.2}", "env.rocket.endings.time_out=null",
                                          "env.rocket.lanes.turtle.endings.goal=null")),
    "lanes": (LANES, ("env.rocket.lanes.turtle.share=1", "env.rocket.lanes.turtle.starts.kickoff=1",
                      "env.rocket.lanes.turtle.rewards.recovery=3", "env.rocket.lanes.turtle.endings.time_out.seconds=0.2")),
    "a lane that is left": (LANES, ("env.rocket.lanes.turtle.share=0",)),
    "a walking robot": (WALK, ("env.walk.rewards.track_velocity.weight=3", "env.walk.rewards.torque.weight=0",
                               "env.walk.reward_floor=-1", "env.walk.endings.time_out.seconds=0.1",
                               "env.walk.endings.fallen.tilt=20")),
    "opponents": (LEAGUE, ("opponents.strategy=recent", "opponents.decay=0.1", "opponents.refresh_every=2",
                           "opponents.pool=2")),
    "more opponents": ((*ROOMY, "opponents.share=0"), ("opponents.share=0.5",)),
    "fewer opponents": ((*ROOMY, "opponents.share=0.5"), ("opponents.share=0.25",)),
    "no opponents": ((*ROOMY, "opponents.share=0.5"), ("opponents.share=0",)),
    "opponents in teams of several sizes": (
        (*ROOMY, "opponents.share=0", "env.rocket.sizes={1v1: 0.5, 2v2: 0.5}", "total_steps=576",
         "env.rocket.observation={advanced_obs_plus: {team_size: 2}}"), ("opponents.share=0.5", "opponents.pool=2")),
}


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Runs without a change, each trained once."""
    made: dict[Sequence[str], Path] = {}

    def run(settings: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> Path:
        if settings not in made:
            made[settings] = trained(in_folder(tmp_path_factory.mktemp("same") / "run", monkeypatch), settings)
        return made[settings]

    return run


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_equals_a_resume_with_the_same_overrides(what, tmp_path, monkeypatch, unchanged):
    """Also if the process is killed after it: the copy of the run folder, taken two iterations later without any sign of an
    end, goes on in the same way."""
    settings, overrides = CHANGES[what]
    here = in_folder(tmp_path / "changed", monkeypatch)
    copied = tmp_path / "killed" / "run"
    killing = Doing(lambda learner: shutil.copytree(folder_of(learner), copied), AT + 2)
    changed = trained(here, settings, Asking(*overrides), killing)

    here = in_folder(tmp_path / "resumed", monkeypatch)
    resumed = trained(here, settings, Doing(lambda learner: learner.stop("here"), AT))
    resume(str(resumed), *overrides)

    same = unchanged(settings, monkeypatch)
    assert equal(changed, resumed)
    assert not equal(changed, same), "the change counts"
    assert ending(changed)[1][:AT] == ending(same)[1][:AT], "from its step on"
    assert load_config(str(changed / "config.yaml")) == load_config(str(resumed / "config.yaml"))
    resume(str(copied))
    assert equal(copied, changed, marks=True)


def test_every_change_is_an_event(tmp_path):
    last = LastWords()
    run = trained(tmp_path, CARTPOLE, Asking("ppo.learning_rate=1e-4", "ppo.clip_range=0.2"), Asking("ppo.lr=1", at=6), last)
    rate, clip, wrong = events(run)
    assert last.told == [(32 * (AT + 1), "ppo.learning_rate: 0.001 -> 0.0001")], "listeners are told of what changed"
    config = load_config("cartpole")
    assert rate.items() >= {"iteration": AT, "step": 32 * (AT + 1), "key": "ppo.learning_rate", "old": config.ppo.learning_rate,
                            "new": 1e-4, "by": "a test"}.items()
    assert clip["old"] == clip["new"] == 0.2
    assert wrong["key"] == "ppo.lr" and wrong["new"] == 1 and "did you mean 'ppo.learning_rate'?" in wrong["refused"]
    assert [answer.done for answer in last.answers] == [True, False]
    assert last.answers[0].said.splitlines() == [
        "ppo.learning_rate: 0.001 -> 0.0001", "ppo.clip_range is 0.2 already", f"from step {32 * (AT + 1)} on"]
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert ["live/changes" in row for row in rows] == [False] * AT + [True] * (len(rows) - AT), "marked in the curves"


REFUSED = {
    "ppo.learning_rat=1": "there is no setting 'ppo.learning_rat'; did you mean 'ppo.learning_rate'?",
    "learning_rate=1": "did you mean 'ppo.learning_rate'?",
    "ppo.learning_rate=-1": "ppo.learning_rate: expected greater than 0, got -1",
    "ppo.learning_rate=fast": "ppo.learning_rate: expected a valid number, got 'fast'",
    "ppo.learning_rate=.nan": "ppo.learning_rate: expected a finite number",
    "ppo.gamma=1; ppo.gamma_end=0.9": "ppo.gamma_end needs ppo.gamma below 1",
    "ppo.schedule=constant": "ppo.schedule cannot change as a whole while the run runs; set what is in it: ppo.schedule.kind",
    "ppo.minibatch_size=4": "wavedash resume RUN ppo.minibatch_size=...",
    "ppo.critic_learning_rate=1": "wavedash resume RUN ppo.critic_learning_rate=...",
    "policy.hidden=[3]": "weights that it has learned would not fit. Begin a new run",
    "policy.memory.sequence=2": "wavedash resume RUN policy.memory.sequence=...",
    "ppo.normalize_obs=false": "weights that it has learned would not fit. Begin a new run",
    "seed=7": "seed cannot change in a run: random streams go on from where they were saved",
    "opponents.share=0.5": "this run has no opponents",
    "nonsense=1": "these may change: total_steps",
    "env.rocket.team_spirit=1; ppo.clip_range=0.5": "while the run runs: this run has no env.rocket",
}
REFUSED_TASK = {
    "env.rocket.rewards.gaol.weight=1": "did you mean 'env.rocket.rewards.goal.weight'?",
    "env.rocket.rewards.goal=1": "set what is in it: env.rocket.rewards.goal.weight",
    "env.rocket.rewards.goal.weight=much": "reward 'goal' needs a weight",
    "env.rocket.rewards.goal.zero_sum=0": "wavedash resume RUN env.rocket.rewards.goal.zero_sum=...",
    "env.rocket.rewards={goal: 1}": "env.rocket.rewards cannot change as a whole",
    "env.rocket.team_spirit=2": "env.rocket.team_spirit: expected less than or equal to 1, got 2",
    "env.rocket.starts.kickoff=0; env.rocket.starts.random.weight=0": "a mixture of starts needs weights of 0 or more",
    "env.rocket.endings.no_touch.seconds=long": "ending 'no_touch' cannot be made with seconds='long'",
    "env.rocket.endings.no_touch.seconds=.nan": "the ending NoTouch needs seconds above 0",
    "env.rocket.endings.goal.seconds=3": "did you mean 'env.rocket.endings.",
    "env.rocket.endings.goal={minutes: 3}": "ending 'goal' has no option 'minutes'",
    "env.rocket.blue=1": "wavedash resume RUN env.rocket.blue=...",
}


REFUSED_WALK = {
    "env.walk.rewards.tourqe=1": "did you mean 'env.walk.rewards.torque",
    "env.walk.commands.ahead.speed=1": "wavedash resume RUN env.walk.commands.ahead.speed=...",
    "env.walk.endings.off_tile.margin=1": "env.walk.endings.off_tile",
    "env.walk.rewards.torque=heavy": "torque",
    "env.walk.levels=3": "wavedash resume RUN env.walk.levels=...",
    "env.walk.endings.time_out.seconds=.nan": "the ending TimeOut needs seconds above 0",
}
REFUSED_SHARE = {
    "opponents.share=0.6": "resume RUN opponents.most=0.6 opponents.share=0.6",
    "opponents.share=-0.1": "opponents.share: expected greater than or equal to 0",
    "opponents.most=0.6": "wavedash resume RUN opponents.most=...",
}
REFUSED_WITHOUT_ROOM = {"opponents.share=0.4": "wavedash resume RUN opponents.share=..."}


@pytest.mark.parametrize(("settings", "refused"), [
    (CARTPOLE, REFUSED), (ROCKET, REFUSED_TASK), (WALK, REFUSED_WALK), ((*ROOMY, "opponents.share=0.5"), REFUSED_SHARE),
    (LEAGUE, REFUSED_WITHOUT_ROOM),
], ids=["cartpole", "rocket", "walk", "opponents with room", "opponents"])
def test_what_cannot_change_is_refused_and_changes_nothing(settings, refused, tmp_path, monkeypatch, unchanged):
    last, asking = LastWords(), [Asking(*words.split("; ")) for words in refused]
    run = trained(in_folder(tmp_path / "asked", monkeypatch), settings, *asking, last)
    assert len(last.answers) == len(refused) and not any(answer.done for answer in last.answers)
    for answer, (words, said) in zip(last.answers, refused.items(), strict=True):
        assert said in answer.said, words
        assert answer.said.endswith("Nothing was changed")
    assert all("refused" in row for row in events(run))
    assert {row["key"] for row in events(run)} >= {words.partition("=")[0] for words in refused}, "each is logged"
    assert len(list((run / "checkpoints").iterdir())) == 1, "nothing was saved for them"
    assert equal(run, unchanged(settings, monkeypatch), marks=True)


def test_a_change_that_a_listener_refuses_is_taken_back_everywhere(tmp_path):
    """The environment and the learner have taken it over already; the task of one shard too."""
    class Stubborn(Listener):
        def on_change(self, learner: Learner, then: Any) -> None:
            if learner.config.ppo.learning_rate == 0.5:
                raise RuntimeError("not with me")

    def look(learner: Learner) -> list[Any]:
        return [learner.config, dict(learner.updater.optimizer.base_rates),
                *(dict(task.rewards.weights) for task in learner.env.tasks),
                *(task.rewards._factors.tolist() for task in learner.env.tasks)]

    def act(learner: Learner) -> bool:
        before = look(learner)
        with pytest.raises(ChangeError, match="RuntimeError: not with me"):
            change(learner, {"ppo.learning_rate": 0.5, "env.rocket.rewards.touch": 7})
        return look(learner) == before

    acting = Doing(act, at=1)
    trained(tmp_path, (*ROCKET, "total_steps=256"), Stubborn(), acting)
    assert acting.result is True


def test_the_list_of_what_may_change_says_its_values(tmp_path):
    last = LastWords()

    def keys(learner: Learner) -> set[str]:
        return set(live_keys(learner))

    asking = Doing(keys, at=1)
    trained(tmp_path, (*LEAGUE, "total_steps=48"), Asking(at=1), asking, last)
    *settings, orders = last.answers[0].said.splitlines()
    assert orders == "orders: continue, list, milestone, pause, phase, save, stop"
    said = dict(line.split("=", 1) for line in settings)
    assert said.keys() == asking.result
    assert said["opponents.refresh_every"] == "1" and said["env.rocket.endings.time_out.seconds"] == "0.1"
    assert {f"opponents.{option}" for option in ("strategy", "target")} <= said.keys()
    assert set(live_options(OpponentsConfig())) <= said.keys() and set(Saver.live) <= said.keys()


class LivePayKind(PayKind):
    """A user's own kind, whose option may change while a run runs."""

    def live_keys(self, config: EnvConfig) -> list[tuple[str, ...]]:
        return [("kwargs", "pay")]

    def change(self, env: VecEnv, config: EnvConfig) -> None:
        assert isinstance(env, Rows)
        env.pay = self.options(config).pay


def test_a_kind_of_ones_own_says_what_may_change(tmp_path, monkeypatch):
    settings = ("cartpole", *CARTPOLE[1:], "ppo.normalize_reward=false", "env.id=null", "env.kwargs={pay: 1.0}",
                "env.factory=tests.runs.test_live:LivePayKind")
    last, asking = LastWords(), [Asking(f"env.kwargs.{word}") for word in ("pay=3.0", "pay=-1", "pay=lots", "pya=1")]
    changed = trained(in_folder(tmp_path / "changed", monkeypatch), settings, *asking, last)
    assert [answer.done for answer in last.answers] == [True, False, False, False]
    for answer, said in zip(last.answers[1:], ("pay below 0 would teach", "'lots'", "'env.kwargs.pay'?"), strict=True):
        assert said in answer.said
    resumed = trained(in_folder(tmp_path / "resumed", monkeypatch), settings, Doing(lambda learner: learner.stop("here")))
    resume(str(resumed), "env.kwargs.pay=3.0")
    assert equal(changed, resumed)


def test_checkpoints_come_as_often_as_is_set(tmp_path):
    run = trained(tmp_path, CARTPOLE, Asking("checkpoint.every=32", "checkpoint.keep=3"))
    steps = sorted(int(path.name.removeprefix("step-")) for path in (run / "checkpoints").iterdir())
    assert steps == [192, 224, 256]


def test_a_paused_run_is_stopped_by_a_signal(tmp_path):
    """The signal comes when no iteration is running; the run is saved, and goes on when it is resumed."""
    def interrupt(learner: Learner) -> None:
        post(folder_of(learner), "pause")
        threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()

    assert train(*CARTPOLE, listeners=[Doing(interrupt)]) == 130
    found = find_run(tmp_path / "runs")
    assert found.checkpoint.metadata["iteration"] == AT
    assert resume(str(found.run.path)) == 0


# --- live.yaml -------------------------------------------------------------------------------------------------------


@pytest.fixture
def at_once(monkeypatch):
    """The file is read as soon as it was seen twice."""
    monkeypatch.setattr(live_file, "SETTLED", 0.0)


def writing(text: str, at: int) -> Doing:
    return Doing(lambda learner: (folder_of(learner) / live_file.NAME).write_text(text), at)


def test_a_file_edited_by_hand_counts(tmp_path, monkeypatch, at_once):
    edited = trained(in_folder(tmp_path / "edited", monkeypatch), ROCKET,
                     writing("env.rocket.rewards:\n  touch: 5\nppo: {learning_rate: 1e-4, epochs: 2}\n", AT))
    asked = trained(in_folder(tmp_path / "asked", monkeypatch), ROCKET,
                    Asking("env.rocket.rewards.touch=5", "ppo.learning_rate=1e-4"))
    assert equal(edited, asked, marks=True)
    assert [(row["key"], row["by"]) for row in events(edited)] == [
        ("env.rocket.rewards.touch", "live.yaml"), ("ppo.learning_rate", "live.yaml")], "what is as it was is no event"


def test_a_wrong_file_is_refused_and_loses_nothing(tmp_path, monkeypatch, at_once, caplog):
    wrong = ["ppo: {learning_rate: 1e-4", "ppo.learning_rate: 1e-4\nppo.learning_rat: 2", "- 1\n- 2", "\x00", "1: [{2: 3}]"]
    edited = trained(in_folder(tmp_path / "edited", monkeypatch), CARTPOLE,
                     *(writing(text, at) for at, text in enumerate(wrong, 1)), writing("ppo.clip_range: 0.1", 7))
    *refused, changed = events(edited)
    assert [row["key"] for row in refused] == [None, "ppo.learning_rate", "ppo.learning_rat", None, None, "1"]
    assert all("refused" in row for row in refused)
    assert (changed["key"], changed["iteration"]) == ("ppo.clip_range", 7)
    assert "live.yaml:1" in caplog.text
    assert equal(edited, trained(in_folder(tmp_path / "asked", monkeypatch), CARTPOLE, Asking("ppo.clip_range=0.1", at=7)))


def test_an_order_in_a_file_is_refused_with_the_command_that_gives_it(tmp_path, at_once):
    run = trained(tmp_path, CARTPOLE, writing("pause: true", 1), writing("phase: next", 3))
    commands = [row["refused"].rpartition(": ")[2] for row in events(run)]
    assert commands == ["wavedash set RUN pause", "wavedash set RUN phase=next"]


def test_a_file_is_not_read_while_it_is_written(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    path = tmp_path / live_file.NAME
    path.write_text("ppo.epochs: 1")
    watched = live_file.LiveFile(tmp_path)
    now[0] = 10.0
    assert watched.take() == [], "what it held at the start does not count"
    for text in ("ppo.entropy_coef: 0.0", "ppo.entropy_coef: 0.01"):
        path.write_text(text)
        assert watched.take() == []
        now[0] += 0.9 * live_file.SETTLED
        assert watched.take() == []
    now[0] += 0.2 * live_file.SETTLED
    assert [request.values for request in watched.take()] == [{"ppo.entropy_coef": 0.01}]
    assert watched.take() == [], "once"
    path.unlink()
    assert watched.take() == []


# --- the files between a command and a run ----------------------------------------------------------------------------


def test_a_request_is_done_once_or_taken_back(tmp_path):
    box = Inbox(tmp_path)
    box.open()
    assert ask(tmp_path, Request({"a": 1}), timeout=0.0) is None
    assert box.take() == [] and list((tmp_path / inbox.FOLDER).iterdir()) == [], "it was taken back"
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(ask, tmp_path, Request({"a": 1.5}, ("save",)), 30.0)
        taken: list[Request] = []
        while not taken:
            taken = box.take()
        assert (taken[0].values, taken[0].orders) == ({"a": 1.5}, ("save",)) and "@" in taken[0].by
        box.answer(taken[0], Answer(True, "yes"))
        assert waiting.result() == Answer(True, "yes")
    assert list((tmp_path / inbox.FOLDER).iterdir()) == []


def test_damaged_requests_are_refused(tmp_path):
    box = Inbox(tmp_path)
    box.open()
    for number, content in enumerate((b"", b"{", b"[]", b'{"values": 1, "orders": [], "by": ""}', b"\xff",
                                      b'{"values": {}, "orders": [7], "by": ""}',
                                      b'{"values": {}, "orders": 3, "by": ""}')):
        (tmp_path / inbox.FOLDER / f"{number}{inbox.ASK}").write_bytes(content)
    taken = box.take()
    assert len(taken) == 7 and all("cannot be read" in request.problem for request in taken)


class Waving(Listener):
    """A user's own listener with orders."""

    orders = ("wave", "break")

    def __init__(self) -> None:
        self.obeyed: list[tuple[str, str | None, int]] = []

    def obey(self, learner: Learner, order: str, argument: str | None) -> str:
        self.obeyed.append((order, argument, learner.iteration))
        if order == "break":
            raise {"politely": UserError("not today"), None: ZeroDivisionError("oh")}[argument]
        return f"waves {argument or 'both hands'}"


def test_orders_of_ones_own_are_obeyed_between_iterations(tmp_path):
    """An argument is handed over as it was typed. What fails is refused, and the run goes on."""
    waving, last = Waving(), LastWords()
    asked = [("wave",), ("wave=007", "ppo.clip_range=0.1", "save"), ("break=politely", "wave"), ("break",), ("pause=2",)]
    run = trained(tmp_path, CARTPOLE, *(Asking(*words) for words in asked), waving, last)
    assert waving.obeyed == [("wave", None, AT), ("wave", "007", AT), ("break", "politely", AT), ("break", None, AT)]
    said = [answer.said.splitlines()[0 if len(answer.said.splitlines()) < 4 else 2] for answer in last.answers]
    assert [answer.done for answer in last.answers] == [True, True, False, False, False]
    assert said == ["waves both hands", "waves 007", "not today", "break failed: ZeroDivisionError: oh",
                    "pause takes no argument: wavedash set RUN pause"]
    rows = [(row["key"], row.get("argument"), "refused" in row) for row in events(run)]
    assert rows == [("wave", None, False), ("ppo.clip_range", None, False), ("wave", "007", False), ("save", None, False),
                    ("break", "politely", True), ("break", None, True), ("pause", "2", True)]
    assert RunFolder(run).finished()


@pytest.mark.parametrize(("word", "near"), [("paus", "did you mean 'pause'?"), ("wav=hello", "did you mean 'wave'?"),
                                            ("total_step=9", "did you mean 'total_steps'?"),
                                            ("ppo.clip_range", "ppo.clip_range is 0.2; to change it, give it a value"),
                                            ("ppo.clip_rang", "did you mean 'ppo.clip_range'?"),
                                            ("ppo", "ppo cannot change as a whole"),
                                            ("policy.hidden", "weights that it has learned would not fit"),
                                            ("zzz", "the orders of this run are break, continue, list, milestone, pause, p")])
def test_an_unknown_order_is_refused_with_the_nearest_and_with_all_that_came_with_it(word, near, tmp_path):
    waving, last = Waving(), LastWords()
    run = trained(tmp_path, (*CARTPOLE, "total_steps=96"), Asking("ppo.clip_range=0.1", "wave", word, at=1), waving, last)
    (answer,) = last.answers
    assert not answer.done and near in answer.said and answer.said.endswith("Nothing was changed")
    assert waving.obeyed == [] and load_config(str(run / "config.yaml")).ppo.clip_range == 0.2
    assert [row["key"] for row in events(run)] == ["ppo.clip_range", "wave", word.partition("=")[0]]
    assert all("refused" in row for row in events(run))


def test_what_a_killed_run_had_taken_is_done_by_the_next_start(tmp_path):
    stopped = trained(tmp_path, CARTPOLE, Doing(lambda learner: learner.stop("here"), AT))
    post(stopped, "ppo.clip_range=0.1")
    post(stopped, "stop")
    assert len(Inbox(stopped).take()) == 2, "taken, and then killed"
    last = LastWords()
    resume(str(stopped), listeners=[last])
    assert [(row["key"], row["iteration"]) for row in events(stopped)] == [("ppo.clip_range", AT + 1)]
    assert RunFolder(stopped).finished(), "an order was meant for a process that is gone"
    assert load_config(str(stopped / "config.yaml")).ppo.clip_range == 0.1


def test_what_was_ordered_while_a_run_gets_ready_is_done(tmp_path):
    """A resume has the lock of its run for minutes before the first iteration, where kernels are compiled. What was ordered
    before it had the lock is refused, and says so."""
    class Early(Listener):
        """Orders something after the lock and before the requests are read: listeners of one's own start first."""

        def on_start(self, learner: Learner) -> None:
            post(stopped, "milestone=meant-for-me")

    stopped = trained(tmp_path, CARTPOLE, Doing(lambda learner: learner.stop("here"), AT))
    post(stopped, "milestone=for-the-dead", "ppo.clip_range=0.1")
    last = LastWords()
    resume(str(stopped), listeners=[Early(), last])
    assert [path.name.partition("-")[2] for path in (stopped / "milestones").iterdir()] == ["meant-for-me"]
    refused, kept = last.answers
    assert not refused.done and "give the same command once more" in refused.said
    assert kept.done and kept.said.startswith("kept step ")
    assert list((stopped / inbox.FOLDER).iterdir()) == []


def test_a_full_disk_refuses_the_change(tmp_path, monkeypatch, unchanged):
    """A change that could not be kept would not be exact on resume."""
    def full(*args: Any) -> None:
        raise UserError("the disk is full")

    last = LastWords()
    broken = Doing(lambda learner: monkeypatch.setattr(Saver, "_save", full), AT)
    mended = Doing(lambda learner: monkeypatch.undo(), AT + 1)
    run = trained(in_folder(tmp_path / "full", monkeypatch), CARTPOLE, Asking("ppo.clip_range=0.1"), broken, mended, last)
    assert last.answers == [Answer(False, "the disk is full\nNothing was changed")]
    assert load_config(str(run / "config.yaml")).ppo.clip_range == 0.2
    rows, plain = (ending(path)[1] for path in (run, unchanged(CARTPOLE, monkeypatch)))
    assert [without_health(row) for row in rows] == [without_health(row) for row in plain]


def without_health(row: Mapping[str, float]) -> dict[str, float]:
    return {key: value for key, value in row.items() if "health" not in key}


def test_a_run_that_nobody_trains_is_named_with_what_to_do(tmp_path):
    with pytest.raises(UserError, match="there is no run at"):
        running(tmp_path)
    run = trained(tmp_path, (*CARTPOLE, "total_steps=32"))
    with pytest.raises(UserError, match=r"is not being trained.*wavedash resume"):
        running(run)
    with pytest.raises(UserError, match="the key 2 cannot be saved"):
        read_request(["ppo.clip_range=[{2: 3}]"])
    with pytest.raises(UserError, match="set twice"):
        read_request(["ppo.a=1", "ppo.a=2"])


# --- a live run ------------------------------------------------------------------------------------------------------


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return prepared.run(["-m", "wavedash", *words], folder, environment)


def test_a_hundred_sets_against_a_live_run(tmp_path):
    """Four users at the same time, every third request wrong: each is answered, each is logged, and the last of each key
    counts. Then the run is paused, saved, let go on, killed, and resumed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [*CARTPOLE, "total_steps=100_000_000", "checkpoint.keep=2"]
    training = prepared.popen(["-m", "wavedash", "train", *words], tmp_path, environment)
    try:
        run = started(tmp_path / "runs", training)

        def user(name: str, key: str) -> list[tuple[dict[str, Any], Answer | None]]:
            asked = []
            for number in range(25):
                wrong = {f"{key}_": number} if number % 3 == 1 else {key: -1.0} if number % 3 == 2 else {}
                values = {"total_steps": 100_000_000, **wrong} if wrong else {key: (number + 1) / 1000}
                asked.append((values, ask(run, Request(values, by=name), 60.0)))
            return asked

        keys = {"ann": "ppo.learning_rate", "bob": "ppo.clip_range", "cid": "ppo.entropy_coef", "dan": "ppo.adam_eps"}
        with ThreadPoolExecutor(4) as threads:
            asked = dict(zip(keys, threads.map(user, keys, keys.values()), strict=True))
        for name, key in keys.items():
            for number, (_, answer) in enumerate(asked[name]):
                assert answer is not None, "each is answered"
                assert answer.done == (number % 3 == 0 and name != "dan"), (key, answer)
        rows = events(run)
        for name in keys:
            wanted = [(key, value) for values, _ in asked[name] for key, value in values.items()]
            assert [(row["key"], row["new"]) for row in rows if row["by"] == name] == wanted, "each is logged, in order"
        config = load_config(str(run / "config.yaml"))
        assert (config.ppo.learning_rate, config.ppo.clip_range, config.ppo.entropy_coef) == (0.025, 0.025, 0.025)

        assert command(tmp_path, "set", str(run), "pause").returncode == 0
        lines = len((run / "metrics.jsonl").read_text().splitlines())
        said = command(tmp_path, "set", str(tmp_path / "runs"), "ppo.clip_range=0.3", "save")
        assert said.stdout.splitlines()[0] == "ppo.clip_range: 0.025 -> 0.3" and "saved at step" in said.stdout
        assert len((run / "metrics.jsonl").read_text().splitlines()) == lines, "it is paused"
        wrong = command(tmp_path, "set", str(run), "ppo.clip_rnge=0.3")
        assert wrong.returncode == 2 and "did you mean 'ppo.clip_range'?" in wrong.stderr
        assert "goes on" in command(tmp_path, "set", str(run), "continue").stdout
        training.kill()
        training.wait()
    finally:
        training.kill()
    silent = command(tmp_path, "set", str(run), "ppo.clip_range=0.4", "--timeout", "0.2")
    assert silent.returncode == 2 and "did not answer within 0.2 seconds" in silent.stderr and "process" in silent.stderr
    _, checkpoint = find_run(run)
    stopping = Doing(lambda learner: learner.config.ppo.clip_range, at=checkpoint.metadata["iteration"] + 1)
    resume(str(run), f"total_steps={checkpoint.step + 32}", listeners=[stopping])
    assert stopping.result == 0.3, "what was set is kept; what nobody answered is not done later"


def started(root: Path, process: Any) -> Path:
    """The folder of the run that a process trains, once it has iterated."""
    for _ in range(600):
        assert process.poll() is None, "it ended"
        for path in root.glob("*/*/metrics.jsonl"):
            if path.read_text():
                return path.parent
        time.sleep(0.1)
    raise AssertionError("it did not start")
