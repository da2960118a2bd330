"""The RocketSim package, imported and with its collision meshes loaded. It is an optional dependency: only this file imports
it."""
from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from wavedash.errors import UserError

INSTALL = "pip install 'wavedash[rocket]'"


@cache
def rocketsim() -> Any:
    """The module. The first call in a process loads the collision meshes of the package `rlgym-rocket-league`."""
    try:
        import RocketSim
    except ImportError as error:
        raise UserError(f"RocketSim is not installed ({error}). Install it with: {INSTALL}") from error
    try:
        RocketSim.init(str(collision_meshes()))
    except RuntimeError as error:
        if "inited" not in str(error):  # RLGym's own engine may have loaded the same meshes before
            raise
    return RocketSim


def collision_meshes() -> Path:
    """The folder of the package `rlgym-rocket-league` that holds the collision meshes of every kind of field."""
    try:
        spec = find_spec("rlgym.rocket_league")
    except ModuleNotFoundError:
        spec = None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        meshes = Path(folder, "sim", "collision_meshes")
        if any(meshes.glob("soccar/*.cmf")):  # without them RocketSim would make arenas without walls
            return meshes
    raise UserError(f"The walls of the field come with rlgym-rocket-league, which is not installed. Install it with: {INSTALL}")
