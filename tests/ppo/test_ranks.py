"""Two processes with half of the rows each are one process with all of them: gradients, statistics, decisions, metrics."""
from __future__ import annotations

import os
import socket
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor

from tests import prepared
from tests.ppo.two_ranks import (
    CASES,
    HALVES,
    MISTAKES,
    OWN_SAMPLES,
    RANKS,
    RESUMED,
    ROWS,
    SEED,
    SHORT_OF_MEMORY,
    SHORTAGES,
    make_learner,
    outcome,
)
from tests.roundings import FUNCTION, gamma
from wavedash.ppo.episodes import Episode
from wavedash.ppo.learner import Learner
from wavedash.ppo.readout import Readout, joined
from wavedash.seeding import stream_seed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CLOSE = gamma(20 * (64 + 2 * 16 + 5 * FUNCTION))
"""48 gradient steps move the weights by a third of a gradient each (rate over epsilon), or the 12 of the early stop by five
thirds. A gradient sums 64 samples through layers of 16, in another order if they come from two ranks."""
Result = dict[str, Any]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """The results of two real processes, in the order of their ranks."""
    folder = tmp_path_factory.mktemp("ranks")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for rank in range(RANKS):
        names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_WORLD_SIZE": RANKS, "MASTER_PORT": port}
        environment = {**os.environ, **{name: str(x) for name, x in names.items()}, "MASTER_ADDR": "127.0.0.1"}
        command = ["-m", "tests.ppo.two_ranks", str(folder / f"{rank}.pt")]
        with (folder / f"{rank}.txt").open("w") as errors:
            started.append(prepared.popen(command, ROOT, environment, stderr=errors))
    try:
        codes = [process.wait(240) for process in started]
    finally:
        for process in started:
            process.kill()
    assert codes == [0] * RANKS, "\n".join(file.read_text() for file in folder.glob("*.txt"))
    return [torch.load(folder / f"{rank}.pt") for rank in range(RANKS)]


def alone(case: str) -> Result:
    """The same rows in one process, which takes the samples of each minibatch that the ranks take."""
    learner = make_learner(case)
    with mock.patch.object(torch, "randperm", joined_order(learner)) if "minibatch_size" in CASES[case][1] else nullcontext():
        return outcome(learner)


