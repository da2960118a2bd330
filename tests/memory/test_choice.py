"""What `auto` chooses: within bounds, more with more memory, the same recipe; recorded once, and never chosen again."""
from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch
from torch import Tensor

from tests.ppo.learners import run_config
from tests.toy_vec_envs import IdentityEnv
from wavedash import threads
from wavedash.assembly import make_policy
from wavedash.config import AUTO, EnvConfig, RunConfig
from wavedash.config_file import ConfigError, changed_config, describe_config, dump_config, load_config, smoke_overrides
from wavedash.doctor import examine
from wavedash.envs.errors import EnvError
from wavedash.envs.kinds import Kind, Spaces, kind_of
from wavedash.envs.make import make_env
from wavedash.envs.vec_env import VecEnv
from wavedash.errors import UserError
from wavedash.memory import hardware as found_hardware
from wavedash.memory.choice import SMALLEST_PART, Choice, choose, chosen, resolved
from wavedash.memory.hardware import GIB, Hardware, gpu, hardware_of, host_memory
from wavedash.memory.shapes import Shapes
from wavedash.memory.table import CARDS, lines, rows
from wavedash.ppo.learner import Learner
from wavedash.ppo.ranks import Ranks
from wavedash.training import resume, train

HERE = "tests.memory.test_choice"
CPU = torch.device("cpu")
ALL_AUTO = ("env.count=auto", "ppo.minibatch_size=auto", "precision=auto")
SHAPES = Shapes(rows=2, observation=886, action=8, memory=0, weights=5_208_428, actor_weights=2_695_528, networks=2,
                activations=11_854, widest=2048, outputs=364)
"""Those of rocket-1v1-gpu"""


def choice_for(gibibytes: float, *overrides: str, capability: tuple[int, int] = (8, 6), shapes: Shapes = SHAPES) -> Choice:
    config = load_config("rocket-1v1-gpu", overrides)
    return choose(config, gpu(gibibytes, capability), lambda precision: shapes)


# --- GPUs ------------------------------------------------------------------------------------------------------------


def test_more_memory_never_means_fewer_arenas_and_everything_fits():
    sizes = [2 + 2 * k for k in range(40)]
    choices = [choice_for(size) for size in sizes]
    counts = [choice.config.env.count for choice in choices]
    assert counts == sorted(counts) and min(counts) >= 512 and max(counts) == 16_384
    for size, choice in zip(sizes, choices, strict=True):
        assert choice.fits and choice.total < 0.9 * size * GIB
        assert choice.config.env.count.bit_count() == 1 and not choice.config.undecided
        assert choice.config.ppo.minibatch_size == 16_384, "the recipe is the same on every card"


def test_a_large_gpu_gets_what_is_recommended_for_it_and_8_gb_what_the_preset_had():
    for size, arenas in ((80, 16_384), (8, 8_192)):
        made = choice_for(size).config
        assert (made.env.count, made.ppo.minibatch_size, made.precision) == (arenas, 16_384, "bf16")
        assert made.ppo.microbatch_size is None


def test_the_memory_that_a_card_really_has_is_a_little_less_than_its_name():
    """CUDA reports 7.79 GiB of an RTX 3070, 3.82 of a GTX 1650, 22.06 of an A10 with error correction."""
    for reported, named in ((7.79, 8), (3.82, 4), (22.06, 24), (15.7, 16), (79.1, 80)):
        assert choice_for(reported).config.env.count == choice_for(named).config.env.count


@pytest.mark.parametrize(("capability", "precision"), [((9, 0), "bf16"), ((8, 0), "bf16"), ((7, 5), "fp16"), ((7, 0), "fp16"),
                                                       ((6, 1), "fp32")])
def test_precision_follows_from_the_tensor_cores(capability, precision):
    assert choice_for(8, capability=capability).config.precision == precision
    assert choice_for(8, "precision=fp32", capability=capability).config.precision == "fp32", "what is set is kept"


def test_what_is_set_is_kept_and_the_rest_is_chosen_for_it():
    made = choice_for(8, "env.count=100", "ppo.minibatch_size=auto").config
    assert made.env.count == 100 and made.ppo.minibatch_size == 512  # 6,400 samples: at least eight minibatches
    made = choice_for(8, "ppo.minibatch_size=3000").config
    assert made.env.count == 8_192 and made.ppo.minibatch_size == 3000
    plain = load_config("rocket-1v1")
    assert choose(plain, gpu(80), lambda precision: SHAPES).config == plain


