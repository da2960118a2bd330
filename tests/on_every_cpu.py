"""Runs the numeric tests as other CPUs would: with other instruction sets and numbers of threads. `make test-cpus` does it.

    python -m tests.on_every_cpu                                  everything, one table
    python -m tests.on_every_cpu --only policy --isa avx2 --threads 1

Wider vectors, more threads and other libraries add sums in another order; a tolerance that does not follow from the arithmetic
(tests/roundings.py) shows here. Torch, MKL and oneDNN are all limited to the instruction set. With `default` the kernels of our
simulator are compiled for any CPU of the architecture (tests/generic_kernels.py), else for this one.
"""
from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]

PARTS: dict[str, list[str]] = {
    "policy": ["policy", "compat/test_import.py", "test_export.py"],
    "ppo": ["ppo/test_combinations.py", "ppo/test_critic_warmup.py", "ppo/test_episodes.py", "ppo/test_exact_resume.py",
            "ppo/test_gae.py",
            "ppo/test_host_reads.py", "ppo/test_inactive_rows.py", "ppo/test_keep_samples.py", "ppo/test_known_defects.py",
            "ppo/test_loss_scale.py",
            "ppo/test_losses.py", "ppo/test_minibatches.py", "ppo/test_muon.py",
            "ppo/test_normalization.py", "ppo/test_optimizer.py",
            "ppo/test_pieces.py",
            "ppo/test_ranks.py", "ppo/test_ratio_one.py", "ppo/test_schedule.py", "ppo/test_skipped.py", "ppo/test_update.py"],
    "rocket": ["rocket/test_actions.py", "rocket/test_observations.py", "rocket/test_players.py", "rocket/test_rewards.py",
               "rocket/test_rewards_combined.py", "rocket/test_rewards_reference.py", "rocket/test_starts.py",
               "evaluate/test_match_blocks.py", "evaluate/test_matches.py", "league/test_frozen_policies.py",
               "league/test_own_cars.py",
               "rocket/test_env.py", "rocket/test_line_up.py", "envs/test_rlgym.py", "compat/test_gym_env.py"],
    "simulator": ["rocket/sim/collision/test_arena.py", "rocket/sim/collision/test_car_arena.py",
                  "rocket/sim/collision/test_car_ball.py", "rocket/sim/collision/test_car_car.py",
                  "rocket/sim/mechanics/test_curves.py", "rocket/sim/collision/test_rays.py",
                  "rocket/sim/test_short_ticks.py", "bench/test_parity_rows.py"],
}
"""Files and folders of tests/ by the name of their part; each part takes about two minutes."""
COMPILED = ("rocket", "simulator")
"""Parts that run kernels of the simulator."""
_FEW = "plain numbers, clocks, shares and formats: a few operations in float64 each"
_GPU = "needs a GPU"
_THEIRS = "RocketSim's own arithmetic, in C++ that no variable changes"
ELSEWHERE: dict[str, str] = {
    "bench/test_parity.py": _THEIRS, "bench/test_rocket_speed.py": _THEIRS, "rocket/test_rocketsim.py": _THEIRS,
    "rocket/test_rocketsim_workers.py": _THEIRS, "rocket/test_bridges.py": _THEIRS,
    "compat/test_arguments.py": _FEW, "compat/test_learner.py": _FEW, "compat/test_script_folders.py": _FEW,
    "compat/test_script_hooks.py": _FEW, "envs/test_local.py": _FEW, "envs/test_wrap.py": _FEW, "ppo/test_stopwatch.py": _FEW,
    "report/test_dashboard.py": _FEW, "report/test_metrics_file.py": _FEW, "report/test_tensorboard.py": _FEW,
    "ppo/test_listener_state.py": _FEW, "rocket/test_task_state.py": _FEW, "runs/test_resume_settings.py": _FEW,
    "runs/test_live.py": _FEW, "runs/test_live_ranks.py": _FEW, "runs/test_live_cuda.py": _GPU,
    "tasks/test_toy_task.py": _FEW, "test_diagnosis.py": _FEW, "evaluate/test_episodes.py": _FEW, "test_roundings.py": _FEW,
    "league/test_match.py": _FEW, "league/test_tournament.py": _FEW, "league/test_ladder.py": _FEW,
    "league/test_reference.py": _FEW,
    "league/test_ratings.py": "float64 throughout, with bounds far above its roundings", "league/test_frozen_cuda.py": _GPU,
    "league/test_frozen_policies_cuda.py": _GPU,
    "runs/test_initial_cuda.py": _GPU,
    "league/test_strategies.py": _FEW, "league/test_members.py": _FEW,
    "league/test_panel.py": "its ratings are compared with the same arithmetic on the same games",
    "league/test_panel_cuda.py": _GPU,
    "ppo/test_cuda.py": _GPU, "rocket/sim/test_env_cuda.py": _GPU, "rocket/test_observations_cuda.py": _GPU,
    "ppo/test_learning.py": "whether a task is learned, which takes minutes; its bounds are far from what is reached",
}
"""Files that compare numbers but are in no part, with the reason."""
TOLERANCE = re.compile(r"allclose|assert_close|approx\(|assert_rounded|assert_within|assert_same_in_float64|isclose")
ISAS = {
    "default": {"ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "avx512": {"ATEN_CPU_CAPABILITY": "avx512", "MKL_ENABLE_INSTRUCTIONS": "AVX512", "ONEDNN_MAX_CPU_ISA": "ALL"},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--isa", nargs="+", choices=ISAS, default=available(), help="by default all that this CPU has")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    wanted = parser.parse_args()
    print(f"{'instructions':<13} {'threads':>7}  {'part':<10} {'result':<32} {'seconds':>7}", flush=True)
    failed = 0
    for isa, threads, part in product(wanted.isa, wanted.threads, wanted.only):
        began = time.monotonic()
        code, result, output = run(part, isa, threads)
        print(f"{isa:<13} {threads:>7}  {part:<10} {result:<32} {time.monotonic() - began:>7.0f}", flush=True)
        if code:
            failed += 1
            print(output, flush=True)
    if forgotten():
        print(f"in no part, though they compare numbers: {', '.join(forgotten())}; add them to PARTS, or to ELSEWHERE")
    return min(failed, 1)


def forgotten() -> list[str]:
    """Files with tolerances that are neither in a part nor in ELSEWHERE."""
    tests = ROOT / "tests"
    named = [tests / name for names in PARTS.values() for name in names]
    inside = {file for path in named for file in ([path] if path.is_file() else path.rglob("test_*.py"))}
    compare = {file for file in tests.rglob("test_*.py") if TOLERANCE.search(file.read_text(encoding="utf-8"))}
    return sorted({file.relative_to(tests).as_posix() for file in compare - inside} - set(ELSEWHERE))


def run(part: str, isa: str, threads: int) -> tuple[int, str, str]:
    """The exit code, the counts of pytest, and its whole output."""
    # The key of torch's compile cache is the source alone: a shared cache would return code for other instructions.
    cache = Path(tempfile.gettempdir(), f"wavedash-compiled-{isa}-{threads}")
    environment = {**os.environ, **ISAS[isa], "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads),
                   "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    kernels = ["-p", "tests.generic_kernels"] if isa == "default" and part in COMPILED else []
    command = [sys.executable, "-m", "pytest", "-q", *kernels, *(str(ROOT / "tests" / name) for name in PARTS[part])]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    counts = re.findall(r"\d+ (?:passed|failed|skipped|errors?)", (done.stdout.splitlines() or [""])[-1])
    return done.returncode, ", ".join(counts) or f"exit code {done.returncode}", done.stdout + done.stderr


def available() -> list[str]:
    """The instruction sets that torch can be limited to on this CPU."""
    import torch

    most = {"DEFAULT": 1, "AVX2": 2, "AVX512": 3}.get(torch.backends.cpu.get_cpu_capability(), 1)
    return list(ISAS)[:most]


if __name__ == "__main__":
    sys.exit(main())
