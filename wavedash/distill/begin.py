"""A student that begins as its teacher: with the teacher's actor, as far as both see the same."""
from __future__ import annotations

import torch
from torch import Tensor, nn

from wavedash.errors import UserError
from wavedash.policy.actor_critic import ActorCritic
from wavedash.policy.trunk import Trunk

OWN = ("log_std",)
"""Parameters of a head that a teacher does not teach: how widely the student explores is a setting of its own"""


@torch.no_grad()
def begin_as_teacher(student: ActorCritic, teacher: ActorCritic, asked: str) -> None:
    """Copies the teacher's memory, hidden layers and head into the student's actor, in place, with encoders and statistics of
    the keys that both see. What the student alone sees counts for nothing until it has learned otherwise: its columns of the
    first layer are zero. UserError: the networks differ; nothing was copied."""
    check_alike(student, teacher, asked)
    mine, its = student.trunks["actor"], teacher.trunks["actor"]
    shared = _shared_encoders(mine, its)
    for key in shared:
        mine.encoders.of(key).load_state_dict(its.encoders.of(key).state_dict())
        if student.normalizer is not None and teacher.normalizer is not None and key in student.normalizer.keys:
            student.normalizer.moments(key).load_state_dict(teacher.normalizer.moments(key).state_dict())
    here, there = _columns(mine), _columns(its)
    weights = torch.zeros_like(_first_weight(mine))
    for key in shared:
        weights[:, here[key]].copy_(_first_weight(its)[:, there[key]])  # the teacher may be on a GPU already
    own, given = _behind_encoders(student), _behind_encoders(teacher)
    for name, x in own.items():
        if name.rpartition(".")[2] not in OWN and x is not _first_weight(mine):
            x.copy_(given[name])
    _first_weight(mine).copy_(weights)


def check_alike(student: ActorCritic, teacher: ActorCritic, asked: str) -> None:
    """Raises UserError unless the student's memory, hidden layers and head are made as the teacher's."""
    mine, its = student.trunks["actor"], teacher.trunks["actor"]
    differ = [f"policy.{name} is {getattr(teacher.config, name)!r} there and {getattr(student.config, name)!r} here"
              for name in ("hidden", "activation", "layer_norm", "distribution", "std")
              if getattr(teacher.config, name) != getattr(student.config, name)]
    there, here = ({} if trunk.memory is None else
                   {"kind": trunk.memory.kind, "size": trunk.memory.size, "layers": len(trunk.memory.layers)}
                   for trunk in (its, mine))
    if there != here:
        differ.append(f"policy.memory is {there or 'none'} there and {here or 'none'} here")
    if (teacher.normalizer is None) != (student.normalizer is None):
        differ.append(f"ppo.normalize_obs is {_yes(teacher.normalizer)} there and {_yes(student.normalizer)} here")
    if mine.memory is None and not mine.body.layers:
        differ.append("neither has memory or hidden layers, so there is nothing between what they see and what they do")
    if not _shared_encoders(mine, its):
        differ.append(f"the teacher sees {', '.join(its.encoders.keys)} and the student {', '.join(mine.encoders.keys)}: they "
                      "have no key with the same encoder in common")
    if differ:
        raise UserError(f"distill.begin_as_teacher: this student cannot begin as distill.teacher={asked}: {'; '.join(differ)}. "
                        "Make them alike, or set distill.begin_as_teacher=false")


def _shared_encoders(mine: Trunk, its: Trunk) -> list[str]:
    """The keys that both see, by encoders with the same weights."""
    return [key for key in mine.encoders.keys
            if key in its.encoders.keys and _shapes(mine.encoders.of(key)) == _shapes(its.encoders.of(key))
            and type(mine.encoders.of(key)) is type(its.encoders.of(key))]


def _yes(part: nn.Module | None) -> str:
    return "false" if part is None else "true"


def _shapes(module: nn.Module) -> dict[str, torch.Size]:
    return {"outputs": torch.Size([_outputs(module)]), **{name: x.shape for name, x in module.state_dict().items()}}


def _outputs(encoder: nn.Module) -> int:
    count = encoder.outputs
    assert isinstance(count, int)
    return count


def _first_weight(trunk: Trunk) -> Tensor:
    """[..., features]: the weights that all encoded features go through."""
    weight = trunk.body.layers[0].weight if trunk.memory is None else trunk.memory.layers[0].weight_in
    assert isinstance(weight, Tensor)
    return weight


def _columns(trunk: Trunk) -> dict[str, slice]:
    """The place of every key among the encoded features."""
    places, begin = {}, 0
    for key in trunk.encoders.keys:
        end = begin + _outputs(trunk.encoders.of(key))
        places[key], begin = slice(begin, end), end
    return places


def _behind_encoders(policy: ActorCritic) -> dict[str, Tensor]:
    """The parameters of the actor behind its encoders, by name."""
    trunk = policy.trunks["actor"]
    parts = {"memory": trunk.memory, "body": trunk.body, "head": policy.head}
    return {f"{part}.{name}": x for part, module in parts.items() if module is not None
            for name, x in module.named_parameters()}
