"""Kinds of environments: the registry answers what the rest of the package must know, and nothing else names a kind."""
from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

import wavedash
from tests.envs.whole_envs import PayKind, Rows
from wavedash.config import EnvConfig, PolicyConfig, RunConfig
from wavedash.config_file import load_config
from wavedash.diagnosis.advice import Facts, advise
from wavedash.envs import kinds
from wavedash.envs.errors import EnvError
from wavedash.envs.frame_stack import FrameStackEnv
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.make import make_env
from wavedash.evaluate.own_task import evaluate
from wavedash.preflight import check_run
from wavedash.runs.trust import UntrustedError, run_config

PACKAGE = Path(wavedash.__file__).parent
WHOLE = "tests.envs.whole_envs"


@pytest.mark.parametrize(("source", "title"), [
    ({"id": "CartPole-v1"}, "CartPole-v1"), ({"factory": f"{WHOLE}:Rows"}, f"{WHOLE}:Rows"),
    ({"rocket": {"blue": 2, "orange": 3}}, "Rocket League 2v3"), ({"walk": {"terrain": {"rough": 1}}}, "robots on rough"),
])
def test_a_kind_is_known_by_its_option(source, title):
    assert EnvConfig(**source).title == title


@pytest.mark.parametrize("source", [{}, {"id": "CartPole-v1", "factory": "a:b"}, {"factory": "a:b", "rocket": {}},
                                    {"rocket": {}, "walk": {}}])
def test_none_or_two_kinds_are_refused_with_a_list_of_all(source):
    listed = r"exactly one of env\.id \(.*\), env\.factory \(.*\), env\.rocket \(.*\) and env\.walk \(.*\)"
    with pytest.raises(ValidationError, match=listed):
        EnvConfig(**source)


def test_a_configuration_is_checked_without_torch_and_warp():
    code = ("import sys, wavedash; from wavedash.config import EnvConfig; EnvConfig(rocket={}).title; EnvConfig(id='x').title; "
            "EnvConfig(walk={}).title; assert not {'torch', 'warp', 'RocketSim', 'gymnasium', 'mujoco'} & set(sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""


def kinds_named(code):
    """Options that choose a kind and that a piece of code reads from a configuration."""
    reads = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Attribute) and node.attr in kinds._registered]
    return [ast.unparse(node) for node in reads if ast.unparse(node.value).split(".")[-1] in ("config", "env", "settings")]


def test_nothing_outside_the_registry_names_a_kind():
    """Exempt are the kinds themselves, what is about Rocket League alone (its package, benchmarks, matches and recorded
    episodes), the stages that kinds have on the page, and the adapter that writes configurations."""
    theirs = {"rocket", "walk", "bench", "compat", "evaluate/against.py", "evaluate/matches.py", "evaluate/recorded.py",
              "envs/gymnasium", "envs/imported.py", "web/stage"}
    assert kinds_named("if config.env.rocket is not None: use(config.id)") == ["config.env.rocket", "config.id"], "the control"
    found = {}
    for file in PACKAGE.rglob("*.py"):
        path = file.relative_to(PACKAGE)
        if not {*(parent.as_posix() for parent in path.parents), path.as_posix()} & theirs:
            found |= {str(path): names for names in [kinds_named(file.read_text(encoding="utf-8"))] if names}
    assert found == {}


@pytest.fixture
def rows_kind(monkeypatch):
    """A kind that the package does not know, and a configuration that has it as an option."""
    class WithRows(EnvConfig):
        rows: float | None = None

    monkeypatch.setattr(kinds, "_registered", dict(kinds._registered))
    kinds.register("rows", f"{WHOLE}:RowsKind")
    yield WithRows
    kinds._kind.cache_clear()


def test_a_new_kind_is_made_described_checked_and_advised_about(rows_kind):
    config = rows_kind(rows=2.5, count=3)
    env = make_env(config)
    assert isinstance(env, Rows) and env.told == {"count": 3, "device": torch.device("cpu"), "pay": 2.5}
    assert config.title == "rows that pay 2.5"
    with pytest.raises(ValidationError, match=r"env\.frame_stack is not for env\.rows"):
        rows_kind(rows=1.0, frame_stack=2)
    run = RunConfig(env=EnvConfig(id="CartPole-v1", count=8), device="cpu")
    slow = {"share": {"env": 0.9, "inference": 0.05, "gae": 0.0, "update": 0.05, "other": 0.0}, "step_seconds": 0.1,
            "efficiency": {"inference": 1.0, "update": 1.0}, "rows": 8, "samples": 256, "cores": 4, "threads": 1}
    assert any("env.workers" in s.settings for s in advise(Facts(run, **slow)).suggestions), "the control"
    ours = run.model_copy(update={"env": config})
    assert not any("env.workers" in s.settings for s in advise(Facts(ours, **slow)).suggestions)
    check_run(ours)


