"""Pieces of a minibatch on several threads give the gradient of the whole, and the same bits for any number of threads."""
from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.ppo.learners import made_up_experience, run_config, trained_policy
from tests.roundings import FUNCTION, assert_rounded
from wavedash.assembly import assembled
from wavedash.config_file import load_config
from wavedash.policy.explicit import ExplicitPolicy
from wavedash.ppo import pieces
from wavedash.ppo.pieces import piece_bounds, run_in_threads
from wavedash.ppo.update import Updater


def updated(monkeypatch, threads: int, whole: bool = False, **policy):
    """Weights, statistics and table after an update whose minibatches are large enough for pieces, unless `whole`."""
    monkeypatch.setattr(pieces, "compute_threads", lambda: threads)
    monkeypatch.setattr(pieces, "SMALL_MATRIX", 2**60 if whole else 1)
    made = trained_policy("discrete", True, **policy)
    # Epsilon is as large as the gradients, so that Adam enlarges no rounding.
    ppo = {"epochs": 2, "minibatch_size": 160, "learning_rate": 0.5, "adam_eps": 1.0}
    updater = Updater(made, run_config(ppo).ppo, seed=0)
    table = updater.update(made_up_experience(made, 64, 5, inactive=0.3))
    assert (updater._pieces is None) is whole
    return updater.optimizer.parameters, updater.optimizer.exp_avg_sq, table.values


@pytest.fixture(params=[True, False], ids=["written out", "autograd"])
def backward(request, monkeypatch):
    """Gradients are written out by hand, or computed by autograd."""
    if not request.param:
        monkeypatch.setattr(ExplicitPolicy, "fits", staticmethod(lambda policy: False))


@pytest.mark.usefixtures("backward")
@pytest.mark.parametrize("policy", [{}, {"shared": True}])
def test_the_number_of_threads_changes_no_bit(monkeypatch, policy):
    alone = updated(monkeypatch, 1, **policy)
    for threads in (2, 3, 8):
        for ours, theirs in zip(updated(monkeypatch, threads, **policy), alone, strict=True):
            assert torch.equal(ours, theirs)


def test_the_number_of_threads_changes_no_bit_of_a_run_with_memory(monkeypatch):
    monkeypatch.setattr(pieces, "SMALL_MATRIX", 1)
    weights = []
    for threads in (1, 3):
        with assembled(load_config("cartpole-memory", [f"threads={threads}", "ppo.epochs=2", "device=cpu"])) as learner:
            learner.start()
            learner.iterate()
            assert learner.updater._pieces is not None
            weights.append(learner.updater.optimizer.parameters)
    assert torch.equal(*weights)


@pytest.mark.usefixtures("backward")
@pytest.mark.parametrize("policy", [{}, {"shared": True}])
def test_pieces_make_the_gradient_of_the_whole(monkeypatch, policy):
    for ours, whole in zip(updated(monkeypatch, 2, **policy), updated(monkeypatch, 1, whole=True, **policy), strict=True):
        # A gradient sums 160 samples through layers of 16; four steps move the weights by at most half of it each.
        assert_rounded(ours, whole, 4 * (160 + 2 * 16 + 5 * FUNCTION), whole.abs().clamp(min=1.0))


def test_pieces_cover_a_minibatch_and_depend_on_its_size_alone(monkeypatch):
    policy = trained_policy("discrete")
    wide = run_config({}).policy.model_copy(update={"hidden": [256, 256]})
    policy.config = wide
    for samples in (1024, 2048, 50_000, 10**6, 2049):
        bounds = piece_bounds(samples, policy)
        assert bounds[0] == 0 and bounds[-1] == samples and bounds == sorted(set(bounds)) and len(bounds) > 2
    assert piece_bounds(1023, policy) == [0, 1023], "too small to be shared"
    sizes = [b - a for a, b in zip(piece_bounds(2048, policy), piece_bounds(2048, policy)[1:], strict=False)]
    assert sizes == [512, 512, 384, 384, 128, 128]


# --- threads ---------------------------------------------------------------------------------------------------------


def test_each_number_is_taken_once_by_as_many_threads_as_asked():
    with ThreadPoolExecutor(8) as pool:
        for threads in (1, 2, 5):
            taken, who, together = [], set(), threading.Barrier(threads)

            def one(k: int, taken=taken, who=who, together=together, threads=threads) -> None:
                if k < threads:
                    together.wait(30)  # the threads go on only when so many work at once
                taken.append(k)
                who.add(threading.current_thread())

            run_in_threads(one, 40, pool, threads)
            assert sorted(taken) == list(range(40)) and len(who) == threads


@pytest.mark.parametrize("in_helper", [True, False])
def test_after_an_error_no_thread_goes_on(in_helper):
    """An interrupted update must not be writing gradients while the run is being saved."""
    main, finished, both = threading.main_thread(), [], threading.Barrier(2)

    def one(k: int) -> None:
        both.wait(30)
        if (threading.current_thread() is not main) is in_helper:
            raise KeyboardInterrupt if not in_helper else RuntimeError("a piece failed")
        time.sleep(0.2)
        finished.append(k)

    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(RuntimeError if in_helper else KeyboardInterrupt):
            run_in_threads(lambda k: one(k) if k < 2 else finished.append(k), 2, pool, 2)
        assert len(finished) == 1, "the other piece was finished before the error came out"
        before = list(finished)
        time.sleep(0.3)
        assert finished == before


def test_twins_share_weights_and_have_gradients_of_their_own():
    policy = trained_policy("discrete", True)
    updater = Updater(policy, run_config({}).ppo, seed=0)
    made = pieces.Pieces(policy, updater.optimizer)
    updater.optimizer.parameters.fill_(0.5)
    gradients = set()
    for twin in made.policies:
        assert all(bool((p == 0.5).all()) for p in twin.parameters())
        gradients |= {p.grad.data_ptr() for p in twin.parameters()}
    own = [p.grad.data_ptr() for p in policy.parameters()]
    assert len(gradients) == len(own) * len(made.policies) and not gradients & set(own)
