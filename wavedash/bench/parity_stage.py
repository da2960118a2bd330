"""What a scene of `wavedash bench parity` is, and the stage on which it is set."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import pi

import torch
from torch import Tensor
from torch.nn.functional import normalize

from wavedash.rocket.constants import BALL_MAX_SPIN, BALL_REST_Z, TICK_RATE
from wavedash.rocket.geometry import rotation, vector
from wavedash.rocket.simulator import Simulator
from wavedash.rocket.starts import Kickoff
from wavedash.rocket.starts.stage import Stage
from wavedash.rocket.state import CONTROLS, GameState

TICKS = 120
SOON = (0.5, 5.5)
"""Ticks until bodies meet that shall have met, and parted, after 8"""
PARKED = {0: (-2900.0, -3900.0), 1: (2900.0, 3900.0)}
MOST_DRAWS = 50


class Target(Enum):
    """What a scene must show to be faithful."""

    MOTION = "motion"
    """Flying and driving: position and velocity after 8 ticks"""
    BOUNCE = "bounce"
    """Ball and arena: the change of the ball's velocity"""
    HIT = "hit"
    """Car and ball: the change of the ball's velocity"""
    BUMP = "bump"
    """Car and car: the change of the cars' velocity"""
    EVENTS = "events"
    """What is said to have happened, nothing else"""
    SPREAD = "spread"
    """A box that tumbles: some starts end anywhere, so distributions are compared"""


@dataclass(frozen=True)
class Scene:
    """`set_up` writes the start and presses the keys."""

    name: str
    set_up: Callable[[Take], None]
    target: Target
    of: tuple[str, ...]
    """Whose errors are shown: "car", "ball" """
    seats: tuple[int, ...] = (0,)
    """Cars that have a part in it"""
    ticks: int = TICKS
    warm: int = 0
    """Ticks that RocketSim plays first, with the first keys: so cars are settled on their wheels, or half-way up a wall"""
    keep: Callable[[GameState], Tensor] | None = None
    """[E]: starts that are what they should be; others are drawn again"""
    events_at: int = 8
    """Tick at which both must agree on what has happened"""


@dataclass(frozen=True)
class Script:
    """Start, and controls [T, E, C, 8] from there on."""

    start: GameState
    controls: Tensor


class Take(Stage):
    """A stage with keys to press. Everybody is parked, on the wheels and at rest, until put elsewhere."""

    def __init__(self, state: GameState, generator: torch.Generator, ticks: int) -> None:
        line_up(state, generator)
        super().__init__(state, generator)
        self.lead = self.seat(0)
        self.controls = torch.zeros(ticks, state.arenas, state.seats, len(CONTROLS))
        for seat, (x, y) in PARKED.items():
            self.drive(self.seat(seat), vector(x + self.zero, y, 0.0), self.angle(), self.zero)
        self.ball(vector(-2900.0 + self.zero, 3900.0, BALL_REST_Z), vector(self.zero, 0.0, 0.0))

    @property
    def zero(self) -> Tensor:
        """[E]"""
        return torch.zeros(self.arenas)

    def seat(self, number: int) -> Tensor:
        """[E, C]: the car in it"""
        return (torch.arange(self.state.seats) == number).expand(self.arenas, -1)

    def press(self, seat: int = 0, start: Tensor | int = 0, ticks: Tensor | int = 10**6, **keys: Tensor | float) -> None:
        """Hold keys for so many ticks. All are numbers, or [E]."""
        tick = torch.arange(len(self.controls)).unsqueeze(-1)
        held = (tick >= start) & (tick < start + ticks)
        for name, value in keys.items():
            key = self.controls[:, :, seat, CONTROLS.index(name)]
            key.copy_(torch.where(held, torch.as_tensor(value, dtype=torch.float32), key))

    def number(self, low: int, high: int) -> Tensor:
        """[E]: low to high, both included"""
        return torch.randint(low, high + 1, (self.arenas,), generator=self.generator)

    def soon(self) -> Tensor:
        """[E]: seconds until something is to be met"""
        return self.uniform(*SOON) / TICK_RATE

    def direction(self) -> Tensor:
        """[E, 3]: anywhere"""
        return normalize(torch.randn(self.arenas, 3, generator=self.generator), dim=-1)

    def middle(self, x: float = 1000.0, y: float = 1500.0) -> Tensor:
        """[E, 3]: on the floor, so far from the walls that nobody gets there within a second"""
        return vector(self.uniform(-x, x), self.uniform(-y, y), 0.0)

    def anyhow(self) -> Tensor:
        """[E, 3, 3]: rotations"""
        return rotation(self.angle(), self.uniform(-pi / 2, pi / 2), self.angle())

    def spin_ball(self, most: float = BALL_MAX_SPIN) -> None:
        self.state.ball.angular_velocity.copy_(self.direction() * self.uniform(0.0, most).unsqueeze(-1))


def line_up(state: GameState, generator: torch.Generator) -> None:
    """For a kick-off; nothing of what was before is left."""
    kickoff = Kickoff()
    kickoff.bind(state)
    kickoff.write(state, generator)


def script(scene: Scene, simulator: Simulator, seed: int) -> Script:
    """As many starts as the simulator has arenas. The simulator is RocketSim: it plays what comes before."""
    generator = torch.Generator().manual_seed(seed)
    everywhere = torch.ones(simulator.state.arenas, dtype=torch.bool, device=simulator.device)
    starts, controls, found = [], [], 0
    for _ in range(MOST_DRAWS):
        take = Take(simulator.state.clone().to("cpu"), generator, scene.ticks)
        scene.set_up(take)
        start = take.state
        if scene.warm:
            simulator.state.copy_(start)
            simulator.place(everywhere)
            simulator.step(take.controls[0], scene.warm)
            start = simulator.state.clone().to("cpu")
        kept = everywhere.cpu() if scene.keep is None else scene.keep(start)
        starts.append(start.memory[kept])
        controls.append(take.controls[:, kept])
        found += int(kept.sum())
        if found >= simulator.state.arenas:
            memory = torch.cat(starts)[:simulator.state.arenas].contiguous()
            return Script(GameState.over(memory, start.seats), torch.cat(controls, 1)[:, :simulator.state.arenas].contiguous())
    raise RuntimeError(f"of the starts of '{scene.name}' hardly any is what it should be")
