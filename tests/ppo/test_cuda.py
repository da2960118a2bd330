"""On a GPU an iteration has no host sync, CUDA graphs change nothing, the ratio is one, and a stopped run goes on exactly."""
from __future__ import annotations

from functools import partial

import gymnasium
import pytest
import torch
from torch import Tensor

from tests.ppo.combinations import (
    Combination,
    Watched,
    combinations,
    differences,
    judged_and_gradient,
    learner_of,
    saved_and_loaded,
)
from tests.ppo.learners import learner_over, run_config
from tests.ppo.test_losses import Distillation, Imitation
from tests.ppo.test_slots import SLOTS, assert_metrics_are_those_of_each_iteration, learner_with_slots
from tests.toy_vec_envs import ScrambledEnv
from wavedash.assembly import make_policy, prepare_torch
from wavedash.bench.synthetic import SyntheticEnv
from wavedash.envs.local import LocalVecEnv
from wavedash.envs.pool import WorkerPool
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.compiled import Compiled
from wavedash.ppo.graphs import WARM_UP, CapturedCall
from wavedash.ppo.rollout import Rollout

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

CLOSE = {"fp32": 1e-4, "fp16": 0.03, "bf16": 0.15}
"""The bound on ratios and values. Acting and learning have different batch sizes, for which the libraries choose kernels that
sum in a different order. In low precision a sum near the middle between two numbers is then rounded the other way: some
features are off by one step of the format, 1/2048 in fp16 and 1/256 in bf16, which the heads' weights and the deviations of the
actions multiply."""
CAPTURED = WARM_UP + 1
"""After so many iterations everything that can be captured is a CUDA graph."""