def test_kinds_that_say_nothing_about_evaluation_play_a_hundred_episodes():
    for source in ({"id": "CartPole-v1"}, {"factory": f"{WHOLE}:Rows"}, {"rocket": {}}):
        config = EnvConfig(**source)
        assert kinds.kind_of(config).evaluation(config) == kinds.Evaluation(episodes=100, environments=32)


# A user's own kind by env.factory


def own(name="PayKind", **options):
    return EnvConfig(factory=f"{WHOLE}:{name}", **options)


def test_a_users_own_kind_needs_no_option_of_the_configuration():
    config = own(count=3, kwargs={"pay": 2.5})
    env = make_env(config)
    assert isinstance(env, Rows) and env.told == {"count": 3, "device": torch.device("cpu"), "pay": 2.5}
    assert config.title == "rows that pay 2.5"
    kind = kinds.kind_of(config)
    assert kind.evaluation(config) == (7, 3) and not kind.takes_workers(config)
    stacked = own(count=2, frame_stack=3)
    assert isinstance(make_env(stacked), FrameStackEnv)
    assert kind.spaces(stacked, torch.device("cpu")).observation_space.shape == (3,)


@pytest.mark.parametrize(("name", "options", "says"), [
    ("PayKind", {"kwargs": {"pey": 1.0}}, r"^unknown key 'env\.kwargs\.pey'; did you mean 'env\.kwargs\.pay'\?$"),
    ("PayKind", {"kwargs": {"x": 1.0}}, r"^unknown key 'env\.kwargs\.x'; choose from pay$"),
    ("PayKind", {"kwargs": {"pay": "much"}}, r"^env\.kwargs\.pay: expected a valid number, got 'much'$"),
    ("PayKind", {"kwargs": {"pay": -1.0}}, r"whole_envs:PayKind: env\.kwargs\.pay below 0 would teach to do nothing$"),
    ("PayKind", {"workers": 2}, r"env\.workers=2 is not for this environment.*leave it at 0$"),
    ("PayKind", {"wrappers": ["FlattenObservation"]}, r"env\.wrappers is for environments of Gymnasium"),
    ("PlainKind", {"kwargs": {"pay": 1.0}}, r"^this environment takes no options: leave env\.kwargs empty, not \{'pay'"),
    ("PlainKind", {"count": 13}, r"`make` of .*PlainKind is to return a .*VecEnv, but it returned a str$"),
    ("PlainKind", {"count": 14}, r"making the environment .*PlainKind' raised RuntimeError: no licence"),
    ("UnfinishedKind", {}, r"UnfinishedKind lacks what every kind of environment must have: write make$"),
])
def test_mistakes_in_a_users_own_kind_are_named(name, options, says):
    with pytest.raises(EnvError, match=says):
        make_env(own(name, **options))


def test_the_code_of_a_kind_is_not_imported_while_a_configuration_is_read(tmp_path):
    """The configuration may come from somebody else: trust is asked for before any of its code runs."""
    (tmp_path / "checkpoints").mkdir()
    file = tmp_path / "config.yaml"
    file.write_text("env: {factory: 'nobody_has_this_module:Kind', kwargs: {pay: 2}}\n")
    with pytest.raises(UntrustedError, match=r"env\.factory: 'nobody_has_this_module:Kind'\n  env\.kwargs: "):
        run_config(file)
    trusted = run_config(file, trust=True)
    assert trusted.env.title == "nobody_has_this_module:Kind", "it has a name where it cannot be imported"
    with pytest.raises(EnvError, match="cannot import 'nobody_has_this_module'"):
        make_env(trusted.env)


