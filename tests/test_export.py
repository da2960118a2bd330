"""Exported policies, loaded from disk without Wavedash, act step by step as the live policy does."""
from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from gymnasium import spaces

from tests.roundings import assert_within, gamma
from tests.toy_vec_envs import IdentityEnv
from wavedash.config import PolicyConfig
from wavedash.envs.obs import map_obs
from wavedash.errors import UserError
from wavedash.export import export_policy
from wavedash.export.actor import Actor
from wavedash.export.agreement import DisagreementError, compare_with_policy
from wavedash.export.formats import FORMATS
from wavedash.policy.actor_critic import ActorCritic
from wavedash.trained_policy import TrainedPolicy
from wavedash.training import train

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.torch.jit.load. is deprecated:DeprecationWarning")]

ROOT = Path(__file__).parents[1]
STEPS = 40
CLOSE = gamma(500)
"""Two programs sum the inputs of the same layers, each in its own order; the largest layer has some hundred."""
Arrays = dict[str, np.ndarray]

SENSES = spaces.Dict({
    "camera": spaces.Box(0, 255, (12, 12, 3), np.uint8),
    "depth": spaces.Box(0.0, 5.0, (8, 8), np.float32),
    "joint.angles": spaces.Box(-1.0, 1.0, (3,), np.float64),
    "view": spaces.Box(-1.0, 1.0, (), np.float32),  # also the name of an operation
    "action": spaces.Box(-1.0, 1.0, (2,), np.float32),  # also the name of an output: the last action, say
    "truth": spaces.Box(-1.0, 1.0, (2,), np.float32),
    "action_mask": spaces.MultiBinary(4),
})
CHOICES = spaces.Dict({"obs": spaces.Box(-1.0, 1.0, (3,)), "action_mask": spaces.MultiBinary(9)})
VECTOR = spaces.Box(-np.inf, np.inf, (6,), np.float32)
FORCES = spaces.Box(np.array([[-2.0, 0.0], [-1.0, -0.1]], np.float32), np.array([[3.0, 0.5], [1.0, 0.1]], np.float32))
CASES: dict[str, tuple[spaces.Space, spaces.Space, dict[str, Any], float | None]] = {
    "discrete": (VECTOR, spaces.Discrete(5, start=-2), {}, None),
    "masks": (CHOICES, spaces.MultiDiscrete([2, 3, 4], start=[7, 0, 1]), {"activation": "relu"}, None),
    "gaussian": (VECTOR, spaces.Box(-np.inf, np.inf, (3,)), {"std": "state"}, 1.0),
    "tanh": (VECTOR, FORCES, {"distribution": "tanh", "activation": "silu"}, 1.0),
    "gsde": (VECTOR, FORCES, {"std": "gsde", "distribution": "tanh", "activation": "gelu"}, 1.0),
    "beta": (VECTOR, FORCES, {"distribution": "beta", "activation": "elu"}, None),
    "confined": (VECTOR, FORCES, {"distribution": "confined", "std_range": (0.3, 0.6)}, 1.0),
    "gru": (VECTOR, spaces.MultiBinary(3), {"memory": {"kind": "gru", "size": 8, "layers": 2}}, 5.0),
    "norm": (VECTOR, spaces.Discrete(5), {"layer_norm": True, "action_floor": 0.1}, None),
    "floor": (CHOICES, spaces.MultiDiscrete([2, 3, 4]), {"action_floor": 0.1}, None),
    "lstm": (VECTOR, FORCES, {"memory": {"kind": "lstm", "size": 8}, "shared": True}, None),
    "senses": (SENSES, spaces.Discrete(4), {
        "memory": {"kind": "gru", "size": 8}, "encoders": {"joint.angles": {"hidden": [4]}},
        "actor_keys": ["camera", "depth", "joint.angles", "view", "action"],
    }, 5.0),
}

NAMES = {"joint.angles": "joint_angles", "action": "action_"}
"""Names of inputs that differ from the observation's keys."""


@cache
def some_policy(case: str) -> ActorCritic:
    """Its weights are large, since the actions of fresh weights hardly depend on the observation."""
    observed, acted, options, normalize = CASES[case]
    torch.manual_seed(0)
    policy = ActorCritic(observed, acted, PolicyConfig(hidden=[16], **options), normalize)
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter, 0.0, 1.5 / np.sqrt(parameter[0].numel()) if parameter.dim() > 1 else 0.3)
    observed.seed(0)
    if policy.normalizer is not None:
        for _ in range(3):
            obs = map_obs(lambda x: 2.0 * x + 1.0 if x.is_floating_point() else x, as_tensors(some_obs(case, 50)))
            policy.normalizer.accumulate(policy.normalizer.standardize(obs), torch.ones(50))
            policy.normalizer.commit()
    return policy