@pytest.fixture(autouse=True)
def exact_convolutions():
    """By default cuDNN uses TF32 and algorithms that sum in a random order."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic
    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = False, True
    yield
    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = before


# --- host syncs ------------------------------------------------------------------------------------------------------


@pytest.fixture
def syncs_forbidden(monkeypatch):
    """Once it is called, every host sync raises, except for `tolist`, which is counted."""
    reads: list[int] = []
    tolist = Tensor.tolist

    def counted(self: Tensor):
        reads.append(self.numel())
        torch.cuda.set_sync_debug_mode("default")
        try:
            return tolist(self)
        finally:
            torch.cuda.set_sync_debug_mode("error")

    def forbid() -> list[int]:
        monkeypatch.setattr(Tensor, "tolist", counted)
        torch.cuda.set_sync_debug_mode("error")
        return reads

    yield forbid
    torch.cuda.set_sync_debug_mode("default")


PPO = {"rollout_steps": 16, "minibatch_size": 256, "epochs": 2, "normalize_obs": True, "normalize_reward": True,
       "target_kl": 0.05, "schedule": {"kind": "kl"}}


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("memory", ["none", "gru", "lstm"])
def test_an_iteration_reads_the_device_once_and_has_no_other_host_sync(memory, precision, graphs, syncs_forbidden):
    policy = {"hidden": [64, 64], "memory": {"kind": memory, "sequence": 8}}
    learner = learner_over(SyntheticEnv(128, "cuda"), run_config(PPO, policy, graphs=graphs, precision=precision))
    for _ in range(CAPTURED):
        learner.iterate()
    reads = syncs_forbidden()
    for _ in range(3):
        metrics = learner.iterate().metrics
    assert len(reads) == 3 and metrics["optim/skipped"] == 0 and metrics["optim/update_size"] > 0
    assert all(replay.graph is not None for replay in learner._graphs.values()) and bool(learner._graphs) == graphs


RECIPE_POLICY, RECIPE_PPO = {"layer_norm": True, "action_floor": 0.02}, {"keep_samples": 0.5, "gamma_end": 0.999}
"""Options that are off by default, each of which has a part in collection or update."""


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("memory", ["none", "gru"])
def test_options_of_recipes_have_no_host_sync_either(memory, compiled, syncs_forbidden):
    if compiled and memory != "none":
        pytest.skip("memory is not compiled")
    torch._dynamo.reset()
    policy = {"hidden": [64, 64], "memory": {"kind": memory, "sequence": 8}, **RECIPE_POLICY}
    config = run_config({**PPO, **RECIPE_PPO, "optimizer": "muon"}, policy, precision="bf16", compile=compiled)
    learner = learner_over(SyntheticEnv(128, "cuda"), config)
    for _ in range(CAPTURED):
        learner.iterate()
    reads = syncs_forbidden()
    for _ in range(3):
        metrics = learner.iterate().metrics
    assert len(reads) == 3 and metrics["optim/skipped"] == 0 and metrics["optim/update_size"] > 0
    steps = [step for _, step in learner.updater._graphs.values()]
    assert steps and all(isinstance(step, CapturedCall) and step.graph is not None for step in steps)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("memory", ["none", "gru"])
def test_with_environments_on_the_host_only_actions_are_waited_for(memory, workers, syncs_forbidden, request):
    """They have an event of their own: waiting for the whole device would raise here."""
    make = partial(gymnasium.make, "CartPole-v1")
    env = WorkerPool(make, 8, workers, groups=2, device="cuda") if workers else LocalVecEnv(make, 8, device="cuda")
    request.addfinalizer(env.close)
    learner = learner_over(env, run_config(PPO, {"memory": {"kind": memory, "sequence": 8}}))
    for _ in range(CAPTURED):
        learner.iterate()
    reads = syncs_forbidden()
    for _ in range(3):
        metrics = learner.iterate().metrics
    assert len(reads) == 3 and metrics["optim/skipped"] == 0 and metrics["rollout/episodes"] > 0


def test_a_host_sync_would_be_seen(syncs_forbidden):
    """This is the control of the tests above."""
    x = torch.ones(3, device="cuda")
    syncs_forbidden()
    with pytest.raises(RuntimeError):
        x.sum().item()


# --- the same numbers ------------------------------------------------------------------------------------------------

KINDS = [Combination(memory, action, masked, senses, precision) for memory in ("none", "gru", "lstm")
         for action, masked, senses, precision in (("discrete", True, True, "fp32"), ("multi-discrete", True, False, "bf16"),
                                                   ("discrete", False, False, "fp16"), ("gsde", False, False, "fp32"))]


@pytest.mark.parametrize("combo", KINDS, ids=str)
def test_replaying_graphs_gives_what_running_each_operation_gives(combo):
    runs = [learner_of(combo, device="cuda", graphs=graphs) for graphs in (False, True)]
    plain, captured = ([run.iterate().metrics for _ in range(2 * CAPTURED)] for run in runs)
    assert runs[1]._graphs and all(replay.graph is not None for replay in runs[1]._graphs.values())
    assert all(isinstance(step, CapturedCall) and step.graph is not None for _, step in runs[1].updater._graphs.values())
    print(f"{combo}: differs in {sorted(differences(*runs)) or 'nothing'}")
    for a, b in zip(plain, captured, strict=True):
        assert a == pytest.approx(b, rel=1e-3, abs=1e-4)
    torch.testing.assert_close(runs[0].updater.optimizer.parameters, runs[1].updater.optimizer.parameters, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("combo", [combo for combo in KINDS if combo.action.endswith("discrete")], ids=str)
def test_options_of_recipes_are_replayed_as_they_run(combo):
    options = {"policy": RECIPE_POLICY, "ppo": RECIPE_PPO, "total_steps": 400}  # so few that the discount moves
    runs = [learner_of(combo, device="cuda", graphs=graphs, **options) for graphs in (False, True)]
    plain, captured = ([run.iterate().metrics for _ in range(2 * CAPTURED)] for run in runs)
    assert runs[1]._graphs and all(replay.graph is not None for replay in runs[1]._graphs.values())
    assert all(isinstance(step, CapturedCall) and step.graph is not None for _, step in runs[1].updater._graphs.values())
    for a, b in zip(plain, captured, strict=True):
        assert a == pytest.approx(b, rel=1e-3, abs=1e-4)
    watched = Watched(runs[1])
    watched.learner.iterate()
    assert max(x.ratio for x in watched.before) < CLOSE[combo.precision]


def _likeliest(teacher: ActorCritic, samples: Rollout) -> Tensor:
    return teacher(samples.obs)[0].mode()


@pytest.mark.parametrize("loss", [Imitation, Distillation])
def test_another_loss_is_captured_and_replayed_too(loss):
    """Its labels change with every rollout: a graph must read the current ones."""
    config = run_config({"rollout_steps": 16, "minibatch_size": 256, "epochs": 2}, {"hidden": [64, 64]})
    runs = []
    for graphs in (False, True):
        env = ScrambledEnv(gymnasium.spaces.Discrete(5), 128, masked=False, senses=False, device="cuda")
        teacher = make_policy(env, config).to("cuda")
        with torch.no_grad():
            teacher.head.logits.weight.mul_(100)
        made = Imitation(partial(_likeliest, teacher)) if loss is Imitation else Distillation(teacher)
        runs.append(learner_over(env, config.model_copy(update={"graphs": graphs}), loss=made))
    plain, captured = ([run.iterate().metrics for _ in range(2 * CAPTURED)] for run in runs)
    steps = [step for _, step in runs[1].updater._graphs.values()]
    assert steps and all(isinstance(step, CapturedCall) and step.graph is not None for step in steps)
    for a, b in zip(plain, captured, strict=True):
        assert a == pytest.approx(b, rel=1e-3, abs=1e-4)
    name = loss.terms[0]
    assert plain[-1][name] < plain[0][name]


@pytest.mark.parametrize("combo", combinations(), ids=str)
def test_the_ratio_is_one_before_every_update(combo):
    run = Watched(learner_of(combo, device="cuda"))
    for _ in range(CAPTURED + 1):
        run.learner.iterate()
    worst = max(x.ratio for x in run.before), max(x.value for x in run.before)
    print(f"{combo}: ratio {worst[0]:.2g}, value {worst[1]:.2g}, after an update {min(x.ratio for x in run.after):.2g}")
    assert max(worst) < CLOSE[combo.precision]
    if combo.precision == "fp32":
        assert min(x.ratio for x in run.after) > 10 * CLOSE["fp32"]


@pytest.mark.parametrize("combo", [*KINDS, Combination("none", "tanh", False, True, "bf16"),
                                   Combination("gru", "beta", False, False, "fp16")], ids=str)
def test_a_run_resumed_from_disk_is_the_run_that_never_stopped(combo, tmp_path):
    """One goes on replaying its graphs, the other begins without any."""
    first = learner_of(combo, device="cuda")
    for _ in range(CAPTURED + 1):
        first.iterate()
    second = learner_of(combo, started=False, device="cuda")
    second.load_state(*saved_and_loaded(first, tmp_path))
    second.start()
    for _ in range(CAPTURED + 1):
        assert first.iterate().metrics == second.iterate().metrics
    assert differences(first, second) == set()


@pytest.mark.parametrize(("there", "here"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_run_goes_on_on_another_kind_of_device(there, here, tmp_path, caplog):
    combo = Combination("gru", "gaussian", False, True, "fp32")
    first = learner_of(combo, device=there)
    first.iterate()
    second = learner_of(combo, started=False, device=here)
    second.load_state(*saved_and_loaded(first, tmp_path))
    second.start()
    assert "whose random streams cannot go on" in caplog.text
    for (name, x), y in zip(first.policy.state_dict().items(), second.policy.state_dict().values(), strict=True):
        assert torch.equal(x.cpu(), y.cpu()), name
    assert second.iterate().iteration == 2


def test_loading_into_a_learner_discards_its_captured_graphs(tmp_path):
    combo = Combination("gru", "discrete", False, False, "fp32")
    first, second = (learner_of(combo, device="cuda") for _ in range(2))
    for _ in range(CAPTURED + 1):
        first.iterate()
        second.iterate()
    state = saved_and_loaded(first, tmp_path)
    second.iterate()
    second.load_state(*state)
    assert first.iterate().metrics == second.iterate().metrics
    assert differences(first, second) == set()


def test_metrics_are_of_the_slot_whose_graph_was_replayed():
    learner = learner_with_slots("cuda")
    assert_metrics_are_those_of_each_iteration(learner, (CAPTURED + 2) * SLOTS)
    assert len(learner._graphs) == SLOTS and all(replay.graph is not None for replay in learner._graphs.values())


def test_a_capture_that_fails_leaves_the_stream_and_the_capture_mode_as_they_were(caplog):
    """A host sync invalidates the capture, so that its end fails as well."""
    x = torch.ones(3, device="cuda")
    call = CapturedCall(lambda: x.sum().item(), "a sum")
    with torch.cuda.stream(torch.cuda.Stream()):
        before = torch.cuda.current_stream()
        assert [call() for _ in range(WARM_UP + 2)] == [3.0] * (WARM_UP + 2)
        assert torch.cuda.current_stream() == before and not torch.cuda.is_current_stream_capturing()
    assert call.eager and "runs without one" in caplog.text


# --- compilation -----------------------------------------------------------------------------------------------------

COMPILED = [Combination("none", *kind) for kind in (
    ("discrete", True, True, "bf16"), ("multi-discrete", True, False, "fp32"), ("gaussian", False, False, "bf16"),
    ("gaussian-state", False, True, "fp32"), ("tanh", False, False, "fp16"), ("beta", False, True, "bf16"))]


@pytest.mark.parametrize("combo", COMPILED, ids=str)
def test_a_compiled_policy_says_the_same_and_sees_new_weights(combo, tmp_path):
    torch._dynamo.reset()  # it compiles one function for at most eight kinds of policies
    run = Watched(learner_of(combo, device="cuda", ppo={"minibatch_size": 10**6}, compile=True))
    learner = run.learner
    for _ in range(CAPTURED + 1):
        learner.iterate()
    compiled = learner.policy._evaluate_outputs
    assert isinstance(compiled, Compiled) and compiled.compiled is not None
    worst = max(x.ratio for x in run.before), max(x.value for x in run.before)
    print(f"{combo}: compiled, ratio {worst[0]:.2g}, value {worst[1]:.2g}")
    assert max(worst) < CLOSE[combo.precision]

    old = {name: x.clone() for name, x in learner.policy.state_dict().items()}
    before = judged_and_gradient(learner, compiled=True)
    learner.updater.optimizer.step()
    after = judged_and_gradient(learner, compiled=True)
    close = {"fp32": 1e-4, "fp16": 1e-2, "bf16": 5e-2}[combo.precision]
    for said, expected in zip(after, judged_and_gradient(learner, compiled=False), strict=True):
        torch.testing.assert_close(said, expected, rtol=close, atol=close * float(expected.abs().max()))
    assert (before[0] - after[0]).abs().max() > 1e-3
    learner.policy.load_state_dict(old)
    assert torch.equal(judged_and_gradient(learner, compiled=True)[0], before[0])

    second = learner_of(combo, started=False, device="cuda", ppo={"minibatch_size": 10**6}, compile=True)
    second.load_state(*saved_and_loaded(learner, tmp_path))
    for _ in range(2):
        assert learner.iterate().metrics == second.iterate().metrics
    assert differences(learner, second) == set()


@pytest.mark.parametrize("name", ["auto", "cuda", "cuda:0"])
def test_the_device_of_a_run_has_an_index(name):
    """CUDA graphs, NCCL and most of torch's functions about a GPU need one."""
    assert prepare_torch(run_config(device=name)) == torch.device("cuda", 0)