def test_a_run_in_a_users_own_kind_trains_resumes_with_another_option_and_is_evaluated(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    file = tmp_path / "pay.yaml"
    file.write_text(f"env: {{factory: '{WHOLE}:PayKind', count: 4, kwargs: {{pay: 3.0}}}}\n"
                    "device: cpu\npolicy: {hidden: [8]}\n"
                    "ppo: {rollout_steps: 12, minibatch_size: 48, epochs: 1, learning_rate: 0.05}\n"
                    "report: {console: 'off', tensorboard: false}\n")
    check_run(load_config(str(file)))
    wavedash.train(str(file), "name=pay", "total_steps=1248")
    wavedash.resume(str(tmp_path / "pay"), "total_steps=2400", "env.kwargs.pay=5.0")
    PayKind.made.clear()
    result = evaluate(tmp_path / "pay" / "final")
    assert result.returns == [25.0] * 7, "action 1 in each of five steps, as often as the kind says"
    assert PayKind.made == [3], "side by side as the kind says"
    assert len(evaluate(tmp_path / "pay" / "final", episodes=2).returns) == 2


# A whole VecEnv by env.factory


def made(name, device="cpu", **options):
    return make_env(EnvConfig(factory=f"{WHOLE}:{name}", **options), device)


def test_a_whole_vec_env_is_told_count_device_and_its_own_options():
    env = made("Rows", count=5, kwargs={"pay": 2.0}, device="meta")
    assert isinstance(env, Rows) and env.told == {"count": 5, "device": torch.device("meta"), "pay": 2.0}


def test_groups_and_workers_are_passed_to_a_factory_that_takes_them():
    env = made("with_groups", count=4, workers=3, groups=2)
    assert env.told == {"count": 4, "device": torch.device("cpu"), "pay": 1.0, "groups": 2, "workers": 3}


def test_frames_are_stacked_around_a_whole_vec_env():
    env = made("Rows", count=2, frame_stack=3)
    assert isinstance(env, FrameStackEnv) and env.reset(0).shape == (2, 3)


@pytest.mark.parametrize(("name", "options", "says"), [
    ("Rows", {"workers": 2}, r"env\.workers=2 .* makes a whole VecEnv: set env\.workers=0"),
    ("Rows", {"wrappers": ["FlattenObservation"]}, r"env\.wrappers .* makes a whole VecEnv"),
    ("not_whole", {}, r"is to return a whole .*VecEnv, but it returned a \w*"),
    ("without_being_told", {}, r"returned a whole VecEnv \(Rows\).*parameters `count` and `device`"),
    ("fails", {}, r"making the environment .* raised RuntimeError: no licence"),
])
def test_what_does_not_go_with_a_whole_vec_env_is_refused_by_name(name, options, says):
    with pytest.raises(EnvError, match=f"(?s){says}"):
        made(name, **options)


def test_count_and_device_in_kwargs_are_the_environments_own():
    assert isinstance(made("means_something_else", kwargs={"count": 7, "device": "screen"}), LocalVecEnv)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_whole_vec_env_is_on_the_device_of_the_run():
    run = RunConfig(env=EnvConfig(factory=f"{WHOLE}:Rows"), device="cuda", policy=PolicyConfig(hidden=[8]))
    check_run(run)
    assert made("Rows", device="cuda:0").step(torch.zeros(8, dtype=torch.int64, device="cuda:0")).reward.is_cuda


@pytest.mark.slow
def test_a_run_in_a_whole_vec_env_trains_resumes_exactly_and_is_evaluated(tmp_path, monkeypatch):
    """Two runs of the same steps, of which one was stopped and resumed, have the same weights."""
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    config = tmp_path / "rows.yaml"
    config.write_text(f"env: {{factory: '{WHOLE}:Rows', count: 4, kwargs: {{pay: 3.0}}}}\n"
                      "device: cpu\npolicy: {hidden: [8]}\n"
                      "ppo: {rollout_steps: 12, minibatch_size: 48, epochs: 1, learning_rate: 0.05}\n"
                      "report: {console: 'off', tensorboard: false}\n")
    wavedash.train(str(config), "name=whole", "total_steps=2400")
    wavedash.train(str(config), "name=parts", "total_steps=1248")
    wavedash.resume(str(tmp_path / "parts"), "total_steps=2400")
    weights = [wavedash.load_policy(tmp_path / name / "final").policy.state_dict() for name in ("whole", "parts")]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    result = evaluate(tmp_path / "whole" / "final", episodes=6)
    assert result.returns == [15.0] * 6, "action 1 in each of five steps"