def some_obs(case: str, rows: int) -> Arrays | np.ndarray:
    """A batch of samples of the space, as an environment would return them."""
    space = CASES[case][0]
    samples = [space.sample() for _ in range(rows)]
    return {key: np.stack([x[key] for x in samples]) for key in space} if isinstance(space, spaces.Dict) else np.stack(samples)


def as_tensors(obs: Arrays | np.ndarray) -> dict[str, torch.Tensor] | torch.Tensor:
    return map_obs(lambda x: torch.from_numpy(x.astype(np.float32) if x.dtype == np.float64 else x), obs)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    folder = tmp_path_factory.mktemp("exported")

    @cache
    def write(case: str, kind: str) -> Path:
        file = folder / f"{case}{FORMATS[kind].suffix}"
        file.write_bytes(FORMATS[kind].write(Actor(some_policy(case)), "{}"))
        return file

    return write


def load(file: Path) -> Callable[[Arrays], Arrays]:
    """Loads the file as a user would, with the runtime alone."""
    if file.suffix == ".onnx":
        session = onnxruntime.InferenceSession(file)
        names = [x.name for x in session.get_outputs()]
        return lambda inputs: dict(zip(names, session.run(None, inputs), strict=True))
    module = torch.jit.load(file)
    return lambda inputs: {name: x.numpy() for name, x in module({k: torch.from_numpy(v) for k, v in inputs.items()}).items()}


def log_prob(given: Arrays, space: Any, tanh: bool) -> torch.Tensor:
    """The log-probability of the exported action from the exported parameters, by torch.distributions."""
    tensors = {name: torch.from_numpy(x) for name, x in given.items()}
    rows = len(given["action"])
    if "log_probs" in given:
        index = torch.from_numpy(given["action"] - getattr(space, "start", 0))
        return torch.distributions.Categorical(logits=tensors["log_probs"]).log_prob(index).reshape(rows, -1).sum(-1)
    if "alpha" in given:
        low, high = (torch.as_tensor(bound) for bound in (space.low, space.high))
        unit = ((tensors["action"] - low) / (high - low)).reshape(rows, -1)
        # The density is per unit of the range [-1, 1], which is twice as wide as that of a Beta.
        return (torch.distributions.Beta(tensors["alpha"], tensors["beta"]).log_prob(unit) - np.log(2.0)).sum(-1)
    normal = torch.distributions.Normal(tensors["mean"], tensors["std"])
    if not tanh:
        return normal.log_prob(tensors["mean"]).sum(-1)
    squash = torch.distributions.TanhTransform(cache_size=1)
    return torch.distributions.TransformedDistribution(normal, squash).log_prob(squash(tensors["mean"])).sum(-1)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_a_file_plays_as_the_live_policy_step_by_step(case: str, kind: str, rows: int, exported) -> None:
    policy, model = some_policy(case), load(exported(case, kind))
    observed, acted, options, _ = CASES[case]
    observed.seed(rows)
    player, chance = TrainedPolicy(policy), np.random.default_rng(rows)
    memory = {f"memory_{name.removeprefix('actor.')}": x.numpy()
              for name, x in policy.initial_memory(rows).items() if name.startswith("actor.")}
    actions = []
    for _ in range(STEPS):
        obs = some_obs(case, rows)
        parts = as_tensors(obs) if isinstance(obs, dict) else {"obs": as_tensors(obs)}
        given = model({NAMES.get(key, key): x.numpy() for key, x in parts.items() if key != "truth"} | memory)
        with torch.no_grad():
            before = player.memory or policy.initial_memory(rows)
            live = policy.act(policy.normalize(as_tensors(obs)), before, deterministic=True)
        action = player.act(obs)
        actions.append(action)
        if action.dtype == np.int64:
            np.testing.assert_array_equal(given["action"], action)
        assert_within(given["action"], action, CLOSE * np.maximum(1.0, np.abs(action)))
        assert given["action"].dtype == action.dtype
        density = log_prob(given, acted, options.get("distribution") == "tanh")
        assert_within(density, live.log_prob, CLOSE * (4.0 + live.log_prob.abs()))
        ended = chance.random(rows) < 0.15
        for name in memory:
            after = given[f"next_{name}"]
            assert_within(after, player.memory[name.replace("memory_", "actor.")], CLOSE)
            memory[name] = np.where(ended.reshape(-1, 1, 1), np.float32(0.0), after)
        player.reset(torch.from_numpy(ended))
    assert len(np.unique(np.stack(actions), axis=0)) > 1  # the actions depend on the observations


