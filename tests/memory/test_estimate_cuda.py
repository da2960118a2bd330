"""On a GPU: the whole estimate against what torch, Warp and CUDA have really taken."""
from __future__ import annotations

import pytest
import torch

from wavedash.assembly import assembled
from wavedash.config_file import load_config
from wavedash.memory.choice import resolved, shapes_for
from wavedash.memory.estimate import memory_of
from wavedash.memory.hardware import GIB, hardware_of
from wavedash.memory.table import lines, rows
from wavedash.ppo.graphs import WARM_UP
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.sim.simulator import WarpSimulator

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ITERATIONS = WARM_UP + 3
TASK = ("rocket-1v1-gpu", "device=cuda", "rating=null", "report.console=off")


@pytest.mark.slow
@pytest.mark.parametrize(("arenas", "precision"), [(2048, "bf16"), (8192, "bf16"), (8192, "fp32")])
def test_the_estimate_holds_what_is_really_taken(arenas, precision):
    """The data is estimated closely, from above; with the programs, the estimate is above all that the device has given."""
    config = load_config(TASK[0], [*TASK[1:], f"env.count={arenas}", "ppo.minibatch_size=16384", f"precision={precision}"])
    device = torch.device("cuda", 0)
    terms = memory_of(config, shapes_for(config, torch.device("cpu"))(precision), device)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with assembled(config) as learner:
        learner.start()
        for _ in range(ITERATIONS):
            learner.iterate()
        torch.cuda.synchronize()
        by_torch = torch.cuda.max_memory_allocated() - before
        assert isinstance(learner.env, RocketEnv)
        simulators = [shard.simulator for shard in learner.env._shards]
        by_warp = sum(_work_memory(simulator) for simulator in simulators if isinstance(simulator, WarpSimulator))
        free, total = torch.cuda.mem_get_info()
    data = sum(terms.values()) - terms["programs"]
    print(f"{arenas} arenas, {precision}: estimated {data / GIB:.2f} GiB and {terms['programs'] / GIB:.2f} of programs; torch "
          f"{by_torch / GIB:.2f} ({torch.cuda.memory_reserved() / GIB:.2f} with unused blocks), warp {by_warp / GIB:.2f}, the "
          f"whole device {(total - free) / GIB:.2f}")
    assert 0.5 * data < by_torch + by_warp < data
    assert total - free < sum(terms.values()), "unless another program uses this GPU"


def _work_memory(simulator: WarpSimulator) -> int:
    """What Warp has allocated for it: the arrays that are not views of torch's tensors."""
    views = {"words", "floats", *simulator._memory._fields}
    return sum(getattr(partition.arenas, name).capacity for partition in simulator._partitions
               for name in partition.arenas._cls.vars if name not in views and name != "seats")


def test_this_gpu_is_in_the_table_and_gets_numbers():
    config = resolved(load_config(TASK[0], TASK[1:]), torch.device("cuda", 0))
    assert not config.undecided and config.env.count >= 512
    hardware = hardware_of(torch.device("cuda", 0))
    assert hardware.usable <= 0.9 * hardware.total and config.precision == hardware.precision
    assert any(torch.cuda.get_device_name(0) in line for line in lines(rows()))
