"""Set-up of all tests."""
from __future__ import annotations

import os
import tempfile

# The variable of the user would change where runs of tests go.
os.environ.pop("WAVEDASH_RUNS", None)
# Run folders are signed with a secret of the user: tests, and the processes that they start, have one of their own.
_home = tempfile.TemporaryDirectory(prefix="wavedash-home-")
os.environ["WAVEDASH_HOME"] = _home.name
