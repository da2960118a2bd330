"""Game states become what the policy saw and did: what a task gave and took while they were recorded, number for number."""
from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch
from torch import Tensor

from wavedash.assembly import make_policy
from wavedash.config import RunConfig
from wavedash.config_file import load_config
from wavedash.envs.kinds import Spaces, kind_of
from wavedash.envs.make import make_env
from wavedash.errors import UserError
from wavedash.imitate.demonstrations import Demonstrations, read, write_states
from wavedash.imitate.held_out import measure
from wavedash.imitate.samples import samples_of
from wavedash.imitate.split import split_episodes
from wavedash.league.players import Entrant, find_entrant
from wavedash.league.record import record_games
from wavedash.rocket.env import RocketEnv
from wavedash.rocket.parts import Observation
from wavedash.rocket.starts.frames import frame_arrays
from wavedash.rocket.state import STICKS, GameState
from wavedash.runs.policy_folder import PolicyFolder

SHORT = ("env.count=6", "env.groups=1", "device=cpu", "env.rocket.starts={random: 0.7, kickoff: 0.3}",
         "env.rocket.endings={goal: {}, time_out: {seconds: 1.1}}")
STEPS = 40


class WhichMoment(Observation):
    """The boost of a car."""

    def size(self, seats: int) -> int:
        return 1

    def build(self, state: GameState, controls: Tensor, stepped: bool = True) -> Tensor:
        return state.cars.boost.unsqueeze(-1).clone()


PARSERS = {
    "lookup table": "{lookup_table: {}}", "lookup table, every 4 ticks": "{lookup_table: {ticks: 4}}",
    "lookup table, not masked": "{lookup_table: {masked: false}}", "multi-discrete": "{multi_discrete: {bins: 5}}",
    "multi-discrete, eight": "{multi_discrete: {shared_yaw: false, masked: false}}", "continuous": "{continuous: {}}",
}


def drawn(space: gymnasium.Space[Any], mask: Tensor | None, rows: int, generator: torch.Generator) -> Tensor:
    """Random actions, of those that the mask offers."""
    if isinstance(space, gymnasium.spaces.Box):
        return torch.rand(rows, *space.shape, generator=generator) * 2.4 - 1.2
    sizes = [int(space.n)] if isinstance(space, gymnasium.spaces.Discrete) else space.nvec.tolist()  # type: ignore[attr-defined]
    offered = torch.ones(rows, sum(sizes)) if mask is None else mask.float()
    chosen = torch.stack([part.multinomial(1, generator=generator)[:, 0] for part in offered.split(sizes, -1)], -1)
    return chosen[:, 0] if isinstance(space, gymnasium.spaces.Discrete) else chosen


def played(config: RunConfig, path: Path) -> tuple[list[Any], list[Tensor], list[Tensor]]:
    """Writes what random play goes through, and returns what rows saw and did, and which steps have another one behind them."""
    env = make_env(config.env, "cpu")
    assert isinstance(env, RocketEnv)
    generator = torch.Generator().manual_seed(0)
    obs, (state,) = env.reset(3), env.states
    seen, acted, follows, records, controls, number = [], [], [], [], [], []
    episode = torch.arange(state.arenas, dtype=torch.int32)
    for _ in range(STEPS):
        mask = obs["action_mask"] if isinstance(obs, dict) else None
        action = drawn(env.action_space, mask, env.num_rows, generator)
        seen.append({key: x.clone() for key, x in obs.items()} if isinstance(obs, dict) else {"obs": obs.clone()})
        acted.append(action)
        records.append(state.memory.clone())
        number.append(episode.clone())
        step = env.step(action)
        ended = (step.terminated | step.truncated).view(state.shape)[:, 0]
        controls.append(env.controls[0].clone())
        follows.append(~ended)
        episode = torch.where(ended, episode + state.arenas, episode)
        obs = step.obs
    frames = GameState.over(torch.stack(records, 1).flatten(0, 1), state.seats)
    known = torch.stack(follows, 1).flatten().unsqueeze(-1).expand(-1, state.seats)
    write_states(path, frame_arrays(frames), torch.stack(controls, 1).flatten(0, 1), known,
                 torch.stack(number, 1).flatten(), env.tasks[0].action.ticks)
    env.close()
    return seen, acted, follows


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("team", [1, 2])
def test_observations_masks_and_actions_are_those_of_training(parser: str, team: int, tmp_path: Path) -> None:
    config = load_config(f"rocket-{team}v{team}", [
        *SHORT, f"env.rocket.action={PARSERS[parser]}",
        f"env.rocket.observation={{advanced_obs_plus: {{team_size: {team}, frames: 3}}}}"])
    seen, acted, follows = played(config, tmp_path / "s.safetensors")
    states, kind = read(tmp_path / "s.safetensors", "states"), kind_of(config.env)
    samples = samples_of(kind.demonstrated(config.env, states), kind.spaces(config.env, torch.device("cpu")))
    episodes = states.tensors["episode"].view(-1, STEPS)  # [E, T]
    assert len(states.tensors["episode"].unique()) > 6, "episodes ended"
    seats = 2 * team
    # Each car of each episode is an episode, unless nothing of it is known; the order of these is not promised.
    assert samples.count == sum(int((episodes == number).sum()) * seats for number in episodes.unique()
                                if torch.stack(follows, 1)[episodes == number].any())
    where = {key: torch.stack([x[key].view(-1, seats, *x[key].shape[1:]) for x in seen], 1)  # [E, T, C, ...]
             for key in seen[0]}
    action = torch.stack([x.view(-1, seats, *x.shape[1:]) for x in acted], 1)
    found = samples.obs if isinstance(samples.obs, dict) else {"obs": samples.obs}
    ends = {where["obs"][arena, step, seat].numpy().tobytes(): (arena, step, seat)
            for arena in range(len(episodes)) for step in range(STEPS) for seat in range(seats)}
    first = [*samples.first.tolist(), samples.count]
    for begin, end in pairwise(first):  # what is seen last in an episode tells which one it was
        arena, step, seat = ends[found["obs"][end - 1].numpy().tobytes()]
        steps = slice(step - (end - begin) + 1, step + 1)
        for key, x in found.items():
            assert torch.equal(x[begin:end], where[key][arena, steps, seat]), (key, arena, steps, seat)
        known = torch.stack(follows, 1)[arena, steps]
        assert torch.equal(samples.known[begin:end], known)
        _assert_same_choice(samples.action[begin:end][known], action[arena, steps, seat][known])


