"""The saver with a small real learner: what is saved and when, what survives a failure, and that a resume is exact."""
from __future__ import annotations

import logging
import math
from functools import partial

import pytest
import torch
from gymnasium.spaces import Box, Discrete

from tests.runs.stand_in import StandInLearner, make_run
from wavedash.config import PolicyConfig
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.listener import Listener
from wavedash.runs.checkpoint import Checkpoint, CheckpointError
from wavedash.runs.find import resolve_policy
from wavedash.runs.interrupt import SaveNow
from wavedash.runs.saver import Saver


def steps_in(run, store: str) -> list[int]:
    return sorted(Checkpoint.open(path).step for path in (run.path / store).glob("step-*"))


def learner_for(run, config, **kwargs) -> StandInLearner:
    return StandInLearner([Saver(run, config.checkpoint)], total_steps=config.total_steps, **kwargs)


def test_a_whole_run_leaves_the_newest_the_spaced_and_the_final_checkpoints(tmp_path):
    run, config = make_run(tmp_path, every=20, keep=2, spaced_every=50)
    learner = learner_for(run, config, steps_per_iteration=15)
    learner.learn()
    assert learner.steps == 105
    assert steps_in(run, "checkpoints") == [90, 105]  # 30, 45, 60, 90 crossed multiples of 20; 105 crossed 100
    assert steps_in(run, "spaced") == [60, 105]
    assert steps_in(run, "final") == [105]
    final = run.store("final").newest()
    loaded, _ = final.load(["actor", "critic"])
    assert loaded["actor"].keys() == {"actor.weight", "actor.bias"}
    assert torch.equal(loaded["actor"]["actor.weight"], learner.model["actor"].weight)
    assert final.metadata["iteration"] == 7
    assert final.metadata["metrics"]["loss/value"] > 0


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("memory", ["none", "gru"])
def test_the_final_actor_acts_and_the_final_critic_values_without_the_other(tmp_path, shared, memory):
    trained, other = (_policy(seed, shared, memory) for seed in (1, 2))
    run, config = make_run(tmp_path)
    learner = learner_for(run, config)
    learner.state = lambda: ({"policy": trained.state_dict()}, {"steps": 0, "iteration": 0})
    learner.learn()
    loaded, _ = run.store("final").newest().load(["actor", "critic"])
    obs = torch.randn(16, 3)
    log_prob, value = _outputs(trained, obs)
    for part, acts, values in (("actor", True, False), ("critic", False, True)):
        other.load_state_dict(_policy(2, shared, memory).state_dict())
        assert other.load_state_dict(loaded[part], strict=False).unexpected_keys == []
        other_log_prob, other_value = _outputs(other, obs)
        assert torch.equal(other_log_prob, log_prob) == acts and torch.equal(other_value, value) == values


def _policy(seed: int, shared: bool, memory: str) -> ActorCritic:
    torch.manual_seed(seed)
    config = PolicyConfig.model_validate({"hidden": [8], "shared": shared, "memory": {"kind": memory, "size": 4}})
    policy = ActorCritic(Box(-1, 1, (3,)), Discrete(5), config, normalize_obs=10.0)
    assert policy.normalizer is not None
    policy.normalizer.accumulate(torch.randn(10, 3) * seed, torch.ones(10))
    policy.normalizer.commit()
    return policy


