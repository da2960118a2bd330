"""Packs a trained policy as a champion: a folder in wavedash/champions that ships with the package.

Weights of actor and critic are stored as fp16, whose 11 significant bits keep what the policy does: of 20,480 observations of
its own games, the first champion chose another likeliest action in 9; as bf16, with 8 bits, in 55.
"""
from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from wavedash import champions
from wavedash.champions.card import Card, read_stages
from wavedash.config import RunConfig
from wavedash.config_file import dump_config
from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.learner_state import policy_fingerprint
from wavedash.rocket.kind import rocket_task
from wavedash.runs.checkpoint import CONFIG, STATE
from wavedash.runs.content import read_policy
from wavedash.runs.durable import replace_file
from wavedash.runs.find import resolve_policy
from wavedash.runs.plain import to_json
from wavedash.runs.policy_folder import POLICY
from wavedash.runs.trust import code_of, run_config
from wavedash.walk.kind import walk_task

LARGEST = 8_000_000
"""The most bytes of all champions together: everybody who installs the package downloads them"""


def pack(source: str, mode: str, training: Path, root: Path = champions.FOLDER) -> Card:
    """Writes the folder of a champion and a card without results. `source` is a run, a checkpoint or a policy folder, `mode`
    such as `1v1` or `walk`, `training` a YAML file with the stages of its training (see `read_stages`)."""
    found = resolve_policy(source)
    config = run_config(found.run_config, trust=True)  # only read: nothing of it runs here, and code is refused below
    _check_task(config, mode, found.path)
    policy, _ = read_policy(found)
    stages = read_stages(training)
    steps = sum(stage.steps for stage in stages)
    name = f"{champions.NAME}-{mode}"
    shipped = RunConfig(name=name, precision=config.precision, env=config.env, policy=config.policy, ppo=config.ppo)
    files = {
        POLICY: save(half_precision(policy)),
        CONFIG: dump_config(shipped).encode(),
        STATE: to_json({"steps": steps, "fingerprint": policy_fingerprint(policy)}).encode(),
    }
    others = sum(file.stat().st_size for file in root.glob("*/*") if file.is_file() and file.parent.name != mode)
    if (size := others + sum(map(len, files.values()))) > LARGEST:
        raise UserError(f"with {found.path} all champions together have {size:,} bytes; at most {LARGEST:,} can ship")
    (root / mode).mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        replace_file(root / mode / file, content)
    parameters = sum(x.numel() for x in policy.parameters())
    card = card_of(mode)(name=f"{name}@{steps}", mode=mode, parameters=parameters, training=stages)
    card.write(root / mode)
    return card


def card_of(mode: str) -> type[Card]:
    """The kind of card that a champion has."""
    if mode in champions.WALKERS:
        from wavedash.walk.evaluate.card import WalkingCard

        return WalkingCard
    from wavedash.league.card import PlayingCard

    return PlayingCard


def half_precision(policy: ActorCritic) -> dict[str, Tensor]:
    """The state of a policy with its weights in fp16. Statistics of observations stay as they are."""
    weights = {name for name, x in policy.named_parameters() if x.dtype == torch.float32}
    halved = {name: x.half() if name in weights else x for name, x in policy.state_dict().items()}
    if wrong := [name for name, x in halved.items() if x.is_floating_point() and not bool(x.isfinite().all())]:
        raise UserError(f"{wrong[0]} holds weights that fp16 has no room for (beyond 65,504): this policy cannot be packed")
    return halved


def _check_task(config: RunConfig, mode: str, path: Path) -> None:
    if mode in champions.WALKERS:
        walk_task(config.env, path)
    elif champions.TEAMS.fullmatch(mode):
        sizes = [str(size) for size in rocket_task(config.env, path).team_sizes]
        if mode not in sizes:
            raise UserError(f"{path} was trained in {' and '.join(sizes)}, so it cannot be the champion of {mode}")
    else:
        raise UserError(f"{mode!r} is no size of teams (1v1, 2v2, 3v3 or 4v4), and none of {', '.join(champions.WALKERS)}")
    if code := next(code_of(config), None):
        raise UserError(f"{path} names code that does not ship with the package: {'.'.join(map(str, code[0]))}={code[1]}")
