"""The command line: one small function per command, one file per family of commands, each a call into the library.

Nothing heavy is imported in this folder. A command imports what it needs when it runs, so that `--help` and `config` answer at
once. `app.py` puts the families together; `process.py` deals with errors and the end of the process.
"""
from wavedash.cli.app import app
from wavedash.cli.process import main

__all__ = ["app", "main"]