def test_larger_teams_have_as_many_cars_and_larger_observations_fewer_arenas():
    def teams(size: int) -> RunConfig:
        return choice_for(80, f"env.rocket.blue={size}", f"env.rocket.orange={size}", "opponents=null", "rating=null",
                          shapes=Shapes(**{**vars(SHAPES), "rows": 2 * size})).config

    assert [teams(size).env.count for size in (1, 2, 3, 4)] == [16_384, 8_192, 4_096, 4_096]
    pictures = Shapes(**{**vars(SHAPES), "observation": 100_000})
    counts = [choice_for(size, shapes=pictures).config.env.count for size in (8, 24, 80)]
    assert counts == sorted(counts) and counts[0] < 8_192 and choice_for(24, shapes=pictures).fits


def test_a_minibatch_that_does_not_fit_is_split_and_keeps_its_size():
    huge = Shapes(**{**vars(SHAPES), "activations": 400_000, "widest": 40_000})
    for size in (4, 8, 16):
        choice = choice_for(size, shapes=huge)
        part = choice.config.ppo.microbatch_size
        assert choice.fits and choice.config.ppo.minibatch_size == 16_384
        assert part is not None and SMALLEST_PART <= part < 16_384 and 16_384 % part == 0
        twice = changed_config(choice.config, {("ppo", "microbatch_size"): 2 * part})
        assert not choose(twice, gpu(size), lambda precision: huge).fits, "the largest part that fits"
    assert choice_for(80, shapes=huge).config.ppo.microbatch_size is None
    assert choice_for(8, "ppo.microbatch_size=5000", shapes=huge).config.ppo.microbatch_size == 5000, "what is set is kept"


def test_a_run_that_cannot_fit_is_the_smallest_choice_and_says_so(monkeypatch, caplog):
    giant = Shapes(**{**vars(SHAPES), "weights": 2 * GIB})
    choice = choice_for(8, shapes=giant)
    assert not choice.fits and choice.config.env.count == 512 and choice.config.ppo.microbatch_size == SMALLEST_PART
    monkeypatch.setattr("wavedash.memory.choice.hardware_of", lambda *_: gpu(8))
    monkeypatch.setattr("wavedash.memory.choice.shapes_for", lambda *_: lambda precision: giant)
    with caplog.at_level(logging.WARNING):
        resolved(load_config("rocket-1v1-gpu"), torch.device("cuda"))
    assert "weights (15.0 GB)" in caplog.text and "policy.hidden" in caplog.text


def test_a_card_that_others_use_is_fitted_into_what_is_left(monkeypatch, caplog):
    busy = Hardware(torch.device("cuda"), 8 * GIB, 2 * GIB, (8, 6), taken=6 * GIB)
    monkeypatch.setattr("wavedash.memory.choice.hardware_of", lambda *_: busy)
    monkeypatch.setattr("wavedash.memory.choice.shapes_for", lambda *_: lambda precision: SHAPES)
    with caplog.at_level(logging.WARNING):
        made = resolved(load_config("rocket-1v1-gpu"), torch.device("cuda"))
    assert 512 <= made.env.count < 8_192 and "other programs use 6.0 of 8 GB of GPU memory" in caplog.text


def test_a_resumed_run_keeps_the_split_that_it_had(monkeypatch):
    """A whole minibatch, which no longer fits here: the update finds out by itself whether it really does not."""
    huge = Shapes(**{**vars(SHAPES), "activations": 400_000, "widest": 40_000})
    monkeypatch.setattr("wavedash.memory.choice.hardware_of", lambda *_: gpu(8))
    monkeypatch.setattr("wavedash.memory.choice.shapes_for", lambda *_: lambda precision: huge)
    numbers, device = choice_for(80).config, torch.device("cuda")
    assert resolved(numbers, device).ppo.microbatch_size is not None
    assert resolved(numbers, device, resumed=True) is numbers


made_alone: list[int] = []


