"""The commands and examples of the README work."""
from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests import prepared
from tests.one_process import Job, run_jobs
from wavedash.config_file import load_config

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands(program: str) -> list[list[str]]:
    lines = [shlex.split(line, comments=True) for block in blocks("bash") for line in block.splitlines()]
    return [words for words in lines if words and words[0] == program]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return prepared.run(command, folder, environment)


def test_the_readme_opens_with_its_make_commands() -> None:
    opening = [line.split("#")[0].split() for line in blocks("bash")[0].splitlines()]
    assert opening == [["make", "train"], ["make", "test"], ["make", "test-fast"]]


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine; the README shows the way without it")
def test_its_make_targets_exist() -> None:
    for words in [*commands("make"), ["make", "bench"], ["make", "clean"]]:
        subprocess.run([*words, "--dry-run"], cwd=ROOT, check=True, capture_output=True)


def test_its_pip_commands_name_extras_and_a_torch_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {extra for found in re.findall(r"\.\[([\w,]+)\]", README) for extra in found.split(",")}
    assert extras and extras <= set(project["optional-dependencies"])
    pinned = re.search(r"^TORCH := (\S+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned and [pinned[1]] in [words[2:] for words in commands("pip")]


def test_its_other_programs_come_with_the_package() -> None:
    programs = {line.split()[0] for block in blocks("bash") for line in block.splitlines()}
    others = programs - {"make", "python", "pip", "wavedash", r".venv\Scripts\activate"}
    assert others == {"tensorboard"}
    assert "tensorboard" in {script.name for script in entry_points(group="console_scripts")}


@pytest.mark.slow
def test_every_training_command_trains_and_can_be_evaluated_and_resumed(folder: Path) -> None:
    # They are run as written, except for the number of steps and the name, which the later commands expect.
    trainings = {tuple(word for word in words[1:] if not word.startswith(("total_steps=", "--smoke")))
                 for words in commands("wavedash") if words[1] == "train"}
    assert trainings >= {("train", "cartpole")}
    begun: list[Job] = [[*words, "--smoke", f"name={words[1]}"] for words in sorted(trainings)]
    alone, against = (words[1:] for words in commands("wavedash") if words[1] == "eval")
    export, bot = (words[1:] for words in commands("wavedash") if words[1] == "export")
    assert ["wavedash", "resume"] in commands("wavedash")
    *_, evaluated, played, exported, written, resumed = run_jobs(
        [*begun, alone, [*against, "--games", "2"], export, bot, ["resume", "runs/cartpole", "total_steps=1_500"]], folder)
    assert re.search(r"^return +\d", evaluated, re.MULTILINE)
    assert re.search(r"^games +2$", played, re.MULTILINE)
    assert re.search(r"policy\.onnx.*\nchecked .*CartPole-v1", exported)
    assert re.search(r"^bot +my-bot.bot\.toml\nzip +my-bot\.zip", written, re.MULTILINE)
    assert "resuming" in resumed


@pytest.mark.slow
def test_every_other_command_succeeds(folder: Path) -> None:
    others = [words[1:] for words in commands("wavedash") if words[1] not in ("train", "eval", "export", "resume", "watch")]
    assert {words[0] for words in others} == {"config", "doctor", "bench", "diagnose", "rocket", "match", "tournament",
                                              "ladder", "curves", "render"}
    (rated, *_) = folder.glob("runs/rocket-1v1/*/checkpoints")
    # The games of the tournament are what the ladder reads.
    games = ["--games", "2", "--seconds", "2", "--out", str(rated.parent / "games.csv")]
    short = {"match": games, "tournament": games, "render": ["--seconds", "0.2"]}
    run_jobs([[*words, *short.get(words[0], [])] for words in others], folder)


def test_its_example_file_is_valid_and_its_example_of_a_mistake_is_true(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    text, task = blocks("yaml")
    Path("my.yaml").write_text(task)
    rocket = load_config("my.yaml").env.rocket
    assert rocket is not None and rocket.starts == {"kickoff": 1, "random": 1, "shot": 0.5}
    Path("my.yaml").write_text(text)
    assert load_config("my.yaml").ppo.learning_rate == 3e-4
    Path("my.yaml").write_text(text.replace("learning_rate:", "learning_rat:"))
    done = run(folder, "-m", "wavedash", "config", "check", "my.yaml")
    assert done.returncode == 2 and done.stderr in README


@pytest.mark.slow
def test_the_library_example_runs(folder: Path) -> None:
    (code,) = blocks("python")
    assert "total_steps=100_000" in code
    done = run(folder, "-c", code.replace("total_steps=100_000", "total_steps=1_000"))
    assert done.returncode == 0, done.stderr
