"""The league of a run: who plays, what is counted, and that a run that was stopped and resumed is the one that was not."""
from __future__ import annotations

import csv
import json
import random
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from tests import prepared
from tests.league.leagues import TINY, Stop, ending, policy_folder, saved, trained
from wavedash.assembly import assembled
from wavedash.config_file import ConfigError, load_config
from wavedash.errors import UserError
from wavedash.league.league import League
from wavedash.league.pool import named_by_checkpoints
from wavedash.league.seating import guest_name, invited, reseated
from wavedash.loading import load_policy
from wavedash.ppo.learner import Learner
from wavedash.ppo.listener import IterationReport, Listener
from wavedash.preflight import check_run
from wavedash.runs.folder import RunFolder
from wavedash.training import resume

pytestmark = pytest.mark.slow


def rows(run: Path) -> list[dict[str, str]]:
    with (run / "league" / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


class Watch(Listener):
    """Compares the league with the arenas after every iteration. It looks before the league does, so it sees the weights that
    have just played, and every result once."""

    def __init__(self) -> None:
        self.games = 0
        self.seats: list[list[str | None]] = []

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        (league,) = (listener for listener in learner.listeners if isinstance(listener, League))
        results = sum(int(task.line_up.results.sum()) for task in learner.env.tasks)
        self.games += results
        self.seats.append(list(league.state.seats))
        for group in league.seating.groups:
            for slot in group.slots:
                if group.actors is not None:
                    weights = league.pool.read(league.state.seats[slot])
                    for name, x in group.actors._places(slot - group.slots.start):
                        assert torch.equal(x.flatten(), weights[name].flatten()), (slot, name)


class Whole(NamedTuple):
    """A run that is never stopped."""

    run: Path
    watch: Watch


WHOLE = ("total_steps=2500", "opponents.members=[chaser]")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    watch = Watch()
    return Whole(trained(tmp_path_factory.mktemp("whole"), *WHOLE, listeners=(watch,)), watch)


# --- exact resume ----------------------------------------------------------------------------------------------------

OTHER = {"default": ["env.rocket.observation=default_obs", "policy.hidden=[4]"],
         "slow": ["env.rocket.action={lookup_table: {ticks: 16}}", "policy.hidden=[4]", "policy.memory={kind: gru, size: 4}"]}
KINDS: dict[str, tuple[str, list[str]]] = {
    "GRU": ("rocket-1v1", ["policy.memory={kind: gru, size: 4, sequence: 4}", "ppo.normalize_obs=true"]),
    "2v2, LSTM, RocketSim": ("rocket-2v2", ["policy.memory={kind: lstm, size: 4, sequence: 8}", "opponents.deterministic=true",
                                 "opponents.strategy=rating", "env.count=6", "env.rocket.simulator=rocketsim"]),
    "guests": ("rocket-1v1", ["opponents.slots=5", "opponents.members=[chaser, guests/default, guests/slow]", "env.groups=1"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_was_stopped_and_resumed_is_the_one_that_was_not(kind, tmp_path, monkeypatch):
    """It is stopped in the middle of episodes and between draws, and guests are gone from where they were when it goes on."""
    preset, options = KINDS[kind]
    monkeypatch.chdir(tmp_path)
    if kind == "guests":
        for name, overrides in OTHER.items():
            policy_folder(tmp_path / "guests" / name, *overrides)
    whole = trained(tmp_path / "whole", "total_steps=2000", *options, preset=preset)
    stopped = trained(tmp_path / "stopped", "total_steps=2000", *options, preset=preset, listeners=(Stop(9),))
    assert saved(stopped)["steps"] < 1800 and len(saved(stopped)["members"]) > 2
    shutil.rmtree(tmp_path / "guests", ignore_errors=True)
    assert resume(str(stopped)) == 0
    one, two = ending(whole), ending(stopped)
    assert two["league"]["draws"] > 5 and len({row["member"] for row in rows(whole)}) > 2
    for part in one:
        assert two[part] == one[part], part


def test_a_run_that_is_killed_and_resumed_is_the_one_that_was_not(whole, tmp_path):
    """The process is a real one, and it is killed at a random moment: while it plays, learns, or writes."""
    iterations, seconds = random.randint(6, 12), random.uniform(0.0, 0.06)
    script = (f"import tests.league.leagues as it; from pathlib import Path\n"
              f"it.trained(Path({str(tmp_path)!r}), *{WHOLE}, listeners=(it.KillSoon({iterations}, {seconds}),))")
    done = prepared.run(["-c", script], Path(__file__).parents[2])
    assert done.returncode == -9, done.stderr
    (run,) = tmp_path.glob("*/*/")
    assert list(run.glob("checkpoints/step-*")) and not list(run.glob("final/*"))
    assert resume(str(run)) == 0
    one, two = ending(whole.run), ending(run)
    for part in one:
        assert two[part] == one[part], (part, iterations, seconds)


# --- what is counted and who plays -----------------------------------------------------------------------------------


def test_every_game_is_credited_once_and_every_slot_holds_the_weights_of_its_member(whole):
    run, watch = whole
    league = saved(run)
    assert watch.games > 20
    told = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert sum(line["league/games"] for line in told) == watch.games
    reported = sum(int(row[outcome]) for row in rows(run) for outcome in ("won", "drawn", "lost"))
    assert reported + sum(sum(member["unreported"]) for member in league["members"]) == watch.games
    assert all(0 < line["league/win_rate"] < 1 for line in told if "league/win_rate" in line)
    assert {seats[-1] for seats in watch.seats} == {"chaser"}, "a script has a slot of its own"
    assert watch.seats[0][:2] == ["step-000000000000"] * 2 and len({name for seats in watch.seats for name in seats}) > 4


def test_seats_change_as_little_as_possible():
    assert reseated(["a", "b", None, "c"], ["b", "d", "a", "a"]) == {2: "d", 3: "a"} or \
        reseated(["a", "b", None, "c"], ["b", "d", "a", "a"]) == {2: "a", 3: "d"}
    assert reseated(["a", "a"], ["a", "a"]) == {}
    assert reseated([None, None], ["a", "b"]) == {0: "a", 1: "b"}


def test_a_member_that_is_always_beaten_leaves_and_the_oldest_and_newest_stay(tmp_path):
    run = trained(tmp_path, "total_steps=2500", "opponents.prune_above=0", "opponents.prune_games=1", "opponents.pool=32")
    kept, ever = saved(run)["members"], {row["member"] for row in rows(run)}
    assert kept[0]["step"] == 0 and kept[-1]["step"] >= 2000
    assert len(kept) < 5 < len({*ever, *(member["name"] for member in kept)})


def test_the_pool_is_bounded_and_any_snapshot_can_be_named_as_an_opponent(whole, tmp_path):
    chaser, *members = saved(whole.run)["members"]
    assert chaser["guest"] and len(members) == 4 and members[0]["step"] == 0
    named = named_by_checkpoints(RunFolder(whole.run))
    assert named >= {member["name"] for member in members}
    other = trained(tmp_path, "total_steps=600", f"opponents.members=[{whole.run / 'league' / members[1]['name']}]")
    (guest,) = (member for member in saved(other)["members"] if member["guest"])
    assert guest["sha256"] == members[1]["sha256"], "it has the learner's signature, and is copied"


# --- on disk ---------------------------------------------------------------------------------------------------------


def test_what_a_kept_checkpoint_names_stays_and_it_can_be_resumed(tmp_path):
    run = trained(tmp_path, "total_steps=3000", "checkpoint.spaced_every=900", "checkpoint.keep=1", "opponents.pool=2")
    disk = {path.name for path in (run / "league").glob("step-*")}
    assert disk >= named_by_checkpoints(RunFolder(run)) and len(disk) > 4
    first, *_, last = sorted(run.glob("spaced/step-*"))
    needed = [run / "league" / member["name"] for member in saved(run, last)["members"]]
    before = {path: path.stat().st_mtime_ns for path in needed}
    assert not set(before) & {run / "league" / member["name"] for member in saved(run, first)["members"][1:]}
    assert resume(str(first), "total_steps=2000", "ppo.learning_rate=0.01") == 0
    assert {path: path.stat().st_mtime_ns for path in needed} == before
    assert resume(str(last), "total_steps=3200") == 0


def test_garbage_is_collected_when_nobody_names_it_any_more(tmp_path):
    run = trained(tmp_path, "total_steps=4000", "checkpoint.keep=1", "checkpoint.every=200", "opponents.pool=2",
                  "opponents.snapshot_every=200")
    disk, named = {path.name for path in (run / "league").glob("step-*")}, named_by_checkpoints(RunFolder(run))
    left = {name for name in disk - named if int(name[5:17]) < 3400}
    assert len(disk) < 10 and not left, "what has just left may still be there"


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_a_league_that_is_not_whole_is_not_resumed_unless_it_is_deleted(harm, whole, tmp_path, caplog):
    run = Path(shutil.copytree(whole.run, tmp_path / "run"))
    folder = run / "league" / saved(run)["members"][1]["name"]
    if harm == "missing":
        shutil.rmtree(folder)
    else:
        weights = folder / "policy.safetensors"
        weights.write_bytes(weights.read_bytes()[:-7])
    with pytest.raises(UserError, match=f"{folder.name} is {harm}.*delete the whole folder league/ to begin the league anew"):
        resume(str(run), "total_steps=2800")
    shutil.rmtree(run / "league")
    assert resume(str(run), "total_steps=2800") == 0
    assert "the league begins anew" in caplog.text
    assert saved(run)["members"][1]["step"] >= 2000


class FileInTheWay(Listener):
    """Something takes the place of the league's folder for a while, so that nothing can be written there."""

    def __init__(self, run: Path) -> None:
        self.root = run

    def on_iteration(self, learner: Learner, report: IterationReport) -> None:
        folder = next(self.root.glob("*/*/")) / "league"
        if report.iteration == 2:
            folder.rename(folder.with_name("aside"))
            folder.write_text("in the way")
        elif report.iteration == 12:
            folder.unlink()
            folder.with_name("aside").rename(folder)


def test_a_snapshot_that_fails_does_not_end_the_run_and_is_tried_again(tmp_path, caplog):
    run = trained(tmp_path, "total_steps=2500", listeners=(FileInTheWay(tmp_path),))
    told = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert told[-1]["health/failed_snapshots"] > 1 and "no snapshot for the league" in caplog.text
    steps = [member["step"] for member in saved(run)["members"]]
    assert steps[0] == 0 and steps[-1] > 1600, "snapshots are taken again once they can be written"


# --- settings --------------------------------------------------------------------------------------------------------


def test_opponents_are_turned_on_changed_and_off_on_resume(tmp_path):
    run = trained(tmp_path, "total_steps=600", "opponents=null")
    assert not (run / "league").exists()
    on = [word for word in TINY if word.startswith("opponents.")]
    assert resume(str(run), "total_steps=1500", *on) == 0
    assert saved(run)["members"][0]["step"] >= 600, "the first opponent is the policy as it was then"
    assert resume(str(run), "total_steps=2100", "opponents.slots=5", "opponents.members=[chaser]", "opponents.share=1") == 0
    assert len(saved(run)["seats"]) == 5 and saved(run)["seats"][-1] == "chaser"
    assert resume(str(run), "total_steps=2700", "opponents.members=[]", "opponents.slots=2") == 0
    assert len(saved(run)["seats"]) == 2 and not any(member["guest"] for member in saved(run)["members"])
    assert resume(str(run), "total_steps=3000", "opponents=null") == 0
    state = json.loads((max(run.glob("checkpoints/step-*")) / "state.json").read_text())
    assert "league" not in state.get("listeners", {})


def test_a_guest_comes_back_from_its_copy_after_a_time_without_opponents(tmp_path):
    """Its source is gone, and no checkpoint names the copy."""
    guest = policy_folder(tmp_path / "guests" / "one", "policy.hidden=[4]")
    options = ["opponents.slots=3", f"opponents.members=[{guest}]"]
    run = trained(tmp_path / "runs", "total_steps=300", *options)
    shutil.rmtree(guest)
    assert resume(str(run), "total_steps=600", "opponents=null", "checkpoint.keep=1") == 0
    shutil.rmtree(run / "best", ignore_errors=True)
    assert not named_by_checkpoints(RunFolder(run))
    assert resume(str(run), "total_steps=900", *options) == 0
    assert saved(run)["seats"][-1] == guest_name(str(guest))


@pytest.mark.parametrize(("options", "warned"), [(["opponents.share=0.5"], False), (["opponents.share=0.1"], True)])
def test_a_share_that_slots_do_not_allow_is_told(options, warned, tmp_path, caplog):
    with assembled(load_config("rocket-1v1", [*TINY, *options])) as learner:
        (league,) = (listener for listener in learner.listeners if isinstance(listener, League))
        league.run = RunFolder(tmp_path)
        league.on_start(learner)
        league.on_stop(learner, None)
    assert ("opponents play in 6 of 12 arenas, which is 50 % and not opponents.share=0.1" in caplog.text) == warned


def test_a_game_that_began_against_another_script_counts_for_nobody(tmp_path):
    """As on a resume with another script in the slot of the last one."""
    with assembled(load_config("rocket-1v1", [*TINY, "opponents.members=[chaser]"])) as learner:
        (league,) = (listener for listener in learner.listeners if isinstance(listener, League))
        league.run = RunFolder(tmp_path)
        league.on_start(learner)
        line_ups = [task.line_up for task in learner.env.tasks]
        for line_up in line_ups:
            line_up.void.zero_()
            line_up.results.fill_(7)  # of the last iteration, which was interrupted
        league.state.seats[-1] = "idle"
        league._take_seats()
        assert league.state.seats[-1] == "chaser"
        for line_up in line_ups:
            assert torch.equal(line_up.void, line_up.slot_of_arena() == 2) and line_up.void.any()
            assert line_up.results.tolist() == [[7, 7, 7], [7, 7, 7], [0, 0, 0]]
        league.on_stop(learner, None)


@pytest.mark.parametrize(("preset", "options", "message"), [
    ("cartpole", ["opponents={}"], "opponents is for Rocket League tasks"),
    ("rocket-1v1", ["opponents={}", "env.rocket.orange=2"], "1v2: set blue and orange to the same number"),
    ("rocket-1v1", ["opponents={}", "env.rocket.orange=0"], "1v0: set blue and orange to the same number"),
])
def test_tasks_without_two_equal_teams_are_refused(preset, options, message):
    with pytest.raises(ConfigError, match=message):
        load_config(preset, options)


@pytest.mark.parametrize(("members", "message"), [
    ("[chasr]", "did you mean 'chaser'"),
    ("[chaser, chaser]", "names 'chaser' twice"),
    ("[chaser, defender, idle]", "opponents.slots=3 is too few.*opponents.slots=4 or more"),
    ("[nowhere/to/be/found]", "there is no player"),
    ("[chaser+idle]", "is a team of several players"),
    ("['tests.league.test_league:Nobody']", "Nobody"),
])
def test_members_that_cannot_play_are_refused_before_there_is_a_run(members, message, tmp_path):
    with pytest.raises(UserError, match=message):
        trained(tmp_path, "total_steps=600", f"opponents.members={members}")
    assert not list(tmp_path.glob("*/*"))
    with pytest.raises(UserError, match=message):
        check_run(load_config("rocket-1v1", [*TINY, f"opponents.members={members}"]))


def test_the_champion_is_a_guest_by_name_and_the_one_for_the_size_of_the_teams(tmp_path):
    run = trained(tmp_path, "total_steps=300", "opponents.members=[champion]", "opponents.snapshot_every=100")
    guest, *_ = saved(run)["members"]
    assert guest["name"] == "champion" and saved(run)["seats"][-1] == "champion"
    theirs, ours = (load_policy(path).policy.state_dict() for path in ("champion", run / "league" / "champion"))
    assert all(torch.equal(x, ours[name]) for name, x in theirs.items())
    with pytest.raises(UserError, match="no champion for 2v2"):
        invited(load_config("rocket-2v2", ["opponents.members=[champion]"]))


def test_a_policy_for_smaller_teams_is_refused_by_the_name_that_was_asked_for(tmp_path):
    theirs = policy_folder(tmp_path / "their bot", "policy.hidden=[4]")
    for refuses in (lambda: trained(tmp_path / "runs", f"opponents.members=[{theirs}]", preset="rocket-2v2"),
                    lambda: check_run(load_config("rocket-2v2", [*TINY, f"opponents.members=[{theirs}]"]))):
        with pytest.raises(UserError, match=f"^{theirs} cannot play Rocket League 2v2, its observation has no room"):
            refuses()


@pytest.mark.parametrize(("overrides", "arenas"), [(["env.count=8"], 4), (["env.count=4", "env.groups=1"], 4),
                                                   (["env.count=8", "env.rocket.simulator=rocketsim", "env.workers=2"], 4)])
def test_too_few_arenas_are_found_by_the_check_too(overrides, arenas):
    """`wavedash config check` says what `wavedash train` would say."""
    config = load_config("rocket-1v1", [*TINY, *overrides, "opponents.slots=5"])
    with pytest.raises(UserError, match=f"each of the 5 slots for opponents needs an arena .*a group has {arenas}"):
        check_run(config)
    check_run(load_config("rocket-1v1", [*TINY, *overrides, "opponents.slots=4"]))



def test_a_guest_has_one_name_whatever_is_in_its_path():
    assert guest_name("chaser") == "chaser"
    names = [guest_name(asked) for asked in ("a/b", "a-b", "a b", "step-000000000000", "../a-b", "my.module:Class")]
    assert len(set(names)) == len(names) and not any(set(name) & set("/.: ") for name in names)
    assert not guest_name("step-000000000000").startswith("step-000000000000") or guest_name("step-1") != "step-1"
