"""The arena of a match plays players as everything else here does: decided every 8 ticks, in force a tick later."""
from __future__ import annotations

import pytest
import torch

from wavedash.evaluate.matches import nudged_kickoff
from wavedash.league.players import find_entrant
from wavedash.rlbot.server.arena import MatchArena, Seat
from wavedash.rocket.parts import Player
from wavedash.rocket.rocketsim.simulator import RocketSimSimulator
from wavedash.rocket.state import GameState

TICKS, DELAY, STEPS = 8, 1, 150


def players() -> list[Player]:
    made = [find_entrant(name).player() for name in ("champion", "chaser")]
    for player in made:
        player.ticks, player.delay = TICKS, DELAY
    return made


def stepped_as_in_training(beginning: GameState, delay: int) -> list[torch.Tensor]:
    """The states after every step of 8 ticks, where the simulator itself delays controls: the reference."""
    simulator = RocketSimSimulator(1, 1, 1)
    simulator.state.copy_(beginning)
    everywhere = torch.ones(1, dtype=torch.bool)
    simulator.place(everywhere)
    drivers, chosen, states = players(), torch.zeros(1, 2, 8), []
    for car, player in enumerate(drivers):
        player.bind(simulator.state)
        player.take_slots(torch.tensor([[car]]))
        player.begin(simulator.state, everywhere)
    for _ in range(STEPS):
        chosen = torch.stack([player.drive(simulator.state, chosen)[:, car] for car, player in enumerate(drivers)], 1)
        simulator.step(chosen, TICKS, delay)
        states.append(simulator.state.memory.clone())
    simulator.close()
    return states


@pytest.mark.slow
def test_a_game_is_bit_for_bit_that_of_an_environment() -> None:
    blue, orange = players()
    arena = MatchArena([Seat(0, "champion", blue), Seat(1, "chaser", orange)], seed=3, nudge=nudged_kickoff())
    arena.kick_off()
    beginning = arena.state.clone()
    references = {delay: stepped_as_in_training(beginning, delay) for delay in (DELAY, 0)}
    parts = ("position", "velocity", "rotation", "angular_velocity", "boost", "air_time")

    def bodies(memory: torch.Tensor) -> torch.Tensor:
        state = GameState.over(memory, 2)
        return torch.cat([getattr(state.cars, name).flatten() for name in parts] + [state.ball.position.flatten()])

    same = dict.fromkeys(references, True)
    for step in range(STEPS):
        for _ in range(TICKS):
            arena.tick({})
        for delay, reference in references.items():
            same[delay] &= torch.equal(bodies(arena.state.memory), bodies(reference[step]))
    assert same == {DELAY: True, 0: False}, "without the delay it is another game"
    arena.close()


def test_inputs_move_the_cars_of_programs_alone() -> None:
    idle = find_entrant("idle").player()
    arena = MatchArena([Seat(0, "bot", None), Seat(0, "bot (2)", None), Seat(1, "idle", idle)], seed=0)
    arena.kick_off()
    before = arena.state.cars.position.clone()
    for _ in range(60):
        arena.tick({0: (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)})
    moved = (arena.state.cars.position - before)[0].norm(dim=-1)
    assert moved[0] > 50 and moved[1] < 5 and moved[2] < 5
    arena.kick_off()
    assert torch.equal(arena.state.cars.velocity, torch.zeros(1, 3, 3)) and int(arena.state.game.tick[0]) == 0
    arena.close()
