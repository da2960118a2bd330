"""The adapter uses Wavedash as any user does: whatever it uses of other folders is public."""
from __future__ import annotations

import ast
from pathlib import Path

from tests.compat.gym_envs import two_players
from tests.compat.learners import small_learner
from wavedash.ppo.listener import Listener

FOLDER = Path(__file__).parents[2] / "wavedash" / "compat" / "rlgym_ppo"
FILES = sorted(FOLDER.rglob("*.py"))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def used(tree: ast.Module) -> set[str]:
    """Private attributes that are read or set, and private names that are imported."""
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    return {name for name in attributes | imported if is_private(name)}


def defined(tree: ast.Module) -> set[str]:
    """Functions and classes, and names and attributes that are assigned."""
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        flat = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
        names |= {part.attr for part in flat if isinstance(part, ast.Attribute)}
        names |= {part.id for part in flat if isinstance(part, ast.Name)}
    return names


def test_no_private_name_of_another_folder_is_used():
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}
    own = set().union(*map(defined, trees.values()))
    foreign = {(file.name, name) for file, tree in trees.items() for name in used(tree) - own}
    assert foreign == set()
    assert len(set().union(*map(used, trees.values()))) > 20, "there are such names, and they were found"


def test_a_private_name_of_ours_would_be_seen():
    tree = ast.parse("from wavedash.training import _learn\nlearner.saver._best.pending = None\nself._mine = 1\nself._mine")
    assert used(tree) - defined(tree) == {"_learn", "_best"}


def test_the_run_is_driven_by_the_learner_and_its_listeners_alone(tmp_path, monkeypatch):
    """Nothing of the learner or the saver is replaced, and every listener is told by the learner itself."""
    with small_learner(tmp_path, two_players, standardize_obs=False, standardize_returns=False) as learner:
        learner.learn()
        ours = learner._learner
        replaced = [name for part in (ours, ours.updater, ours.collector) for name in vars(part)
                    if callable(getattr(type(part), name, None))]
        told = [type(listener).__name__ for listener in ours.listeners]
    assert replaced == []
    assert told[0] == "Reporter" and told[-2:] == ["ScriptSaver", "LiveSettings"] and "MetricsFile" in told
    assert all(isinstance(listener, Listener) for listener in ours.listeners)