def alone(count: int, device: torch.device) -> VecEnv:
    made_alone.append(count)
    if len(made_alone) > 1:
        raise RuntimeError("there is one already")
    return IdentityEnv(gymnasium.spaces.Discrete(3), rows=count)


def test_where_nothing_is_auto_no_environment_is_made_for_the_estimate(monkeypatch):
    monkeypatch.setattr("wavedash.memory.choice.hardware_of", lambda *_: gpu(8))
    made_alone.clear()
    source = ("cartpole", "env.id=null", f"env.factory={HERE}:alone", "env.count=4")
    config = load_config(source[0], source[1:])
    assert resolved(config, torch.device("cuda")) is config and not made_alone
    auto = load_config(source[0], [*source[1:], "ppo.minibatch_size=auto"])
    assert not resolved(auto, CPU).undecided and made_alone == [1], "the control: here it is needed"
    with pytest.raises(RuntimeError, match="one already"):
        resolved(auto, CPU)


def test_which_kinds_make_an_environment_for_their_spaces():
    def makes(*source: str) -> bool:
        env = load_config(source[0], source[1:]).env
        return kind_of(env).makes_one_for_spaces(env)

    assert makes("cartpole") and makes("cartpole", "env.id=null", f"env.factory={HERE}:alone")
    assert makes("cartpole", "env.id=null", f"env.factory={HERE}:Rooms") and not makes("rocket-1v1")
    assert not makes("cartpole", "env.id=null", f"env.factory={HERE}:KnownRooms")


def test_an_estimate_that_fails_matters_only_where_something_is_auto(monkeypatch, caplog):
    """A fault in the task: the run says what is wrong with it when it makes its arenas."""
    monkeypatch.setattr("wavedash.memory.choice.hardware_of", lambda *_: gpu(8))
    monkeypatch.setattr("wavedash.rocket.kind.RocketKind.spaces", lambda *_: 1 / 0)
    decided, device = choice_for(8).config, torch.device("cuda")
    with caplog.at_level(logging.DEBUG, "wavedash.memory.choice"):
        assert resolved(decided, device) is decided
    assert [record.levelno for record in caplog.records] == [logging.DEBUG] and "ZeroDivisionError" in caplog.text
    with pytest.raises(ZeroDivisionError):
        resolved(load_config("rocket-1v1-gpu"), device)


class OtherFails(Ranks):
    """Of two ranks, the other one could not estimate."""

    size = local_size = 2

    def any(self, flag: bool) -> bool:
        return True


def test_ranks_do_without_an_estimate_together(monkeypatch):
    huge = Shapes(**{**vars(SHAPES), "activations": 400_000, "widest": 40_000})
    monkeypatch.setattr("wavedash.memory.choice.hardware_of", lambda *_: gpu(8))
    monkeypatch.setattr("wavedash.memory.choice.shapes_for", lambda *_: lambda precision: huge)
    numbers, device = choice_for(80).config, torch.device("cuda")
    assert resolved(numbers, device, OtherFails()) is numbers and resolved(numbers, device) is not numbers


def test_the_line_that_says_what_was_chosen(monkeypatch):
    monkeypatch.setattr("wavedash.memory.choice.hardware_of", lambda *_: gpu(7.79))
    asked = load_config("rocket-1v1-gpu")
    assert chosen(asked, choice_for(7.79).config, torch.device("cuda")) == (
        "8 GB of GPU memory: 8,192 arenas, minibatches of 16,384, bf16")
    assert chosen(choice_for(8).config, choice_for(8).config, torch.device("cuda")) == ""


def test_the_table_of_doctor(capsys):
    table = rows()
    assert [round(row.hardware.total / GIB) for row in table if not row.here] == list(CARDS) == [4, 8, 16, 24, 80]
    counts = [row.choice.config.env.count for row in table]
    assert counts == sorted(counts) and counts[-1] == 16_384 and counts[1] == 8_192
    assert all(row.choice.total < row.hardware.usable for row in table)
    text = list(lines(table))
    assert text[2].split() == ["8", "GB", "8,192", "16,384", "bf16", f"{table[1].choice.total / GIB:.1f}", "GB"]
    page = (Path(__file__).parents[2] / "docs" / "memory.md").read_text(encoding="utf-8")
    assert all(line.strip() in page for line, row in zip(text[1:], table, strict=True) if not row.here), "docs/memory.md"
    printed = next(finding for finding in examine() if finding.subject == "memory")
    assert printed.table == tuple(text)


