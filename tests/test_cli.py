"""The command line as a user has it: real processes, their output and their exit codes."""
from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import wavedash
from wavedash import bench
from wavedash.cli import app
from wavedash.config_file import load_config
from wavedash.doctor import EXTRAS
from wavedash.errors import UserError

ROOT = Path(__file__).parents[1]


def run(*arguments: str, python: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *python, "-m", "wavedash", *arguments], cwd=ROOT, capture_output=True, text=True,
                          check=False)


def test_help_lists_every_command() -> None:
    done = run("--help")
    assert done.returncode == 0
    commands = ("train", "resume", "milestones", "eval", "export", "config", "doctor", "bench", "diagnose")
    assert all(f"\n  {command} " in done.stdout for command in commands)
    assert run("--version").stdout == f"wavedash {wavedash.__version__}\n"


@pytest.mark.parametrize("command", [
    "--help", "train --help", "config show cartpole", "config check cartpole ppo.lr=3", "config check nope", "train nope",
    "diagnose enf", "milestones nowhere",
])
def test_commands_that_compute_nothing_do_not_load_torch(command: str) -> None:
    done = run(*command.split(), python=("-X", "importtime"))
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "wavedash.cli" in imported
    assert not imported & {"torch", "gymnasium", "numpy", "rich", "tensorboard"}


@pytest.mark.slow
def test_a_training_that_does_not_compile_does_not_load_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    done = run("train", "cartpole", "--smoke", python=("-X", "importtime"))
    assert done.returncode == 0, done.stderr
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "wavedash.training" in imported
    assert not imported & {"torch._dynamo", "torch._inductor", "sympy"}


def test_the_output_of_config_show_is_a_file_with_the_same_meaning(tmp_path: Path) -> None:
    done = run("config", "show", "hopper", "ppo.learning_rate=1e-4")
    (tmp_path / "shown.yaml").write_text(done.stdout)
    assert load_config(str(tmp_path / "shown.yaml")) == load_config("hopper", ["ppo.learning_rate=1e-4"])
    assert "# Step size of AdamW." in done.stdout


@pytest.mark.slow
def test_config_check_confirms_a_valid_configuration() -> None:
    done = run("config", "check", "cartpole", "total_steps=2e5")
    assert (done.returncode, done.stdout) == (0, "cartpole: valid; trains CartPole-v1 for 200,000 steps\n")


@pytest.mark.parametrize(("command", "message"), [
    ("config check cartpole ppo.lr=3", "error: override 'ppo.lr=3': unknown key 'ppo.lr'; did you mean 'ppo.learning_rate'?\n"),
    ("train cartpol", "error: cartpol: no such file, and no preset has this name; did you mean 'cartpole'?\n"),
    ("train --smoke cartpole seed=x", "error: override 'seed=x': seed: expected a valid integer, got 'x'\n"),
    pytest.param("train cartpole env.id=NoSuchEnv-v1", "error: ", marks=pytest.mark.slow),
    pytest.param("resume no/such/run", "error: ", marks=pytest.mark.slow),
    pytest.param("eval no/such/run", "error: ", marks=pytest.mark.slow),
    pytest.param("export no/such/run", "error: ", marks=pytest.mark.slow),
    ("bench nonsense", "error: no benchmark is named 'nonsense'"),
    ("diagnose enf", "error: 'enf' is neither a stage nor a preset or a file; did you mean 'env'? Stages are: env, inference,"),
])
def test_a_mistake_of_the_users_ends_with_a_message_and_no_traceback(
    command: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    done = run(*command.split())
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert "Traceback" not in done.stderr and len(done.stderr) > len("error: ")


def test_what_follows_the_name_of_a_benchmark_is_passed_on_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "echoing.py").write_text('"""Echoes."""\ndef main(argv):\n    print(argv)\n    return 3\n')
    (tmp_path / "helper.py").write_text('"""Not a benchmark."""\n')
    monkeypatch.setattr(bench, "__path__", [*bench.__path__, str(tmp_path)])
    assert app(["bench", "echoing", "--seconds", "5", "x"], standalone_mode=False) == 3
    assert capsys.readouterr().out == "['--seconds', '5', 'x']\n"
    assert app(["bench", "echoing", "--help"], standalone_mode=False) == 3
    assert capsys.readouterr().out == "['--help']\n", "the benchmark prints its own help"
    for asked in ([], ["--help"]):
        app(["bench", *asked], standalone_mode=False)
        listed = capsys.readouterr().out.split()
        assert "echoing" in listed and "helper" not in listed
    with pytest.raises(UserError, match="did you mean 'echoing'"):
        app(["bench", "ecoing"], standalone_mode=False)


@pytest.mark.slow
def test_doctor_reports_on_the_machine_and_every_warning_has_a_next_step() -> None:
    done = run("doctor")
    assert done.returncode == 0
    assert all(subject in done.stdout for subject in ("python", "torch", "device", "disk", "cores", "compiler"))
    lines = done.stdout.splitlines()
    warned = [i for i, line in enumerate(lines) if line.startswith("warn")]
    assert all(lines[i + 1].strip().startswith("-> ") for i in warned), done.stdout
    assert all(line.startswith(("  ok  ", "warn  ", " " * 19)) for line in lines), done.stdout


def test_doctor_names_only_extras_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) <= set(project["optional-dependencies"])


def test_importing_the_package_does_not_load_torch() -> None:
    code = "import sys, wavedash, wavedash.report, wavedash.config_file; assert 'torch' not in sys.modules; dir(wavedash)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_every_public_name_can_be_imported() -> None:
    assert all(getattr(wavedash, name) is not None for name in wavedash.__all__)
    assert set(wavedash.__all__) <= set(dir(wavedash))
    with pytest.raises(AttributeError, match="nonsense"):
        wavedash.nonsense  # noqa: B018


@pytest.mark.slow
def test_the_installed_command_finds_modules_where_it_is_started(tmp_path: Path) -> None:
    """So does `python -m wavedash`: users keep their own environments and rewards in the folder where they work."""
    command = Path(sys.executable).with_name("wavedash")
    if not command.exists():
        pytest.skip("the package is not installed here")
    (tmp_path / "mine_alone.py").write_text("raise ImportError('it was found')\n")
    done = subprocess.run([command, "train", "cartpole", "--smoke", "env.id=null", "env.factory=mine_alone:make"], cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert "it was found" in done.stdout + done.stderr
