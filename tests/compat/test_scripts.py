"""Scripts for rlgym-ppo run unchanged and find their own checkpoints, and what they trained can be evaluated and resumed."""
from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import prepared
from tests.compat.gym_envs import Match, two_players
from wavedash.compat.rlgym_ppo.script_name import factory_of
from wavedash.envs.errors import EnvError
from wavedash.envs.factory import EnvFactory, import_callable
from wavedash.runs.find import resolve_checkpoint

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).parent / "scripts"


def command(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs in a folder of its own, without a keyboard, and with this user's key in the folder of the test."""
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "WAVEDASH_RUNS": "runs"}
    return prepared.run(words, tmp_path, settings)


def test_a_script_runs_as_it_is_goes_on_and_is_measured_and_resumed(tmp_path):
    bot = str(SCRIPTS / "own_bot.py")
    first = command(tmp_path, "-m", "wavedash.compat.rlgym_ppo", bot)
    assert first.returncode == 0, first.stderr
    assert re.findall(r"^(FOUND|SAVED|TRAINED) (.*)", first.stdout, re.MULTILINE) == [
        ("FOUND", "None"), ("SAVED", "100"), ("SAVED", "150"), ("TRAINED", f"2 {0.005 / 4} True False")]
    assert re.findall(r"^METRICS (\d+) (.*)", first.stdout, re.MULTILINE) == [("50", "[1.0, 2.0]")] * 2

    second = command(tmp_path, "-m", "wavedash.compat.rlgym_ppo", bot)
    assert second.returncode == 0, second.stderr
    assert re.findall(r"^(FOUND|SAVED|TRAINED) (\S+)", second.stdout, re.MULTILINE) == [
        ("FOUND", "data/checkpoints/bot/150"), ("SAVED", "200"), ("SAVED", "300"), ("TRAINED", "5")]
    (run,) = (tmp_path / "runs" / "bot").iterdir()
    assert resolve_checkpoint(tmp_path / "data" / "checkpoints" / "bot" / "200").step == 200

    (tmp_path / "elsewhere").mkdir()
    measured = command(tmp_path / "elsewhere", "-m", "wavedash", "eval", str(run), "--episodes", "3")
    assert measured.returncode == 0, measured.stderr
    assert "episodes  3" in measured.stdout and "TRAINED" not in measured.stdout
    resumed = command(tmp_path, "-m", "wavedash", "resume", str(run), "total_steps=350", "report.console=plain")
    assert resumed.returncode == 0, resumed.stderr
    assert resolve_checkpoint(run / "checkpoints").step == 350


def test_a_script_that_starts_when_it_is_imported_does_not_start_again(tmp_path):
    trained = command(tmp_path, "-m", "wavedash.compat.rlgym_ppo", str(SCRIPTS / "no_guard.py"))
    assert trained.returncode == 0, trained.stderr
    measured = command(tmp_path, "-m", "wavedash", "eval", "runs/rlgym-ppo-run", "--episodes", "1")
    assert measured.returncode == 2 and "if __name__ == '__main__':" in measured.stderr
    assert len(list((tmp_path / "runs" / "rlgym-ppo-run").iterdir())) == 1


def test_what_cannot_be_started_is_said(tmp_path):
    for words, message in ((["nowhere.py"], "there is no script nowhere.py"), ([], "usage: python -m wavedash.compat")):
        done = command(tmp_path, "-m", "wavedash.compat.rlgym_ppo", *words)
        assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


# --- how a function is found again --------------------------------------------------------------------------------------

def test_functions_are_named_so_that_they_are_found():
    assert factory_of(two_players) == {"factory": "tests.compat.gym_envs:two_players"}
    assert factory_of(functools.partial(Match, length=3)) == {"factory": "tests.compat.gym_envs:Match", "kwargs": {"length": 3}}
    script = SCRIPTS / "parts_of_bot.py"
    walk = EnvFactory(f"{script}:Walk", {"room": 4}, imported=True)()
    assert walk.room == 4 and EnvFactory(f"{script}:Walk", {"room": 4}, imported=True)().__class__ is type(walk)


class Builder:
    def __call__(self):
        return Match(2)

    def build(self):
        return Match(2)


@pytest.mark.parametrize("build", [lambda: Match(2), Builder(), Builder().build, functools.partial(Match, Match)])
def test_what_has_no_name_says_what_to_write_instead(build):
    with pytest.raises(EnvError, match=r"has no name by which it can be found again.*at the top level of a module"):
        import_callable(factory_of(build)["factory"])


def test_a_script_that_is_gone_or_cannot_be_imported_is_named(tmp_path):
    with pytest.raises(EnvError, match=r"gone.py is not there any more: put it back"):
        import_callable(f"{tmp_path / 'gone.py'}:build")
    (tmp_path / "needs_more.py").write_text("import no_such_package_at_all\n")
    with pytest.raises(EnvError, match=r"cannot import the script .*needs_more.py: No module named 'no_such_package_at_all'"):
        import_callable(f"{tmp_path / 'needs_more.py'}:build")
    assert "needs_more" not in sys.modules


def test_a_client_that_cannot_be_imported_is_told_on_the_console(tmp_path):
    """It is reported once, in a script that has set up no logging; the training goes on."""
    (tmp_path / "client" / "wandb").mkdir(parents=True)
    (tmp_path / "client" / "wandb" / "__init__.py").write_text("raise ImportError('this client is broken')\n")
    code = ("from tests.compat.learners import SMALL, two_players\n"
            "from wavedash.compat.rlgym_ppo import Learner\n"
            "Learner(two_players, **SMALL, log_to_wandb=True).learn()\n")
    settings = {**os.environ, "PYTHONPATH": f"{tmp_path / 'client'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    done = prepared.run(["-c", code], tmp_path, settings)
    assert done.returncode == 0, done.stderr
    assert "Cumulative Timesteps: 120" in done.stdout
    told = [line for line in done.stderr.splitlines() if "Weights & Biases" in line]
    assert len(told) == 1 and told[0].startswith("WARNING: the Weights & Biases process has ended with exit code 1")
    assert told[0].endswith("ImportError: this client is broken")