def test_files_hold_the_actor_and_nothing_of_the_critic(exported) -> None:
    session = onnxruntime.InferenceSession(exported("senses", "onnx"))
    seen = {"camera", "depth", "joint_angles", "view", "action_", "action_mask", "memory_h"}
    assert {x.name for x in session.get_inputs()} == seen
    assert {x.name for x in session.get_outputs()} == {"action", "log_probs", "next_memory_h"}
    assert all(x.shape[0] == "batch" for x in (*session.get_inputs(), *session.get_outputs()))
    names = torch.jit.load(exported("senses", "torchscript")).state_dict().keys()
    assert any("trunk" in name for name in names) and not any("critic" in name or "truth" in name for name in names)


@pytest.mark.parametrize("case", ["masks", "senses"])
def test_onnx_files_pass_the_full_check_of_onnx(case: str, exported) -> None:
    model = onnx.load(exported(case, "onnx"))
    onnx.checker.check_model(model, full_check=True)
    assert [x.version for x in model.opset_import] == [18]


def test_a_torchscript_file_needs_no_wavedash(exported, tmp_path: Path) -> None:
    obs = some_obs("gru", 4)
    np.save(tmp_path / "obs.npy", obs)
    code = f"""if True:
        import sys
        sys.modules["wavedash"] = None  # every import of it fails
        import numpy, torch
        model = torch.jit.load({str(exported("gru", "torchscript"))!r})
        given = model({{"obs": torch.from_numpy(numpy.load("obs.npy")), "memory_h": torch.zeros(4, 2, 8)}})
        print(given["action"].tolist())
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == TrainedPolicy(some_policy("gru")).act(obs).tolist()


# --- a real run ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in CartPole without velocities, with memory and normalised observations, hardly trained."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVEDASH_RUNS", str(root))
        train("cartpole-memory", "total_steps=2048", "ppo.normalize_obs=true", "policy.memory.size=16", "policy.hidden=[16]",
              "env.count=8", "ppo.epochs=2", "device=cpu", "report.console=off", "report.tensorboard=false")
    (config,) = root.glob("*/*/config.yaml")
    return config.parent


def test_a_run_is_exported_into_its_folder_with_a_description_for_users(run: Path) -> None:
    done = export_policy(run)
    assert done.files == [run / "export" / "policy.onnx", run / "export" / "policy.pt"]
    for found in done.agreements:
        assert found.episodes >= 3 and found.steps > 3 * 8 and found.difference < 1e-5
    assert "steps beside the policy in wavedash.envs.puzzles:masked_cartpole" in str(done)

    told = json.loads(onnxruntime.InferenceSession(done.files[0]).get_modelmeta().custom_metadata_map["wavedash.json"])
    extra = {"wavedash.json": ""}
    torch.jit.load(done.files[1], _extra_files=extra)
    assert json.loads(extra["wavedash.json"]) == told == done.description
    assert told["inputs"] == [
        {"name": "obs", "dtype": "float32", "shape": ["batch", 2], "observation": "obs"},
        {"name": "memory_h", "dtype": "float32", "shape": ["batch", 1, 16]},
    ]
    assert [(x["name"], x["shape"]) for x in told["outputs"]] == [
        ("action", ["batch"]), ("log_probs", ["batch", 2]), ("next_memory_h", ["batch", 1, 16])]
    assert told["memory"] == {"memory_h": "next_memory_h"}
    assert told["action"]["space"] == {"kind": "discrete", "n": 2, "start": 0}
    assert (run.parents[1] / told["checkpoint"]).is_dir() and told["checkpoint"].endswith(f"step-{told['steps']:012d}")
    with zipfile.ZipFile(done.files[1]) as archive:
        contents = [done.files[0].read_bytes(), *map(archive.read, archive.namelist())]
    for folder in (ROOT, run.parent, sys.prefix):  # paths of this machine are private
        assert not any(str(folder).encode() in data for data in contents), f"{folder} is named in the file"


def test_the_name_of_a_file_tells_its_format(run: Path, tmp_path: Path) -> None:
    assert export_policy(run, out=tmp_path / "new" / "bot.pt").files == [tmp_path / "new" / "bot.pt"]
    with pytest.raises(UserError, match="does not go with --format onnx"):
        export_policy(run, "onnx", tmp_path / "bot.pt")
    assert export_policy(run, "torchscript", tmp_path).files == [tmp_path / "policy.pt"]
    assert [x.name for x in tmp_path.iterdir() if x.is_file()] == ["policy.pt"]


def test_without_the_environment_random_observations_are_compared(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    text = (copy / "config.yaml").read_text().replace("wavedash.envs.puzzles:masked_cartpole", "no_such_module:make")
    (copy / "config.yaml").write_text(text)
    done = export_policy(copy, "torchscript", trust=True)
    assert done.agreements[0].episodes >= 3
    assert "random observations (the environment cannot be used here: cannot import 'no_such_module'" in str(done)


def test_a_missing_package_is_named_with_the_way_to_get_it(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "onnx", FORMATS["onnx"]._replace(packages=("torch", "no_such_package")))
    with pytest.raises(UserError, match=r'needs no_such_package: pip install "wavedash\[export\]"'):
        export_policy(run)


# --- what the check must find ----------------------------------------------------------------------------------------------


def spoil_weight(actor: Actor) -> None:
    actor.trunk.memory.layers[0].weight_rec[3, 5] += 0.05


def spoil_statistics(actor: Actor) -> None:
    actor.normalizer.parts["obs"].shift += 0.01


def leave_out_the_normalizer(actor: Actor) -> None:
    actor.normalizer = None


def count_actions_from_ten(actor: Actor) -> None:
    actor.first_action += 10


FAULTS = [spoil_weight, spoil_statistics, leave_out_the_normalizer, count_actions_from_ten]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_an_export_that_plays_differently_is_refused_and_the_old_file_stays(
    fault: Callable[[Actor], None], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (good,) = export_policy(run, out=tmp_path / "bot.pt").files
    data = good.read_bytes()
    write = FORMATS["torchscript"].write

    def faulty(actor: Actor, description: str) -> bytes:
        fault(actor)
        return write(actor, description)

    monkeypatch.setitem(FORMATS, "torchscript", FORMATS["torchscript"]._replace(write=faulty))
    for out in (good, tmp_path / "new.pt"):
        with pytest.raises(DisagreementError, match="does not play as the policy does"):
            export_policy(run, out=out)
    assert [(x, x.read_bytes()) for x in tmp_path.iterdir()] == [(good, data)]


ENV = IdentityEnv(spaces.MultiDiscrete([2, 3]), rows=4, masked=True)


def undecided_policy() -> ActorCritic:
    """It has memory, and at first no preference between any two actions."""
    torch.manual_seed(0)
    config = PolicyConfig(hidden=[8], memory={"kind": "lstm", "size": 8})
    policy = ActorCritic(ENV.observation_space, ENV.action_space, config)
    torch.nn.init.zeros_(policy.head.logits.weight)
    return policy


class Replica:
    """The exported model of a policy; subclasses do something wrong."""

    def __init__(self, policy: ActorCritic):
        self.actor = Actor(policy)

    @torch.no_grad()
    def __call__(self, inputs: Arrays) -> Arrays:
        return {name: x.numpy() for name, x in self.actor({key: torch.from_numpy(x) for key, x in inputs.items()}).items()}


class NeverForgets(Replica):
    """It ignores the memory that it is given, so that its own is never reset when an episode ends."""

    def __call__(self, inputs: Arrays) -> Arrays:
        given = super().__call__({**inputs, **getattr(self, "carried", {})})
        self.carried = {f"memory_{part}": given[f"next_memory_{part}"].copy() for part in ("h", "c")}
        return given


class OtherWayRound(Replica):
    """It takes the other one of the two allowed actions of every choice."""

    def __call__(self, inputs: Arrays) -> Arrays:
        given = super().__call__(inputs)
        log_probs = given["log_probs"].copy()
        np.put_along_axis(log_probs, given["action"][..., None], -np.inf, -1)
        return {**given, "action": log_probs.argmax(-1)}


class NotANumber(Replica):
    def __call__(self, inputs: Arrays) -> Arrays:
        given = super().__call__(inputs)
        return {**given, "log_probs": given["log_probs"] * np.float32(np.nan)}


class OneRow(Replica):
    def __call__(self, inputs: Arrays) -> Arrays:
        return {name: x[:1] for name, x in super().__call__(inputs).items()}


class WithoutMemory(Replica):
    def __call__(self, inputs: Arrays) -> Arrays:
        return {name: x for name, x in super().__call__(inputs).items() if not name.startswith("next_")}


def play(model: type[Replica], policy: ActorCritic) -> float:
    found = compare_with_policy(policy, Actor(policy), model(policy), ENV, episodes=10)
    assert found.episodes >= 10
    return found.difference


def test_the_check_passes_what_is_equal_and_what_is_equally_good() -> None:
    policy = undecided_policy()
    assert play(Replica, policy) == 0.0
    assert play(OtherWayRound, policy) == 0.0
    policy.head.logits.bias.data[0] += 1e-3
    with pytest.raises(DisagreementError, match=r"`action` differs by 0\.001"):
        play(OtherWayRound, policy)


@pytest.mark.parametrize("model", [NeverForgets, NotANumber, OneRow, WithoutMemory], ids=lambda model: model.__name__)
def test_the_check_refuses_a_model_that_acts_differently(model: type[Replica]) -> None:
    with pytest.raises(DisagreementError):
        play(model, undecided_policy())
