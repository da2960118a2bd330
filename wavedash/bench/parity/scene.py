"""What a scene of `wavedash bench parity` is, the stage on which it is set up, and how its random starts are drawn."""
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
"""Length of a scene, unless it says otherwise."""
SOON = (0.5, 5.5)
"""Range of ticks until two bodies meet, so that they have met and parted after 8."""
PARKED = {0: (-2900.0, -3900.0), 1: (2900.0, 3900.0)}
"""Where the car of each seat is parked, x and y in uu."""
NOSE, TAIL, SIDE = 74.2, 46.4, 43.4
"""Distances in uu from an Octane's origin to its front, back and sides."""
MOST_DRAWS = 50
"""Batches of starts that are drawn before a scene gives up finding enough that `keep` accepts."""


class Target(Enum):
    """What a scene must show to be faithful."""

    MOTION = "motion"
    """Flying and driving: position and velocity after 8 ticks."""
    BOUNCE = "bounce"
    """Ball and arena: the change of the ball's velocity."""
    HIT = "hit"
    """Car and ball: the change of the ball's velocity."""
    BUMP = "bump"
    """Car and car: the change of the cars' velocity."""
    EVENTS = "events"
    """Only the events that are reported."""
    SPREAD = "spread"
    """A car that tumbles chaotically: distributions over all starts are compared."""


@dataclass(frozen=True)
class Scene:
    """A mechanic to compare: `set_up` writes a batch of random starts and presses the controls."""

    name: str
    set_up: Callable[[SceneStage], None]
    target: Target
    of: tuple[str, ...]
    """Whose errors are shown: "car", "ball"."""
    seats: tuple[int, ...] = (0,)
    """Seats of the cars that have a part in it."""
    ticks: int = TICKS
    warm: int = 0
    """Ticks that RocketSim plays before the start, with the first controls: cars then stand on their wheels, or are half-way up
    a wall."""
    keep: Callable[[GameState], Tensor] | None = None
    """Says which starts are what they should be, [E] bool; the others are drawn again."""
    events_at: int = 8
    """Tick up to which both simulators must report the same events."""


SetUp = Callable[["SceneStage"], None]


class Scenes(dict[str, Scene]):
    """Scenes by name, in the order in which they were added."""

    def add(self, name: str, target: Target, *of: str, seats: tuple[int, ...] = (0,), ticks: int = TICKS, warm: int = 0,
            keep: Callable[[GameState], Tensor] | None = None, events_at: int = 8) -> Callable[[SetUp], SetUp]:
        """Decorates the function that sets a scene up."""
        def register(set_up: SetUp) -> SetUp:
            self[name] = Scene(name, set_up, target, of, seats, ticks, warm, keep, events_at)
            return set_up
        return register


@dataclass(frozen=True)
class Script:
    """A start, and the controls [T, E, C, 8] from there on."""

    start: GameState
    controls: Tensor


class SceneStage(Stage):
    """A stage with controls to press. All cars and the ball are parked at rest until a scene puts them elsewhere."""

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
        """Zeros [E]."""
        return torch.zeros(self.arenas)

    def seat(self, number: int) -> Tensor:
        """Mask [E, C] of the cars in this seat."""
        return (torch.arange(self.state.seats) == number).expand(self.arenas, -1)

    def press(self, seat: int = 0, start: Tensor | int = 0, ticks: Tensor | int = 10**6, **controls: Tensor | float) -> None:
        """Hold controls for so many ticks. All are numbers, or [E]."""
        tick = torch.arange(len(self.controls)).unsqueeze(-1)
        held = (tick >= start) & (tick < start + ticks)
        for name, value in controls.items():
            control = self.controls[:, :, seat, CONTROLS.index(name)]
            control.copy_(torch.where(held, torch.as_tensor(value, dtype=torch.float32), control))

    def number(self, low: int, high: int) -> Tensor:
        """Random integers [E] from low to high, both included."""
        return torch.randint(low, high + 1, (self.arenas,), generator=self.generator)

    def soon(self) -> Tensor:
        """Seconds [E] until two bodies meet."""
        return self.uniform(*SOON) / TICK_RATE

    def direction(self) -> Tensor:
        """Random unit vectors [E, 3]."""
        return normalize(torch.randn(self.arenas, 3, generator=self.generator), dim=-1)

    def middle(self, x: float = 1000.0, y: float = 1500.0) -> Tensor:
        """Random places [E, 3] on the floor, so far from the walls that no car gets there within a second."""
        return vector(self.uniform(-x, x), self.uniform(-y, y), 0.0)

    def any_rotation(self) -> Tensor:
        """Random rotations [E, 3, 3]."""
        return rotation(self.angle(), self.uniform(-pi / 2, pi / 2), self.angle())

    def spin_ball(self, most: float = BALL_MAX_SPIN) -> None:
        self.state.ball.angular_velocity.copy_(self.direction() * self.uniform(0.0, most).unsqueeze(-1))


def line_up(state: GameState, generator: torch.Generator) -> None:
    """Put everything into a kick-off; nothing of the state before is left."""
    kickoff = Kickoff()
    kickoff.bind(state)
    kickoff.write(state, generator)


def write_script(scene: Scene, simulator: Simulator, seed: int) -> Script:
    """Draw as many random starts as the simulator has arenas. The simulator is RocketSim, which plays the `warm` ticks."""
    generator = torch.Generator().manual_seed(seed)
    everywhere = torch.ones(simulator.state.arenas, dtype=torch.bool, device=simulator.device)
    starts, controls, found = [], [], 0
    for _ in range(MOST_DRAWS):
        stage = SceneStage(simulator.state.clone().to("cpu"), generator, scene.ticks)
        scene.set_up(stage)
        start = stage.state
        if scene.warm:
            simulator.state.copy_(start)
            simulator.place(everywhere)
            simulator.step(stage.controls[0], scene.warm)
            start = simulator.state.clone().to("cpu")
        kept = everywhere.cpu() if scene.keep is None else scene.keep(start)
        starts.append(start.memory[kept])
        controls.append(stage.controls[:, kept])
        found += int(kept.sum())
        if found >= simulator.state.arenas:
            memory = torch.cat(starts)[:simulator.state.arenas].contiguous()
            return Script(GameState.over(memory, start.seats), torch.cat(controls, 1)[:, :simulator.state.arenas].contiguous())
    raise RuntimeError(f"only {found} of {MOST_DRAWS * simulator.state.arenas} random starts of '{scene.name}' are what they "
                       "should be")
