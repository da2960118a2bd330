"""Code that a run folder names runs only if this user started the run, or trusts it."""
from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.runs.own_code import MARK
from wavedash.config import EnvConfig, RunConfig
from wavedash.config_file import dump_config, load_config, preset_names
from wavedash.diagnosis.command import diagnose
from wavedash.envs import kinds
from wavedash.envs.gymnasium.kind import GymnasiumKind
from wavedash.evaluate.against import play_against
from wavedash.evaluate.own_task import evaluate
from wavedash.export import export_policy
from wavedash.loading import load_policy
from wavedash.rocket.bridges.show import show_run
from wavedash.runs.find import find_run
from wavedash.runs.links import LinkError
from wavedash.runs.trust import UntrustedError, code_of, run_config, sign
from wavedash.runs.user_key import user_key
from wavedash.training import resume, train

OWN = "tests.runs.own_code:make"
SMALL = ("total_steps=32", "env.count=2", "ppo.rollout_steps=8", "ppo.epochs=1", "report.tensorboard=false",
         "report.console=off", "checkpoint.every=16")


@pytest.fixture(scope="module")
def started(tmp_path_factory) -> Path:
    """A run that names code of this user."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVEDASH_RUNS", str(root))
        train("cartpole", "env.id=null", f"env.factory={OWN}", *SMALL)
    return find_run(root / "cartpole").run.path


@pytest.fixture
def run(started, tmp_path, monkeypatch) -> Path:
    """A copy of the run; `MARK` names a file that exists once its code has run."""
    shutil.copytree(started, tmp_path / "run")
    monkeypatch.setenv(MARK, str(tmp_path / "mark"))
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / "runs"))
    return tmp_path / "run"


@pytest.fixture
def somebody_else(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("WAVEDASH_HOME", str(tmp_path / "home"))


def ran(tmp_path: Path) -> bool:
    return (tmp_path / "mark").exists()


@pytest.mark.slow
def test_a_run_of_this_user_needs_no_trust(run, tmp_path):
    assert evaluate(run, episodes=1).returns
    assert ran(tmp_path)
    assert OWN in export_policy(run, "torchscript", episodes=1).env_name
    assert resume(str(run), "total_steps=64") == 0


PATHS = {
    "eval": lambda run, trust: evaluate(run, episodes=1, trust=trust),
    "resume": lambda run, trust: resume(str(run), "total_steps=64", trust=trust),
    "eval of a checkpoint": lambda run, trust: evaluate(next((run / "checkpoints").iterdir()), episodes=1, trust=trust),
    "train its file": lambda run, trust: train(str(run / "config.yaml"), trust=trust),
    "diagnose its file": lambda run, trust: diagnose("env", str(run / "config.yaml"), rounds=2, trust=trust),
}


@pytest.mark.parametrize("path", PATHS)
def test_code_that_somebody_else_named_is_listed_and_not_run(run, tmp_path, somebody_else, path):
    with pytest.raises(UntrustedError) as refused:
        PATHS[path](run, False)
    assert f"env.factory: '{OWN}'" in str(refused.value)
    assert "--trust" in str(refused.value)
    assert not ran(tmp_path)
    PATHS[path](run, True)
    assert ran(tmp_path)


def test_a_policy_of_somebody_else_is_loaded_and_exported_without_its_code(run, tmp_path, somebody_else):
    assert load_policy(run).act([0.0] * 4) in (0, 1)
    assert "--trust runs it" in export_policy(run, "torchscript", episodes=1).env_name
    assert not ran(tmp_path)
    assert OWN in export_policy(run, "torchscript", episodes=1, trust=True).env_name


def test_a_run_that_was_resumed_with_trust_is_this_users(run, somebody_else):
    resume(str(run), "total_steps=64", trust=True)
    assert evaluate(run, episodes=1).returns


def edited(run: Path, **env: object) -> Path:
    """The run after somebody has changed it."""
    config = load_config(str(run / "config.yaml"))
    (run / "config.yaml").write_text(dump_config(config.model_copy(update={"env": config.env.model_copy(update=env)})))
    return run


def test_other_code_or_other_arguments_in_a_run_of_this_user_are_refused(run, tmp_path):
    command = {"args": ["touch", str(tmp_path / "mark")]}
    for changed in ({"factory": "subprocess:call", "kwargs": command}, {"kwargs": command},
                    {"id": "evil:Env-v0", "factory": None}):
        with pytest.raises(UntrustedError):
            resume(str(edited(run, **changed)), "total_steps=64")
    assert not ran(tmp_path)
    assert evaluate(edited(run, id=None, factory=OWN, kwargs={}, count=4), episodes=1).returns, "sizes may be edited"


def test_what_was_typed_needs_no_trust(run, somebody_else):
    edited(run, factory="evil:make")
    assert run_config(run / "config.yaml", [f"env.factory={OWN}"]).env.factory == OWN
    for beside in ("env.kwargs={a: 1}", "seed=3"):
        with pytest.raises(UntrustedError, match=r"env\.factory: 'evil:make'"):
            run_config(run / "config.yaml", [beside])


@pytest.mark.parametrize("env", [
    {"factory": "evil:make"}, {"id": "evil:Env-v0"}, {"id": "GymV26Environment-v0", "kwargs": {"env_id": "evil:Env-v0"}},
    {"rocket": {"rewards": {"evil:Reward": 1.0}}}, {"rocket": {"observation": "evil:Obs"}},
    {"rocket": {"action": {"evil:Parser": {"bins": 3}}}}, {"rocket": {"starts": {"kickoff": 1.0, "evil:Start": {"weight": 2}}}},
    {"rocket": {"endings": {"evil:Ending": {}}}}, {"rocket": {"rewards": {"goal": {"weight": 1, "inner": ["evil:Part"]}}}},
])
def test_code_is_found_in_every_place_that_can_name_it(env, tmp_path):
    config = RunConfig(env=EnvConfig.model_validate(env))
    assert any("evil:" in text for _, text in code_of(config))
    (tmp_path / "config.yaml").write_text(dump_config(config))
    with pytest.raises(UntrustedError, match="evil:"):
        run_config(tmp_path / "config.yaml")
    sign(tmp_path, config)
    assert run_config(tmp_path / "config.yaml") == config


@pytest.mark.parametrize(("section", "option"), [("opponents", "members"), ("rating", "panel")])
def test_a_player_that_is_code_is_signed_too(tmp_path, section, option):
    """Nobody can add one to a run of this user, whether or not the task names code; other players can be changed by hand."""
    def written(*players: str, **task: str) -> RunConfig:
        config = RunConfig.model_validate({"env": {"rocket": task}, section: {option: ["chaser", *players]}})
        (tmp_path / "config.yaml").write_text(dump_config(config))
        return config

    for task in ({}, {"observation": "mine:Obs"}):
        signed = written("mine:Bot", **task)
        sign(tmp_path, signed)
        assert run_config(tmp_path / "config.yaml") == signed
        for players in (["evil:Bot"], ["mine:Bot", "evil:Bot"]):
            written(*players, **task)
            with pytest.raises(UntrustedError, match="evil:Bot"):
                run_config(tmp_path / "config.yaml")
    sign(tmp_path, written(observation="mine:Obs"))
    changed = written("defender", observation="mine:Obs")
    assert run_config(tmp_path / "config.yaml") == changed
    written("evil:Bot", observation="mine:Obs")
    with pytest.raises(UntrustedError, match="evil:Bot"):
        run_config(tmp_path / "config.yaml")


class IdsAreCode(GymnasiumKind):
    """A kind whose option names code in a form of its own, without a colon."""

    code_options = MappingProxyType({"id": frozenset({"shipped"})})


@pytest.mark.parametrize(("name", "trusted"), [("evil", False), ("shipped", True)])
def test_a_new_kind_says_itself_which_of_its_options_name_code(name, trusted, tmp_path, monkeypatch):
    config = RunConfig(env=EnvConfig.model_validate({"id": name}))
    assert not any(code_of(config)), "to Gymnasium's kind it is a plain id"
    monkeypatch.setattr(kinds, "_registered", {**kinds._registered, "id": f"{__name__}:IdsAreCode"})
    monkeypatch.setattr(kinds, "_kind", kinds._kind.__wrapped__)
    (tmp_path / "config.yaml").write_text(dump_config(config))
    with nullcontext() if trusted else pytest.raises(UntrustedError, match=r"env\.id: 'evil'"):
        assert run_config(tmp_path / "config.yaml") == config


@pytest.mark.parametrize("preset", preset_names())
def test_shipped_presets_name_no_code(preset, tmp_path):
    (tmp_path / "config.yaml").write_text(dump_config(load_config(preset)))
    assert run_config(tmp_path / "config.yaml") == load_config(preset)
    sign(tmp_path, load_config(preset))
    assert not (tmp_path / "signature.json").exists(), "no secret is needed for data"


@pytest.mark.parametrize("command", [lambda run: play_against(run, "idle", games=1), show_run])
def test_commands_of_rocket_league_ask_for_trust_too(run, somebody_else, command):
    config = load_config("rocket-touch", ["env.rocket.rewards={'evil:Reward': 1.0}"])
    (run / "config.yaml").write_text(dump_config(config))
    with pytest.raises(UntrustedError, match=r"env\.rocket\.rewards\.evil:Reward"):
        command(run)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"env": 3}', b'{"env": "00"}', b"\xff", b"[" * 4000,
                                     b'{"env": "' + b"0" * 64 + b'"}'])
def test_a_forged_signature_does_not_count(run, content, tmp_path):
    (run / "signature.json").write_bytes(content)
    with pytest.raises(UntrustedError):
        evaluate(run, episodes=1)


def test_without_a_place_for_the_secret_a_run_starts_and_trust_is_asked_for(run, tmp_path, monkeypatch, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setenv("WAVEDASH_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(UntrustedError, match=r"cannot be checked whether this user started it \(.*file/home"):
        evaluate(run, episodes=1)
    assert resume(str(run), "total_steps=64", trust=True) == 0
    assert "this run cannot be marked as yours" in caplog.text


def test_processes_that_need_the_first_secret_at_once_get_the_same_one(tmp_path):
    code = "from wavedash.runs.user_key import user_key; print(user_key().hex())"
    env = {**os.environ, "WAVEDASH_HOME": str(tmp_path / "home")}
    with ThreadPoolExecutor(8) as pool:
        keys = {done.stdout for done in pool.map(
            lambda _: subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True),
            range(8))}
    assert len(keys) == 1
    assert [file.name for file in (tmp_path / "home").iterdir()] == ["key"]
    if os.name != "nt":
        assert stat.S_IMODE((tmp_path / "home" / "key").stat().st_mode) == 0o600


def test_a_damaged_secret_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_HOME", str(tmp_path))
    (tmp_path / "key").write_text("00")
    with pytest.raises(OSError, match=r"key is damaged .*remove it"):
        user_key()


# The current folder -------------------------------------------------------------------------------------------------------

EVIL = "import os, pathlib\npathlib.Path(os.environ['WAVEDASH_TEST_MARK']).touch()\n"


def wavedash(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "wavedash", *words], cwd=cwd, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})


@pytest.mark.slow
def test_nothing_that_lies_in_a_run_folder_is_imported(run, tmp_path):
    """A file there may have the name of an installed module, imported here or in a worker, or of an optional package."""
    edited(run, factory=None, id="CartPole-v1", workers=2, count=2)
    for name in ("typer", "gymnasium", "multiprocessing", "pickle", "signal", "torch", "wandb", "warp", "onnx"):
        (run / f"{name}.py").write_text(EVIL)
    done = wavedash("resume", ".", "total_steps=48", cwd=run)
    assert done.returncode == 0, done.stderr
    assert not ran(tmp_path)


@pytest.mark.slow
def test_a_module_in_a_run_folder_is_not_found_even_if_it_is_named(run, tmp_path):
    edited(run, factory="evil:make")
    (run / "evil.py").write_text(EVIL)
    shutil.copy(run / "evil.py", run / "checkpoints")
    done = wavedash("eval", "..", "--trust", cwd=run / "checkpoints")
    assert done.returncode == 2 and done.stderr.startswith("error: cannot import 'evil'"), done.stderr
    assert not ran(tmp_path)


@pytest.mark.slow
def test_modules_of_the_current_folder_are_found_after_installed_ones(tmp_path, monkeypatch):
    monkeypatch.setenv(MARK, str(tmp_path / "mark"))
    (tmp_path / "gymnasium.py").write_text(EVIL)
    (tmp_path / "mine.py").write_text("import gymnasium\ndef make():\n    return gymnasium.make('CartPole-v1')\n")
    done = wavedash("train", "cartpole", "env.id=null", "env.factory=mine:make", "env.workers=2", *SMALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not ran(tmp_path)


# Links --------------------------------------------------------------------------------------------------------------------

@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize("name", ["config.yaml", "log.txt", "metrics.jsonl", "tb", "command.txt", "env.jsonl", "signature.json",
                                  "best", "checkpoints", ".lock", ".lock-holder.json", "crash", "checkpoints/.tmp-x", "new/x"])
def test_a_link_inside_a_run_folder_is_refused_and_what_it_leads_to_stays(run, tmp_path, name):
    place, outside = run / name, tmp_path / "outside"
    if place.is_dir() or place.exists():
        shutil.move(place, outside)
    else:
        outside.write_text("precious")
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)
    before = {path: path.read_bytes() for path in [outside, *outside.rglob("*")] if path.is_file()}
    with pytest.raises(LinkError, match=f"{name} is a link") as refused:
        resume(str(run), "total_steps=64")
    assert str(outside) in str(refused.value)
    assert {path: path.read_bytes() for path in [outside, *outside.rglob("*")] if path.is_file()} == before


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_run_may_be_reached_through_links(run, tmp_path):
    (tmp_path / "disk").mkdir()
    shutil.move(run, tmp_path / "disk" / "run")
    (tmp_path / "through").symlink_to(tmp_path / "disk")
    (tmp_path / "other").symlink_to(tmp_path / "through" / "run")
    assert resume(str(tmp_path / "through" / "run"), "total_steps=48") == 0
    assert resume(str(tmp_path / "other"), "total_steps=64") == 0