def joined_order(learner: Learner) -> Any:
    """A `randperm` that gives the samples (or sequences) of the ranks' minibatches, minibatch by minibatch."""
    own_rows = ROWS // RANKS
    streams = [torch.Generator().manual_seed(stream_seed(SEED, "minibatches", rank)) for rank in range(RANKS)]
    shuffle = torch.randperm

    def randperm(size: int, **_: Any) -> Tensor:
        pieces = -(-size // max(1, learner.config.ppo.minibatch_size // (learner.policy.sequence_length or 1)))
        orders = [shuffle(size // RANKS, generator=stream) for stream in streams]
        in_all = [i // own_rows * ROWS + HALVES[rank].start + i % own_rows for rank, i in enumerate(orders)]
        order = torch.cat([part for each in zip(*(x.tensor_split(pieces) for x in in_all), strict=True) for part in each])
        assert order.sort().values.equal(torch.arange(size))
        return order

    return randperm


def distance(one: Any, other: Any) -> float:
    """The largest difference between numbers, relative to those above 1."""
    a, b = (torch.as_tensor(x, dtype=torch.float64).nan_to_num(-1.0) for x in (one, other))
    assert a.shape == b.shape
    return float(((a - b).abs() / b.abs().clamp(min=1.0)).max()) if a.numel() else 0.0


def distances(one: Result, other: Result) -> dict[str, float]:
    assert one["tensors"].keys() == other["tensors"].keys()
    found = {name: distance(x, other["tensors"][name]) for name, x in one["tensors"].items()}
    for name in ("counters", "recent"):
        found[name] = distance(one[name], other[name])
    for index, (a, b) in enumerate(zip(one["metrics"], other["metrics"], strict=True)):
        assert a.keys() == b.keys()
        found |= {f"{name} of iteration {index}": distance(a[name], b[name]) for name in a}
    return found


@pytest.mark.parametrize("case", CASES)
def test_two_ranks_are_one_with_the_joined_rows(case, ranks):
    expected = alone(case)
    for result in ranks:
        found = distances(result[case], expected)
        assert max(found.values()) < CLOSE, {name: x for name, x in found.items() if x >= CLOSE}
    assert max(distances(ranks[0][case], ranks[1][case]).values()) == 0.0


def test_ranks_that_keep_their_largest_advantages_stay_equal(ranks):
    for case in OWN_SAMPLES:
        assert max(distances(ranks[0][case], ranks[1][case]).values()) == 0.0
        metrics = ranks[0][case]["metrics"][-1]  # 8 steps of 4 rows: of 32 samples 16 are kept, in two minibatches
        assert metrics["optim/gradient_steps"] == 3 * 2 and metrics["optim/update_size"] > 0
    one, other = (ranks[0][case]["tensors"]["actor.trunk.body.layers.0.weight"] for case in OWN_SAMPLES)
    assert distance(one, other) > CLOSE


@pytest.mark.parametrize("case", SHORT_OF_MEMORY)
def test_ranks_split_alike_where_the_memory_of_one_is_too_small(case, ranks):
    results = [result[f"short of memory: {case}"] for result in ranks]
    assert results[0]["fitting"] == results[1]["fitting"] <= 4
    for result in results:
        assert max(distances(result["found"], result["told"]).values()) == 0.0, "bit for bit as if they had been told"
    assert max(distances(results[0]["found"], results[1]["found"]).values()) == 0.0
    assert all(iteration["optim/skipped"] == 0 for iteration in results[0]["found"]["metrics"])


@pytest.mark.parametrize("where", SHORTAGES)
def test_ranks_begin_again_together_wherever_the_memory_of_one_runs_out(where, ranks):
    results = [result[f"shortage: {where}"] for result in ranks]
    assert results[0]["failures"] == 0 < results[1]["failures"] and results[0]["fitting"] == results[1]["fitting"]
    assert results[0]["fitting"] is not None
    for result in results:
        assert max(distances(result["found"], result["told"]).values()) == 0.0, "bit for bit as if they had been told"
    assert max(distances(results[0]["found"], results[1]["found"]).values()) == 0.0


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_of_ranks_would_be_seen(mistake, ranks):
    """The control: the comparison above does not pass by itself."""
    expected = alone(MISTAKES[mistake][0])
    weights = [name for name in expected["tensors"] if name.startswith(("actor.", "critic."))]
    for result in ranks:
        found = distances(result[mistake], expected)
        assert max(found[name] for name in weights) > 3 * CLOSE


def test_ranks_begin_with_the_weights_of_the_first(ranks):
    expected = alone("discrete")
    assert max(distances(result["unlike weights"], expected)["actor.head.logits.bias"] for result in ranks) < CLOSE


def test_ranks_with_different_configurations_are_refused(ranks):
    for result in ranks:
        assert "different configurations" in result["unlike configurations"]


def test_the_cases_stop_early_and_normalise_across_ranks():
    stopped = alone("early stop")["metrics"]
    assert any(0 < iteration["optim/gradient_steps"] < 3 for iteration in stopped)
    normalised = alone("gaussian, normalised, kl schedule")
    assert len({iteration["optim/learning_rate"] for iteration in normalised["metrics"]}) > 1
    assert normalised["tensors"]["normalizer.parts.obs.var"].min() > 10.0, "4 within each half, the rest between them"
    learner = make_learner("discrete")
    learner.iterate()
    active = [int(learner.rollout.active[:, half].sum()) for half in HALVES]
    assert active[0] > 2 * active[1] > 0
    assert "env/episode/success" in stopped[-1] and stopped[-1]["health/dropped_episodes"] == ROWS // 2


@pytest.mark.parametrize("case", RESUMED)
def test_ranks_stop_together_and_resume_exactly(case, ranks):
    """The first rank keeps the state of both, the second alone is told to stop."""
    first, second = (result[f"resumed: {case}"] for result in ranks)
    assert first["iterations"] == second["iterations"] == 6
    assert second["reason"] == "enough" and "another process" in first["reason"]
    assert first["resumed_metrics"] == first["metrics"][3:]
    (tensors, plain), (resumed, resumed_plain) = first["kept"][-1], first["resumed"][-1]
    assert str(plain) == str(resumed_plain) and plain["ranks"] == 2
    assert tensors.keys() == resumed.keys() >= {"rank1-env", "rank1-learner", "rank1-optimizer"}
    for group, part in tensors.items():
        for name, x in part.items():
            assert torch.equal(x, resumed[group][name]), (group, name)
    assert not torch.equal(tensors["rank1-learner"]["actions.0"], tensors["learner"]["actions.0"])
    assert not torch.equal(tensors["rank1-optimizer"]["minibatches"], tensors["optimizer"]["minibatches"])
    assert not [group for group in tensors if group.endswith("-listeners")], "the first rank saves for all"
    for result in (first, second):  # a listener of each rank went on from there
        assert result["counted"]["told"] == result["counted_again"]["told"] == [1, 2, 3, 4, 5, 6]
        assert torch.equal(result["counted"]["returns"], result["counted_again"]["returns"])
        assert torch.equal(result["counted"]["returns"], first["counted"]["returns"])


def test_a_rank_that_fails_ends_all_and_the_first_keeps_its_work(ranks):
    first, second = (result["failed"] for result in ranks)
    assert second["error"] == "EnvError: the bridge is out"
    assert first["error"].startswith("RanksError: another process of this run has ended")
    assert first["iteration"] == 2
    ((tensors, plain),) = first["kept"]
    assert plain["iteration"] == 2 and plain["ranks"] == 1 and "policy" in tensors and "rank1-env" not in tensors


def test_episodes_of_ranks_take_turns():
    """However many end on one rank: the window of recent episodes is of all."""
    many, few = [Episode(x, 1.0, 0.0) for x in range(5)], [Episode(10 + x, 1.0, 0.0) for x in range(2)]
    both = joined([Readout({"steps": 3.0}, many, {"lost": 1}), Readout({"steps": 4.0, "env/speed": 2.0}, few, {})])
    assert [episode.ret for episode in both.episodes] == [0, 1, 2, 10, 3, 11, 4]
    assert both.sums == {"steps": 7.0, "env/speed": 2.0} and both.health == {"lost": 1}
