"""The inverse model that ships, measured in RocketSim, in which it was not trained."""
from __future__ import annotations

import pytest
import torch

from wavedash.errors import UserError
from wavedash.replays.generate import play
from wavedash.replays.inverse import SHIPPED, load_model, save_model
from wavedash.replays.train_inverse import TICKS, Samples, accuracies, samples_of
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator
from wavedash.rocket.state import PITCH, ROLL, YAW


@pytest.mark.slow
def test_the_model_that_ships_infers_the_sticks_of_cars_in_the_air():
    simulator = RocketSimSimulator(6, 1, 1)
    held_out = samples_of(play(simulator, 90, TICKS, seed=77), seed=5, without_sticks=0.0)
    simulator.close()
    model = load_model("shipped")
    commonest = held_out.level.mode(0).values  # chosen with a view to the answers: the best that one value can be
    found = accuracies(model, held_out, commonest)["in the air"]
    for control in (PITCH, YAW, ROLL):
        assert found["model"][control] > found["commonest"][control] + 0.2
        assert found["model"][control] > found["replay"][control] + 0.2
    foreign = held_out.inputs[torch.randperm(len(held_out.inputs), generator=torch.Generator().manual_seed(0))]
    other = accuracies(model, Samples(foreign, held_out.level, held_out.carried, held_out.situation), commonest)["in the air"]
    for control in (PITCH, YAW, ROLL):
        assert other["model"][control] < found["model"][control] - 0.2, "motions of other cars say nothing"


def test_a_model_comes_back_as_it_was_saved_and_others_are_refused(tmp_path):
    model = load_model("shipped")
    save_model(tmp_path / "again.safetensors", model)
    again = load_model(str(tmp_path / "again.safetensors"))
    x = torch.randn(5, len(model.mean))
    assert torch.equal(model(x), again(x)) and SHIPPED.stat().st_size < 300_000
    assert load_model("none") is None
    (tmp_path / "bad.safetensors").write_bytes(b"x")
    with pytest.raises(UserError, match="train-inverse"):
        load_model(str(tmp_path / "bad.safetensors"))
