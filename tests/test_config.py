"""Reading configurations: presets, files and overrides, and the messages about what is wrong in them."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from wavedash.config import RunConfig
from wavedash.config_file import (
    SMOKE_STEPS,
    ConfigError,
    describe_config,
    dump_config,
    load_config,
    preset_names,
    smoke_overrides,
)
from wavedash.yaml_text import YamlError, read_yaml, write_yaml


def complaint(source: str, *overrides: str) -> str:
    with pytest.raises(ConfigError) as raised:
        load_config(source, overrides)
    return str(raised.value)


def write(tmp_path: Path, text: str) -> str:
    (tmp_path / "my.yaml").write_text(text, encoding="utf-8")
    return str(tmp_path / "my.yaml")


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_valid(name: str) -> None:
    assert load_config(name).name == name


@pytest.mark.parametrize(("text", "value"), [
    ("1e-4", 0.0001), ("1E5", 100_000.0), ("3.5e+2", 350.0), ("1.", 1.0), (".5", 0.5), ("-.inf", -float("inf")),
    ("100_000", 100_000), ("010", 10), ("-3", -3),
    ("off", "off"), ("yes", "yes"), ("true", True), ("null", None), ("", None), ("1:30", "1:30"), ("2026-11-15", "2026-11-15"),
    ("[64, 64]", [64, 64]), ("{a: 1e3}", {"a": 1000.0}), ("'1e-4'", "1e-4"), ("cuda:1", "cuda:1"), ("1e", "1e"),
])
def test_scalars_have_the_type_that_their_text_suggests(text: str, value: object) -> None:
    read, _ = read_yaml(text)
    assert read == value and type(read) is type(value)


def test_overrides_reach_every_depth_and_the_last_one_wins() -> None:
    config = load_config("cartpole", [
        "total_steps=1e5", "ppo.learning_rate=1e-4", "ppo.schedule.kind=cosine", "policy.hidden=[32, 32]", "device=cuda:1",
        "env.kwargs.sutton_barto_reward=true", "seed=1", "seed=2", "ppo.normalize_advantage=off",
    ])
    assert config.total_steps == 100_000 and config.ppo.learning_rate == 1e-4 and config.ppo.schedule.kind == "cosine"
    assert config.policy.hidden == [32, 32] and config.device == "cuda:1" and config.seed == 2
    assert config.env.kwargs == {"sutton_barto_reward": True} and config.ppo.normalize_advantage == "off"


def test_a_file_may_start_from_a_preset_and_change_parts_of_it(tmp_path: Path) -> None:
    path = write(tmp_path, "base: cartpole\nname: mine\nppo: {gamma: 0.5, schedule: {kind: kl}}\n")
    mine, preset = load_config(path), load_config("cartpole")
    assert mine.ppo.gamma == 0.5 and mine.ppo.schedule.kind == "kl"
    untouched = mine.model_copy(update={"name": preset.name, "ppo": preset.ppo})
    assert untouched == preset
    assert mine.ppo.schedule.floor == preset.ppo.schedule.floor and mine.ppo.epochs == preset.ppo.epochs


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8,
)


@pytest.mark.slow
@settings(deadline=None)
@given(kwargs=st.dictionaries(st.text(), plain_values, max_size=4), rate=st.floats(1e-300, 1e300), seed=st.integers(0))
def test_both_ways_of_writing_a_configuration_read_back_equal(
    tmp_path_factory: pytest.TempPathFactory, kwargs: dict[str, object], rate: float, seed: int
) -> None:
    config = RunConfig.model_validate({"seed": seed, "env": {"id": "X-v1", "kwargs": kwargs}, "ppo": {"learning_rate": rate}})
    path = tmp_path_factory.getbasetemp() / "roundtrip.yaml"
    for text in (dump_config(config), describe_config(config)):
        path.write_text(text, encoding="utf-8", newline="")
        assert load_config(str(path)) == config


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("ab:&*!?|>-[]{}#,'\"\n\t 1.e%@`~\0")))
def test_any_text_is_either_read_or_refused_with_a_line(text: str) -> None:
    try:
        _, lines = read_yaml(text)
        places = list(lines.values())
    except YamlError as error:
        places = [line for line, _ in error.found]
    assert all(1 <= line <= len(text.splitlines()) + 1 for line in places)


@settings(deadline=None)
@given(plain_values)
def test_written_yaml_reads_back_equal(value: object) -> None:
    assert read_yaml(write_yaml(value))[0] == value
    assert read_yaml(write_yaml(value, inline=True))[0] == value


def test_every_option_is_documented() -> None:
    def undocumented(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
        for name, field in model.model_fields.items():
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                yield from undocumented(field.annotation, f"{prefix}{name}.")
            elif not field.description:
                yield prefix + name
    assert list(undocumented(RunConfig)) == []


@pytest.mark.parametrize("name", preset_names())
def test_smoke_makes_several_iterations_of_any_preset(name: str) -> None:
    preset = load_config(name)
    smoke = load_config(name, smoke_overrides(preset))
    assert smoke.total_steps == SMOKE_STEPS * max(1, len(preset.phases)) and SMOKE_STEPS == 1_000
    assert smoke.ppo.rollout_steps * smoke.env.count <= SMOKE_STEPS / 2
    assert smoke.name != preset.name, "a smoke test must not be taken for a run to resume"


# --- errors ----------------------------------------------------------------------------------------------------------


def test_all_problems_are_reported_together_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path, (
        "base: cartpole\n"
        "ppo:\n"
        "  learning_rat: 1e-3\n"
        "  epochs: many\n"
        "  adam_betas: [0.9, 2]\n"
        "learning_rate: 3\n"
        "policy: {activation: rlu}\n"
    ))
    assert set(complaint(path, "sed=3").splitlines()) == {
        f"{path}:3: unknown key 'ppo.learning_rat'; did you mean 'ppo.learning_rate'?",
        f"{path}:4: ppo.epochs: expected a valid integer, got 'many'",
        f"{path}:5: ppo.adam_betas.1: expected less than or equal to 1, got 2",
        f"{path}:6: unknown key 'learning_rate'; did you mean 'ppo.learning_rate'?",
        f"{path}:7: policy.activation: expected 'tanh', 'relu', 'elu', 'silu' or 'gelu', got 'rlu'",
        "override 'sed=3': unknown key 'sed'; did you mean 'seed'?",
    }


@pytest.mark.parametrize(("overrides", "expected"), [
    (["ppo.lr=1e-3"], "override 'ppo.lr=1e-3': unknown key 'ppo.lr'; did you mean 'ppo.learning_rate'?"),
    (["hidden=[8]"], "unknown key 'hidden'; did you mean 'policy.hidden'?"),
    (["checkpoint.zzz=1"], "unknown key 'checkpoint.zzz'; choose from every, keep, spaced_every, best_by, best_window"),
    (["ppo=3"], "override 'ppo=3': ppo: expected options below it (ppo.name=value), got 3"),
    (["seed.x=1"], "override 'seed.x=1': seed: expected a valid integer, got {'x': 1}"),
    (["seed=-1"], "override 'seed=-1': seed: expected greater than or equal to 0, got -1"),
    (["ppo.learning_rate=1e999"], "ppo.learning_rate: expected a finite number, got inf"),
    (["env.factory=a:b"], "override 'env.factory=a:b': set exactly one of env.id (a Gymnasium id), env.factory"),
    (["verbose"], "override 'verbose': expected key=value, such as ppo.learning_rate=1e-4"),
    (["=3"], "override '=3': expected key=value"),
    (["policy.hidden=[64"], "override 'policy.hidden=[64': not valid YAML"),
])
def test_a_wrong_override_is_named_with_what_was_expected(overrides: list[str], expected: str) -> None:
    assert expected in complaint("cartpole", *overrides)


@pytest.mark.parametrize(("override", "expected"), [
    ("phases=[{name: A, until: {step: 1}}, {name: B}]", "did you mean 'phases.0.until.steps'?"),
    ("phases=[{name: A, until: {metrics: {a/b: {atleast: 1}}}}, {name: B}]", "'phases.0.until.metrics.a/b.at_least'?"),
    ("env.rocket.lanes.turtle={share: 0.1, shares: 0.2}", "did you mean 'env.rocket.lanes.turtle.share'?"),
    ("phases=[{name: A, until: {metrics: {a/b: 3}}}, {name: B}]", "a/b: expected options in braces (at_least, at_most), got 3"),
    ("phases=[{name: a/b}]", "a phase cannot be named 'a/b', because its milestones lie in a folder of this name"),
    ("env.rocket.lanes.turtle={zzz: 1}", "; choose from share, most, starts, rewards, endings, measures"),
])
def test_what_is_wrong_in_a_list_or_mapping_of_sections_is_told_as_elsewhere(override: str, expected: str) -> None:
    assert expected in complaint("rocket-1v1", override)


@pytest.mark.parametrize(("text", "expected"), [
    ("seed: 1\nenv: {id: A, id: B}\nseed: 2\n", ["my.yaml:2: 'env.id' was already set in line 2", "my.yaml:3: 'seed' was"]),
    ("seed: 1\nppo: [1\n", ["my.yaml:3: not valid YAML"]),
    ("seed: 1\n\tx: 2\n", ["my.yaml:2: not valid YAML"]),
    ("- a list\n", ["my.yaml:1: expected options"]),
    ("", ["my.yaml:1: expected options"]),
    ("a: &a [*a]\n", ["my.yaml:1: the alias *a stands for nothing that is finished before it"]),
    ("x: !!python/name:os.system\n", ["my.yaml:1: not valid YAML"]),
    ("seed: 1\n", ["'env' is missing; set it in the file or as env=..."]),
    ("base: cartpol\n", ["my.yaml:1: base: no preset is named 'cartpol'; did you mean 'cartpole'?"]),
])
def test_a_wrong_file_is_refused_with_the_line(tmp_path: Path, text: str, expected: list[str]) -> None:
    said = complaint(write(tmp_path, text))
    assert all(part in said for part in expected), said


def nested_aliases(levels: int, width: int = 9, opening: str = "[", closing: str = "]") -> str:
    """A text of `levels` lines that expands to width**levels values."""
    item = "k{}: *a{}" if opening == "{" else "*a{1}"
    lines = [", ".join(item.format(k, n) for k in range(width)) for n in range(levels - 1)]
    return "".join(["a0: &a0 x\n", *(f"a{n}: &a{n} {opening}{line}{closing}\n" for n, line in enumerate(lines, 1))])


@pytest.mark.parametrize(("text", "line"), [
    (nested_aliases(12), 6), (nested_aliases(12, 9, "{", "}"), 6), (nested_aliases(20, 2), 14),
    ("a: &a [x, x]\nb: [" + ", ".join(["*a"] * 7_000) + "]\n", 2),
    ("a: &a {x: 1}\nb: {<<: [" + ", ".join(["*a"] * 7_000) + "]}\n", 2),
    ("seed: 1\nx: " + "[" * 200_000, 2), ("x: " + "{" * 200_000, 1), ("- " * 100_000, 1),
    ("\n".join(" " * n + "a:" for n in range(500)), 33), ("x: [" + "1," * 100_000 + "]", 1), ("x: " + "9" * 10**7, 1),
    ("env: &a {id: CartPole-v1, kwargs: *a}\n", 1),
], ids=lambda value: None if isinstance(value, int) else value[:20])
def test_a_file_that_would_expand_without_end_is_refused_at_once(tmp_path: Path, text: str, line: int) -> None:
    """Its values are counted without expanding them: twelve levels would take a terabyte."""
    assert complaint(write(tmp_path, text)).startswith(f"{tmp_path}/my.yaml:{line}: ")


def test_a_file_may_repeat_itself_a_little(tmp_path: Path) -> None:
    text = "env: {id: CartPole-v1}\nppo: {schedule: &s {bounds: [0.1, 10]}}\npolicy: {hidden: &h [8, 8], critic_hidden: *h}\n"
    assert load_config(write(tmp_path, text)).policy.critic_hidden == [8, 8]


def test_a_source_that_does_not_exist_names_the_nearest_preset(tmp_path: Path) -> None:
    assert "did you mean 'cartpole'?" in complaint("cart-pole")
    assert "presets are acrobot, cartpole, cartpole-memory, hopper" in complaint(str(tmp_path / "xyz.yml"))
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read as text" in complaint(str(tmp_path / "binary.yaml"))


def test_sections_are_merged_and_values_replaced(tmp_path: Path) -> None:
    """Options that are mappings (rewards, arguments of an environment) are values: they are set as a whole, or key by key."""
    file = tmp_path / "own.yaml"
    file.write_text("base: rocket-1v1\nenv: {rocket: {rewards: {touch: 3.0}, zero_sum: true}}\n")
    config = load_config(str(file))
    assert config.env.rocket is not None and config.env.rocket.rewards == {"touch": 3.0}
    assert config.env.rocket.zero_sum and config.env.rocket.endings["no_touch"] == {"seconds": 15}, "the rest is the preset's"
    config = load_config("rocket-1v1", ["env.rocket.rewards={goal: 5}", "env.rocket.rewards.touch=2", "env.count=3"])
    assert config.env.rocket is not None and config.env.rocket.rewards == {"goal": 5, "touch": 2} and config.env.count == 3
