"""`python -m wavedash.compat.rlgym_ppo train.py ...` runs a script for rlgym-ppo unchanged: its imports of rlgym_ppo get ours.

`python -m wavedash.compat.rlgym_ppo -m package.train ...` does so with a module.
"""
from __future__ import annotations

import runpy
import sys
from pathlib import Path

from wavedash.compat.rlgym_ppo import alias
from wavedash.errors import UserError

USAGE = "usage: python -m wavedash.compat.rlgym_ppo SCRIPT.py [ARGUMENTS]   (or -m MODULE [ARGUMENTS])"


def main(arguments: list[str]) -> None:
    as_module = arguments[:1] == ["-m"]
    if as_module:
        arguments = arguments[1:]
    if not arguments or arguments[0].startswith("-"):
        raise UserError(USAGE)
    alias.install()
    sys.argv = arguments
    if as_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        return
    script = Path(arguments[0])
    if not script.is_file():
        raise UserError(f"there is no script {script}. {USAGE}")
    sys.path[0] = str(script.resolve().parent)  # where Python finds the script's own modules
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