# --- CPUs ------------------------------------------------------------------------------------------------------------


def on_cpu(cores: int, gibibytes: float, monkeypatch: pytest.MonkeyPatch, *source: str) -> RunConfig:
    monkeypatch.setattr(threads, "allowed_cores", lambda: cores)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(found_hardware, "host_memory", lambda: round(gibibytes * GIB))
    return resolved(load_config(source[0], [*source[1:], *ALL_AUTO]), CPU)


def test_on_a_cpu_arenas_follow_from_its_cores(monkeypatch):
    """Two cores: the numbers of the preset for CPUs."""
    made = [on_cpu(cores, 32, monkeypatch, "rocket-1v1") for cores in (1, 2, 8, 64)]
    assert [config.env.count for config in made] == [64, 128, 512, 4096]
    assert [config.ppo.minibatch_size for config in made] == [1024, 2048, 2048, 2048]
    assert {config.precision for config in made} == {"fp32"} and all(config.ppo.microbatch_size is None for config in made)
    assert made[1].env.count == load_config("rocket-1v1").env.count
    assert on_cpu(64, 1.6, monkeypatch, "rocket-1v1").env.count < 4096, "half of the memory is for other programs"


def test_environments_that_are_stepped_one_by_one_are_four_for_each_core(monkeypatch):
    assert [on_cpu(cores, 16, monkeypatch, "cartpole").env.count for cores in (1, 4, 6, 16)] == [8, 16, 32, 64]
    many = on_cpu(2, 16, monkeypatch, "cartpole", "env.workers=20", "env.groups=2")
    assert many.env.count >= 20, "every worker has an environment"


def test_the_memory_of_this_machine_and_of_a_container(tmp_path, monkeypatch):
    import psutil

    assert host_memory() <= psutil.virtual_memory().total * 1.01
    (tmp_path / "memory.max").write_text("1234567\n")
    assert found_hardware._container_memory(tmp_path) == 1234567
    (tmp_path / "memory.max").write_text("max\n")
    assert found_hardware._container_memory(tmp_path) is None


# --- ranks -----------------------------------------------------------------------------------------------------------


class TwoCards(Ranks):
    """The other rank has a smaller and older card."""

    size = local_size = 2

    def all_gather(self, value: Any) -> list[Any]:
        return [value, gpu(4, (7, 5))]


def test_ranks_choose_alike_for_the_smallest_of_their_cards(monkeypatch):
    monkeypatch.setattr(found_hardware, "_own", lambda device, ranks: gpu(24))
    found = hardware_of(torch.device("cuda"), TwoCards())
    assert found == gpu(4, (7, 5)) and found.precision == "fp16"
    monkeypatch.setattr(found_hardware, "_own", lambda device, ranks: gpu(2, (9, 0)))
    found = hardware_of(torch.device("cuda"), TwoCards())
    assert found == gpu(2, (7, 5)), "the least of each"


# --- configurations --------------------------------------------------------------------------------------------------


def test_auto_is_written_and_read_back():
    config = load_config("cartpole", ALL_AUTO)
    assert config.undecided == ["env.count", "ppo.minibatch_size", "precision"] and config.env.count == AUTO
    assert "count: auto" in dump_config(config) and "minibatch_size: auto" in describe_config(config)
    assert changed_config(config, {}) == config
    with pytest.raises(ConfigError, match=r"env.count: expected auto or a whole number greater than 0, got 0"):
        load_config("cartpole", ["env.count=0"])
    assert load_config("cartpole", [*ALL_AUTO, *smoke_overrides(config)]).env.count == 20


def test_nothing_is_built_of_an_undecided_configuration():
    config = run_config({"minibatch_size": "auto"})
    env = IdentityEnv(gymnasium.spaces.Discrete(3), rows=4)
    with pytest.raises(UserError, match=r"ppo.minibatch_size must be decided.*resolved"):
        Learner(env, make_policy(env, config), config)
    with pytest.raises(EnvError, match=r"env.count=auto must be a number"):
        make_env(load_config("cartpole", ALL_AUTO).env)


