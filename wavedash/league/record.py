"""Recording game states of Rocket League: a player plays games, and at every decision the state is written with the controls
that it chose. Every task then makes observations and actions of its own of them."""
from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from wavedash.errors import UserError
from wavedash.evaluate.matches import SECONDS, Match, arenas_of
from wavedash.imitate.demonstrations import episode_begins, prepare, write_states
from wavedash.imitate.record import Recorded
from wavedash.league.players import Entrant
from wavedash.rocket.starts.frames import frame_arrays
from wavedash.rocket.state import GameState
from wavedash.seeding import stream_seed


def record_games(first: Entrant, second: Entrant | None, path: Path, games: int, simulator: str = "warp",
                 own_starts: bool = False, deterministic: bool = True, seed: int = 1, seconds: float = SECONDS) -> Recorded:
    """Plays games to the first goal, from kick-offs, or from the starts of the first player's task. Controls of the first
    player are known; without a second one it plays against itself, and those of all cars are."""
    prepare(path)
    task = first.task or (None if second is None else second.task)
    if own_starts and first.task is None:
        raise UserError(f"{first.name} was trained in no task, so it has no starts of its own: leave out --starts task")
    size = 1 if task is None else task.largest.larger
    arenas = arenas_of(size, simulator, "octane" if task is None else task.hitbox)
    if own_starts and first.task is not None and arenas.rocket is not None:
        arenas = arenas.model_copy(update={"rocket": arenas.rocket.model_copy(update={"starts": first.task.starts})})
    other = first if second is None else second
    players = [entrant.player(deterministic, stream_seed(seed, "player", i)) for i, entrant in enumerate((first, other))]
    match = Match(arenas, players[0], players[1], games, own_starts, limit=seconds, graphs=False)
    try:
        ticks = match.env.tasks[0].action.ticks
        if players[0].ticks not in (None, ticks):
            raise UserError(f"{first.name} decides every {players[0].ticks} ticks, and {other.name} at other times: record it "
                            "against a player that decides when it does, such as itself")
        return _play(match, path, ticks, second is None, stream_seed(seed, "demonstrations"),
                     {"player": first.name, "against": other.name, "simulator": simulator})
    finally:
        match.close()


@torch.no_grad()
def _play(match: Match, path: Path, ticks: int, both: bool, seed: int, metadata: dict[str, str]) -> Recorded:
    """Every arena plays equally many games, so that short ones are not favored."""
    env = match.env
    (state,) = env.states
    nothing = torch.zeros(env.num_rows, dtype=torch.int64, device=env.device)
    env.reset(seed)
    records: list[Tensor] = []
    controls: list[Tensor] = []
    number: list[Tensor] = []
    over: list[Tensor] = []
    played = torch.zeros(match.arenas, dtype=torch.int64)
    while int(played.min()) < match.rounds:
        before, clock = state.memory.cpu().clone(), state.clock.cpu().clone()
        env.step(nothing)
        ended = state.clock.cpu() <= clock  # another episode has begun
        records.append(before)
        controls.append(env.controls[0].cpu().clone())
        number.append(torch.where(played < match.rounds, torch.arange(match.arenas) * match.rounds + played, -1))
        over.append(ended)
        played += ended
        if bool(ended.any()):
            env.prepare()
    episode = torch.stack(number, 1).flatten()  # [E, T]: the moments of an arena follow each other
    kept = episode >= 0
    frames = GameState.over(torch.stack(records, 1).flatten(0, 1)[kept], state.seats)
    arena = torch.arange(match.arenas).repeat_interleave(len(records))[kept].unsqueeze(-1)
    # The first player is blue in every other arena. What was chosen last in an episode is gone when the next has begun.
    known = frames.cars.present & (both | (frames.cars.team == arena % 2)) & ~torch.stack(over, 1).flatten()[kept].unsqueeze(-1)
    chosen = torch.stack(controls, 1).flatten(0, 1)[kept]
    write_states(path, frame_arrays(frames), chosen, known, episode[kept], ticks, metadata)
    return Recorded(path, int(episode_begins(episode[kept]).sum()), int(known.sum()))
