"""Export writes a trained policy as a file that runs without Wavedash, in ONNX or TorchScript.

Before the file is written, its bytes are loaded again and compared with the live policy over whole episodes.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from wavedash.envs.kinds import kind_of
from wavedash.envs.make import make_env
from wavedash.envs.spaces import space_to_json
from wavedash.envs.vec_env import VecEnv
from wavedash.errors import UserError
from wavedash.export.actor import Actor
from wavedash.export.agreement import Agreement, RandomObservations, compare_with_policy
from wavedash.export.description import describe
from wavedash.export.formats import FORMATS, check_installed
from wavedash.loading import LoadedRun, load_run
from wavedash.runs.durable import replace_file
from wavedash.runs.folder import RunFolder
from wavedash.runs.links import refuse_links
from wavedash.runs.trust import UntrustedError
from wavedash.threads import set_torch_threads

ROWS = 3
"""The batch size of the check. It differs from that of tracing, so that a batch size fixed by accident is noticed."""


@dataclass(frozen=True)
class Exported:
    """The result of an export; `str()` of it is what `wavedash export` prints."""

    checkpoint: Path
    files: list[Path]
    description: dict[str, Any]
    env_name: str
    agreements: list[Agreement]
    beside: list[Path] = field(default_factory=list)
    """Files that the kind of environment adds, for whoever deploys the policy"""

    def __str__(self) -> str:
        lines = [("policy", str(self.checkpoint))]
        lines += [(side, ", ".join(x["name"] for x in self.description[side])) for side in ("inputs", "outputs")]
        for file, found in zip(self.files, self.agreements, strict=True):
            lines.append(("written", f"{file} ({file.stat().st_size:,} bytes)"))
            lines.append(("checked", f"{found.episodes} episodes, {found.steps:,} steps beside the policy in {self.env_name}: "
                                     f"largest difference {found.difference:.1g}"))
        if self.beside:
            lines.append(("beside", ", ".join(str(file.relative_to(self.files[0].parent)) for file in self.beside)))
        return "\n".join(f"{name:<10}{value}" for name, value in lines)


def export_policy(
    run: str | Path,
    format: Literal["onnx", "torchscript", "both"] | None = None,
    out: str | Path | None = None,
    episodes: int = 3,
    trust: bool = False,
) -> Exported:
    """Writes the policy of a run or checkpoint as a file. `out` is its name, which tells the format, or a folder for
    policy.onnx and policy.pt; by default the folder `export` of the run. The file is checked over `episodes` episodes. With
    `trust` these are played in the run's own environments even if somebody else's run names code for them."""
    loaded = load_run(run, trust=trust)
    home = loaded.source.home
    if out is None and not RunFolder.is_run(home):
        raise UserError(f"{loaded.path} is not inside a run folder: say where the export is to go with --out")
    if out is None:
        refuse_links(home)
    files = _files(format, home / "export" if out is None else Path(out))
    for name in files:
        check_installed(name)
    policy = loaded.policy.policy
    actor = Actor(policy)
    description = describe(actor, policy, loaded.source)
    text = json.dumps(description, indent=1, allow_nan=False)
    data = {name: FORMATS[name].write(actor, text) for name in files}
    folder = next(iter(files.values())).parent
    added = _beside(loaded, description, {name: file.name for name, file in files.items()})
    beside = {folder / name: content for name, content in added.items()}
    env, env_name = _check_env(loaded)
    with closing(env):
        set_torch_threads(env.num_rows, policy.config)  # a few rows are slower on several threads, by far on a busy machine
        agreements = [compare_with_policy(policy, actor, FORMATS[name].load(data[name]), env, episodes) for name in files]
    for file, content in {**{file: data[name] for name, file in files.items()}, **beside}.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, content)
        except OSError as error:
            raise UserError(f"cannot write {file}: {error.strerror}; choose another place with --out") from error
    return Exported(loaded.path, list(files.values()), description, env_name, agreements, list(beside))


def _files(format: str | None, out: Path) -> dict[str, Path]:
    """Returns the file of each format."""
    for name, known in FORMATS.items():
        if out.suffix == known.suffix:
            if format not in (None, name):
                raise UserError(f"--out {out} is the name of one {name} file, which does not go with --format {format}; "
                                "leave --format out, or name a folder")
            return {name: out}
    chosen = [name for name in FORMATS if format in (None, "both", name)]
    return {name: out / f"policy{FORMATS[name].suffix}" for name in chosen}


def _beside(run: LoadedRun, description: dict[str, Any], policies: dict[str, str]) -> Mapping[str, bytes]:
    """Returns the files that the run's kind of environment adds to an export; none where its configuration cannot be read or
    names code of somebody else."""
    try:
        kind = kind_of(run.config.env)
    except UserError:
        return {}
    return kind.files_beside_export(run, description, policies)


def _check_env(run: LoadedRun) -> tuple[VecEnv, str]:
    """Returns the run's own environments and their name, or random observations where these cannot be made on this machine or
    would run code of somebody else."""
    policy = run.policy.policy
    try:
        config = run.config.env
        env = make_env(kind_of(config).few(config, ROWS))
    except UntrustedError:
        reason = "the run names code for it that this user did not start; --trust runs it"
    except Exception as error:  # a user's factory may raise anything, and the export does not depend on it
        reason = (str(error).splitlines() or [repr(error)])[0]
    else:
        if space_to_json(env.observation_space) == space_to_json(policy.observation_space):
            return env, config.title
        env.close()
        reason = "its observations are no longer those of the policy"
    return RandomObservations(policy, ROWS), f"random observations (the environment cannot be used here: {reason})"
