"""On a GPU, where collection is a captured CUDA graph, debug switches report as on a CPU and leave the training as it is."""
from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.debug.test_debug import SMALL, SWITCHES
from wavedash.training import train

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]


def test_reports_on_a_gpu_leave_the_training_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels may add in another order from run to run, so weights are compared up to rounding, and arenas by their play."""
    weights = []
    for switch in ("true", "false"):
        monkeypatch.setenv("WAVEDASH_RUNS", str(tmp_path / switch))
        assert train("rocket-1v1", *SMALL, "device=cuda", "env.count=64", "rating=null", "ppo.normalize_obs=true",
                     "total_steps=20_000", f"debug.all={switch}") == 0
        (final,) = tmp_path.glob(f"{switch}/*/*/final/*")
        weights.append(load_file(final / "policy.safetensors"))
    (run,) = tmp_path.glob("true/*/*/")
    assert sorted(path.stem for path in (run / "debug").iterdir()) == sorted(SWITCHES)
    assert " failed (" not in (run / "log.txt").read_text(encoding="utf-8")
    for name, x in weights[0].items():
        torch.testing.assert_close(weights[1][name], x, rtol=1e-3, atol=1e-4)