@torch.no_grad()
def _outputs(policy: ActorCritic, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of actions drawn with one seed, and values."""
    decision = policy.act(policy.normalize(obs), policy.initial_memory(len(obs)), torch.Generator().manual_seed(0))
    return decision.log_prob, decision.value


def test_a_run_that_was_stopped_and_resumed_equals_one_that_was_not(tmp_path):
    run, config = make_run(tmp_path, total_steps=200)
    whole = learner_for(run, config)
    whole.learn()

    def stop_from(steps, learner):
        if learner.steps >= steps:
            learner.stop("test")

    run, _ = make_run(tmp_path, total_steps=200)
    for stop_at in (70, 110, 200):
        part = learner_for(run, config)
        if newest := run.newest():
            part.load_state(*newest.load())
        part.during = partial(stop_from, stop_at)
        part.learn()
        assert run.newest().step == stop_at
    assert torch.equal(part.weights(), whole.weights())


@pytest.mark.parametrize("error", [ValueError("bad env"), SaveNow()])
def test_a_run_that_an_error_ended_goes_on_from_the_beginning_of_that_iteration(tmp_path, error):
    run, config = make_run(tmp_path)
    whole = learner_for(run, config)
    whole.learn()

    run, config = make_run(tmp_path)
    learner = learner_for(run, config)

    def during(learner):
        if learner.steps == 50:
            raise error

    learner.during = during
    with pytest.raises(type(error)):
        learner.learn()
    assert run.newest().step == 40
    assert steps_in(run, "final") == []
    second = learner_for(run, config)
    second.load_state(*run.newest().load())
    second.learn()
    assert torch.equal(second.weights(), whole.weights())


def test_a_run_that_was_stopped_before_its_first_step_can_be_resumed(tmp_path):
    run, config = make_run(tmp_path)
    learner = learner_for(run, config)
    learner.stop("test")
    learner.learn()
    assert steps_in(run, "checkpoints") == [0]


def test_a_run_that_could_not_begin_has_no_checkpoint(tmp_path):
    run, config = make_run(tmp_path)
    learner = learner_for(run, config)
    learner.during = lambda learner: 1 / 0
    with pytest.raises(ZeroDivisionError):
        learner.learn()
    assert steps_in(run, "checkpoints") == []


def test_a_failed_save_that_was_asked_for_is_a_failure_of_the_run(tmp_path):
    run, config = make_run(tmp_path, every=1000)
    (run.path / "checkpoints").rmdir()
    (run.path / "checkpoints").write_text("in the way")
    learner = learner_for(run, config)

    def during(learner):
        if learner.steps == 50:
            raise SaveNow

    learner.during = during
    with pytest.raises(SaveNow):
        learner.learn()
    saver = learner.listeners[0]
    assert isinstance(saver, Saver) and "step 40 was not saved" in str(saver.failure)


def test_the_best_checkpoint_is_that_of_all_iterations_although_it_is_seldom_written(tmp_path):
    run, config = make_run(tmp_path, every=400, total_steps=200)  # best is written every 40 steps at most
    saver, written, weights = Saver(run, config.checkpoint), [], {}
    save = saver._best.store.save

    class Watcher(Listener):
        def on_iteration(self, learner, report):
            weights[report.steps] = learner.weights()

    def spied_save(step, tensors, *rest):
        written.append((learner.steps, step))
        assert torch.equal(tensors["policy"]["actor.weight"].flatten(), weights[step][:32])  # not the current ones
        return save(step, tensors, *rest)

    saver._best.store.save = spied_save
    learner = StandInLearner([Watcher(), saver], total_steps=200)
    values = {1: 1, 2: 2, 3: 9, 4: 4, 5: 5, 6: 6, 7: 9, 8: math.nan, 9: math.inf, 10: 10, 11: 9.5}
    learner.returns = {iteration: (float(value), 100.0) for iteration, value in values.items()}
    learner.learn()
    assert written == [(10, 10), (50, 30), (100, 100)]  # (when, which): the 9 of iteration 3 was caught at step 50
    best = run.store("best").newest()
    assert best.metadata["metrics"]["recent/return"] == 10
    assert steps_in(run, "best") == [100]


def test_a_best_checkpoint_that_waits_is_written_when_the_run_ends_even_by_an_error(tmp_path):
    run, config = make_run(tmp_path, every=1000)
    learner = learner_for(run, config)
    learner.returns = {1: (1.0, 100.0), 2: (2.0, 100.0)}
    learner.during = lambda learner: 1 / (30 - learner.steps)
    with pytest.raises(ZeroDivisionError):
        learner.learn()
    assert steps_in(run, "best") == [20]


def test_the_best_of_an_earlier_process_must_be_beaten(tmp_path):
    run, config = make_run(tmp_path, every=10)
    for returns, best in (({1: 5.0}, 5.0), ({2: 4.0}, 5.0), ({2: 5.0}, 5.0), ({2: 6.0}, 6.0)):
        learner = learner_for(run, config)
        learner.returns = {iteration: (value, 100.0) for iteration, value in returns.items()}
        learner.learn()
        assert run.store("best").newest().metadata["metrics"]["recent/return"] == best


class Rates(Listener):
    """It reports made-up ratings, value and lower end, after some of the iterations."""

    def __init__(self, ratings: dict[int, tuple[float, float]], saver: Saver, size: float = 1.0) -> None:
        self.ratings, self.saver, self.size = ratings, saver, size

    def on_start(self, learner):
        self.saver.on_start(learner)

    def on_iteration(self, learner, report):
        if report.iteration in self.ratings:
            elo, low = self.ratings[report.iteration]
            report = report.with_metrics({"rating/elo": elo, "rating/low": low, "rating/size": self.size})
        self.saver.on_iteration(learner, report)

    def on_stop(self, learner, error):
        self.saver.on_stop(learner, error)


def test_best_by_rating_is_the_one_whose_lower_end_is_highest_whatever_the_return(tmp_path):
    """The return rises all the time, the rating falls after iteration 5, and the highest one, at 7, is the least certain."""
    run, config = make_run(tmp_path, every=10)
    by_rating = config.checkpoint.model_copy(update={"best_by": "rating"})
    ratings = {3: (1000.0, 900.0), 5: (1200.0, 1150.0), 7: (1400.0, 1000.0), 9: (900.0, 800.0)}
    learner = StandInLearner([Rates(ratings, Saver(run, by_rating))])
    learner.returns = {iteration: (float(iteration), 100.0) for iteration in range(1, 11)}
    learner.learn()
    assert run.store("best").newest().step == 50
    again = StandInLearner([Rates({2: (1300.0, 1149.0)}, Saver(run, by_rating))])
    again.learn()
    assert run.store("best").newest().step == 50, "that of an earlier process must be beaten"


def test_a_rating_in_another_team_size_is_not_measured_against_those_before(tmp_path):
    run, config = make_run(tmp_path, every=10)
    by_rating = config.checkpoint.model_copy(update={"best_by": "rating"})
    for size, lows, best in ((1.0, (1500.0, 1400.0), 1500.0), (1.0, (1450.0,), 1500.0), (2.0, (900.0, 950.0, 940.0), 950.0),
                             (2.0, (945.0,), 950.0)):
        rated = {iteration: (1600.0, low) for iteration, low in enumerate(lows, 1)}
        StandInLearner([Rates(rated, Saver(run, by_rating), size)]).learn()
        assert run.store("best").newest().metrics["rating/low"] == best


def test_a_best_by_return_is_replaced_by_the_first_that_is_rated(tmp_path):
    run, config = make_run(tmp_path, every=10)
    learner = learner_for(run, config)
    learner.returns = {1: (5.0, 100.0)}
    learner.learn()
    by_rating = config.checkpoint.model_copy(update={"best_by": "rating"})
    StandInLearner([Rates({4: (-50.0, -300.0)}, Saver(run, by_rating))]).learn()
    assert run.store("best").newest().step == 40


def test_a_run_stands_for_its_newest_checkpoint_where_tasks_get_harder(tmp_path):
    """The return is highest at the beginning: by return that state would be what `RUN` means."""
    for by, expected in (("return", 10), ("newest", 100)):
        run, config = make_run(tmp_path / by, every=30)
        learner = StandInLearner([Saver(run, config.checkpoint.model_copy(update={"best_by": by}))])
        learner.returns = {iteration: (100.0 - iteration, 100.0) for iteration in range(1, 11)}
        learner.learn()
        assert resolve_policy(run.path).step == expected


def test_a_few_lucky_episodes_do_not_stay_the_best_for_ever(tmp_path):
    run, config = make_run(tmp_path, every=10, best_window=50)
    learner = learner_for(run, config)
    learner.returns = {1: (99.0, 9.0), 2: (30.0, 10.0), 3: (20.0, 49.0), 4: (10.0, 50.0), 5: (11.0, 50.0), 6: (50.0, 20.0)}
    learner.learn()
    assert run.store("best").newest().step == 50


def test_a_failing_disk_does_not_stop_training_and_is_tried_again(tmp_path, caplog):
    run, config = make_run(tmp_path, every=100, total_steps=300)
    (run.path / "checkpoints").rmdir()
    (run.path / "checkpoints").write_text("in the way")  # every save fails, for real
    learner = learner_for(run, config, steps_per_iteration=1)
    learner.during = lambda learner: (run.path / "checkpoints").unlink() if learner.steps == 125 else None
    with caplog.at_level(logging.ERROR):
        learner.learn()
    assert learner.listeners[0].health == {"failed_saves": 3}  # at 100, 110 and 120; at 130 it worked
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 3
    assert "step 100 was not saved into" in caplog.text
    assert steps_in(run, "checkpoints") == [130, 200, 300]


def test_a_last_state_that_cannot_be_saved_fails_a_good_run_but_hides_no_error(tmp_path):
    run, config = make_run(tmp_path, every=1000)
    (run.path / "checkpoints").rmdir()
    (run.path / "checkpoints").write_text("in the way")
    learner = learner_for(run, config)
    with pytest.raises(CheckpointError, match="was not saved"):
        learner.learn()
    learner = learner_for(run, config)
    learner.during = lambda learner: 1 / (30 - learner.steps)
    with pytest.raises(ZeroDivisionError):
        learner.learn()
    learner = learner_for(run, config)

    def during(learner):
        if learner.steps == 30:
            learner.state = lambda: [][0]  # it raises, as after an error of the device
            raise ZeroDivisionError

    learner.during = during
    with pytest.raises(ZeroDivisionError):
        learner.learn()


def test_weights_that_are_not_finite_never_replace_good_ones(tmp_path, caplog):
    run, config = make_run(tmp_path, every=10, keep=1)
    learner = learner_for(run, config)

    def during(learner):
        if learner.steps == 40:
            with torch.no_grad():
                learner.model["actor"].bias[3] = math.nan

    learner.during = during
    with pytest.raises(CheckpointError, match=r"step 100 was not saved: actor.weight of the policy holds NaN"):
        learner.learn()
    assert run.newest().step == 30
    assert "resume with a lower ppo.learning_rate" in caplog.text


def test_leftovers_of_a_killed_process_are_removed_at_the_start(tmp_path):
    run, config = make_run(tmp_path)
    for store in ("checkpoints", "best", "final"):
        (run.path / store / ".tmp-step-000000000010").mkdir(parents=True)
        (run.path / store / ".tmp-step-000000000010" / "policy.safetensors").write_text("half")
    learner_for(run, config).learn()
    assert list(run.path.rglob(".tmp*")) == []