def _assert_same_choice(found: Tensor, done: Tensor) -> None:
    if not found.is_floating_point():
        assert torch.equal(found, done)
        return
    assert torch.equal(found[:, :STICKS], done[:, :STICKS].clamp(-1, 1))
    assert torch.equal(found[:, STICKS:] > 0, done[:, STICKS:] > 0)


def test_controls_between_the_rows_of_a_table_become_the_nearest_that_is_offered() -> None:
    config = load_config("rocket-1v1", [])
    spaces = kind_of(config.env).spaces(config.env, torch.device("cpu"))
    assert isinstance(spaces, Spaces)
    from wavedash.rocket.rehearsal import empty_arenas
    from wavedash.rocket.starts.kickoff import Kickoff
    from wavedash.rocket.task import Task

    assert config.env.rocket is not None
    state = empty_arenas(1, config.env.rocket)
    kickoff = Kickoff()
    kickoff.bind(state)
    kickoff.write(state, torch.Generator().manual_seed(0))
    action = Task.configured(config.env.rocket).action
    action.bind(state)
    human = torch.tensor([0.8, -0.3, 0.1, -0.3, 0.0, 0.0, 1.0, 0.0]).expand(1, 2, 8)
    rows, offered = action.nearest(human, state), action.mask(state)
    assert offered is not None and offered.gather(-1, rows.unsqueeze(-1)).all()
    assert action.controls(rows)[0, 0].tolist() == [1, 0, 0, 0, 0, 0, 1, 0]
    state.cars.boost.zero_()
    assert action.controls(action.nearest(human, state))[0, 0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0], "an empty tank"


# --- recorded games --------------------------------------------------------------------------------------------------


def policy_folder(folder: Path, *overrides: str) -> str:
    """A policy with made-up weights that are far from initial ones, in a folder of its own."""
    config = load_config("rocket-1v1", ["policy.hidden=[16]", *overrides])
    spaces = kind_of(config.env).spaces(config.env, torch.device("cpu"))
    policy = make_policy(spaces, config)
    torch.manual_seed(0)
    with torch.no_grad():
        for p in policy.parameters():
            p.add_(0.3 * torch.randn_like(p))
    from wavedash.ppo.learner_state import policy_fingerprint

    PolicyFolder.write(folder, config, policy.state_dict(), {"steps": 5, "fingerprint": policy_fingerprint(policy)},
                       signed=True)
    return str(folder)


def record(player: Entrant, other: Entrant | None, path: Path, **options: Any) -> Demonstrations:
    record_games(player, other, path, games=4, seconds=4.0, **options)
    return read(path, "states")


@pytest.mark.parametrize("overrides", [
    (), ("policy.memory.kind=gru", "policy.memory.sequence=16"),
    ("env.rocket.action={multi_discrete: {}}", "env.rocket.observation={advanced_obs_plus: {team_size: 1, frames: 2}}"),
], ids=["table", "gru", "multi-discrete, frames"])
def test_a_policy_does_again_what_was_recorded_of_it(overrides: tuple[str, ...], tmp_path: Path) -> None:
    """Shown what was made of the states, with its memory, it takes the actions that were made of the controls, all of them."""
    player = find_entrant(policy_folder(tmp_path / "policy", *overrides))
    states = record(player, None, tmp_path / "d.safetensors")
    assert player.run is not None
    env, policy = player.run.config.env, player.run.policy.policy
    samples = samples_of(kind_of(env).demonstrated(env, states), kind_of(env).spaces(env, torch.device("cpu")))
    assert samples.known.float().mean() > 0.9 and samples.count > 200
    numbers = torch.arange(samples.count)
    assert measure(policy, samples, numbers)["imitate/accuracy"] == 1.0
    # The control: controls that are a moment late are not what it does.
    late = {**states.tensors, "controls": states.tensors["controls"].roll(1, 0)}
    wrong = Demonstrations(states.path, "states", states.metadata, late)
    samples = samples_of(kind_of(env).demonstrated(env, wrong), kind_of(env).spaces(env, torch.device("cpu")))
    assert measure(policy, samples, numbers)["imitate/accuracy"] < 0.98