@pytest.mark.parametrize("preset", ["cartpole", "pendulum", "cartpole-memory", "rocket-touch"])
def test_every_kind_of_run_can_be_decided(preset):
    asked = load_config(preset, ALL_AUTO)
    made = resolved(asked, CPU)
    assert not made.undecided and resolved(made, CPU) is made
    names = ("env", "ppo", "precision")
    for name, value in asked:
        assert name in names or getattr(made, name) == value


# --- runs ------------------------------------------------------------------------------------------------------------

TINY = ("total_steps=64", "ppo.rollout_steps=8", "policy.hidden=[8]", "report.console=off", "report.tensorboard=false",
        "device=cpu")


def test_a_run_records_what_was_chosen_and_goes_on_with_it(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    assert train("cartpole", *TINY, *ALL_AUTO, "threads=1") == 0
    (folder,) = tmp_path.glob("cartpole/*/")
    first = load_config(str(folder / "config.yaml"))
    assert not first.undecided and first.env.count == 8
    log = (folder / "log.txt").read_text()
    assert "1 CPU core(s) and" in log and "8 environments, minibatches of 64, fp32" in log
    # On a machine with more cores another number would be chosen.
    assert resume(str(folder), "total_steps=128", "threads=8") == 0
    assert load_config(str(folder / "config.yaml")).env.count == 8
    assert '"steps": 128' in "".join(file.read_text() for file in folder.glob("final/*/state.json"))


class Hungry(IdentityEnv):
    """A batch of environments that needs more memory than there is, if there are more than 48."""


def hungry(count: int, device: torch.device) -> VecEnv:
    if count > 48:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
    return Hungry(gymnasium.spaces.Discrete(3), rows=count)


class Starving(Hungry):
    def step(self, action: Tensor) -> Any:
        raise RuntimeError("Failed to allocate 1000 bytes on device 'cuda:0'")


def starving(count: int, device: torch.device) -> VecEnv:
    return Starving(gymnasium.spaces.Discrete(3), rows=count)


@pytest.mark.parametrize(("factory", "count", "fewer"), [("hungry", 64, 8), ("hungry", 49, 8), ("starving", 12, 6)])
def test_environments_that_do_not_fit_are_named_with_a_number_that_does(factory, count, fewer, tmp_path, monkeypatch):
    """The kind of environment takes 8 of them where it may choose, on one core."""
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    overrides = [*TINY, "threads=1", "env.id=null", f"env.factory={HERE}:{factory}", f"env.count={count}"]
    with pytest.raises(UserError, match=rf"env.count={count} does not fit into the memory of cpu.*Set env.count={fewer}, "):
        train("cartpole", *overrides)
    if factory == "hungry":
        assert train("cartpole", *overrides, f"env.count={fewer}") == 0


def test_other_errors_of_environments_are_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path))
    monkeypatch.setattr(Starving, "step", lambda self, action: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train("cartpole", *TINY, "env.id=null", f"env.factory={HERE}:starving", "env.count=2")


class Rooms(Kind):
    """A user's own kind, each of whose environments takes 10 MiB."""

    plural = "rooms"

    def describe(self, config: EnvConfig) -> str:
        return "rooms"

    def make(self, config: EnvConfig, device: torch.device) -> VecEnv:
        return IdentityEnv(gymnasium.spaces.Discrete(3), rows=config.count)

    def memory(self, config: EnvConfig, device: torch.device) -> dict[str, int]:
        return {"rooms": config.count * 10 * 2**20}

    def counts(self, config: EnvConfig, device: torch.device) -> tuple[int, int]:
        return 2, 128


class KnownRooms(Rooms):
    """It knows its spaces without making a room."""

    def spaces(self, config: EnvConfig, device: torch.device) -> Spaces:
        return Spaces(gymnasium.spaces.Box(-1.0, 1.0, (3,)), gymnasium.spaces.Discrete(3))


def test_a_kind_of_ones_own_says_what_it_takes(monkeypatch):
    source = ("cartpole", "env.id=null", f"env.factory={HERE}:Rooms")
    # Half of the memory is for the run; half a GiB is for Python.
    assert [on_cpu(1, size, monkeypatch, *source).env.count for size in (8, 2.9, 1.9, 1.0)] == [128, 64, 32, 2]