def test_only_the_first_player_is_learned_from(tmp_path: Path) -> None:
    chaser, idle = (find_entrant(name) for name in ("chaser", "idle"))
    states = record(chaser, idle, tmp_path / "d.safetensors")
    known, moving = states.tensors["known"], states.tensors["controls"].any(-1)
    assert states.metadata["player"] == "chaser" and states.metadata["against"] == "idle"
    assert (known.sum(-1) <= 1).all() and known[:, 0].any() and known[:, 1].any(), "from both sides"
    assert moving[known].all() and not moving[~known].any()


@pytest.mark.parametrize(("recordings", "whole"), [(20, True), (3, False), (0, False)])
def test_no_game_is_both_held_out_and_learned_from(recordings: int, whole: bool, tmp_path: Path) -> None:
    """Cars of a game see the same moments, so they are held out together. Where there are enough recordings, these are held out
    as a whole. The boost of a car says which moment a sample is of."""
    config = load_config("rocket-1v1", ["env.rocket.observation=tests.imitate.test_states:WhichMoment"])
    assert config.env.rocket is not None
    from wavedash.rocket.rehearsal import empty_arenas
    from wavedash.rocket.starts.kickoff import Kickoff

    count, episode = 360, torch.arange(360) // 6
    state = empty_arenas(count, config.env.rocket)
    kickoff = Kickoff()
    kickoff.bind(state)
    kickoff.write(state, torch.Generator().manual_seed(0))
    state.cars.boost.copy_(torch.arange(float(count)).unsqueeze(-1) / 4)
    known = torch.ones(count, 2, dtype=torch.bool)
    recording = episode * recordings // 60 if recordings else None
    write_states(tmp_path / "d.safetensors", frame_arrays(state), torch.zeros(count, 2, 8), known, episode, 8,
                 recording=recording)
    samples = samples_of(kind_of(config.env).demonstrated(config.env, read(tmp_path / "d.safetensors")),
                         kind_of(config.env).spaces(config.env, torch.device("cpu")))
    assert isinstance(samples.obs, dict)
    moment = (samples.obs["obs"][:, 0] * 4).round().long()
    assert samples.count == 720 and torch.equal(moment.bincount(), torch.full((count,), 2))
    for seed in range(4):
        split = split_episodes(tmp_path, samples, 0.1, seed)
        out, learned = (set(episode[moment[numbers]].tolist()) for numbers in (split.held_out, split.learned))
        assert not out & learned and len(out) == 6 and len(out | learned) == 60
        games = episode[moment[split.learned]][::6]  # of one car after another
        assert (games[1:] == games[:-1]).sum() < 8, "episodes are mixed one by one"
        if recording is not None:
            out, learned = (set(recording[moment[numbers]].tolist()) for numbers in (split.held_out, split.learned))
            assert bool(out & learned) != whole


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    config = load_config("rocket-1v1", [])
    states = record(find_entrant("chaser"), None, tmp_path / "d.safetensors")
    other = load_config("rocket-1v1", ["env.rocket.action={lookup_table: {ticks: 4}}"])
    with pytest.raises(UserError, match="has a moment every 8 ticks, and the policy decides every 4"):
        kind_of(other.env).demonstrated(other.env, states)
    four = Demonstrations(states.path, "states", states.metadata, {
        name: x.repeat_interleave(2, 1) if name.startswith("cars.") or name in ("known", "controls") else x
        for name, x in states.tensors.items()})
    with pytest.raises(UserError, match="holds games of 4 cars, and here play 2 at most"):
        kind_of(config.env).demonstrated(config.env, four)
    cartpole = load_config("cartpole", [])
    with pytest.raises(UserError, match="holds game states of Rocket League, and CartPole-v1 needs observations"):
        kind_of(cartpole.env).demonstrated(cartpole.env, states)
    nothing = Demonstrations(states.path, "states", states.metadata,
                             {**states.tensors, "known": torch.zeros_like(states.tensors["known"])})
    with pytest.raises(UserError, match="no controls are known"):
        kind_of(config.env).demonstrated(config.env, nothing)
    with pytest.raises(UserError, match="choose this ending"):
        record_games(find_entrant("chaser"), None, tmp_path / "d.npz", games=2)
    slow = find_entrant(policy_folder(tmp_path / "policy", "env.rocket.action={lookup_table: {ticks: 12}}"))
    with pytest.raises(UserError, match=r"decides every 12 ticks, and .* at other times"):
        record_games(slow, find_entrant(policy_folder(tmp_path / "eight")), tmp_path / "d.safetensors", games=2)
