"""Opponents: slots keep their number of arenas, meet every arena on both sides, and their games are counted."""
from __future__ import annotations

import math
import random
from collections import Counter

import pytest
import torch
from torch import Tensor

from tests.rocket.no_host_sync import NoHostSync
from tests.rocket.test_line_up import arenas, environment
from wavedash.config import EnvConfig
from wavedash.config_file import load_config
from wavedash.errors import UserError
from wavedash.rocket.actions import LookupTable
from wavedash.rocket.endings import Goal
from wavedash.rocket.line_up import POLICY, Opponents
from wavedash.rocket.parts import Player
from wavedash.rocket.players import Idle
from wavedash.rocket.state import Events, GameState

WON, DRAWN, LOST = range(3)


class Several(Player):
    """Several opponents: the one in slot k sets all controls to (k + 1) / 10, for its own cars alone. What is exchanged is the
    number of its controls."""

    def __init__(self, slots: int) -> None:
        self.slots = slots

    def bind(self, state: GameState) -> None:
        self.register_buffer("told", (torch.arange(self.slots) + 1.0) / 10, persistent=False)

    def take_slots(self, rows: Tensor) -> None:
        self.rows = rows

    def exchange(self, slot: int, policy: float) -> None:
        self.told[slot].fill_(policy)

    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        controls = torch.full((state.arenas * state.seats, 8), math.nan)
        for slot, rows in enumerate(self.rows):
            controls[rows] = float(self.told[slot])
        return controls.view(*state.shape, 8)


def opponents(state: GameState, share: float = 0.5, seed: int = 0, most: float | None = None) -> Opponents:
    """Six slots of three players."""
    made = Opponents(LookupTable(), [Idle(), Several(4), Idle()], share, seed, most)
    made.bind(state)
    return made


def masks(arenas: int, count: int, chance: float, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.ones(arenas, dtype=torch.bool), *(torch.rand(count, arenas, generator=generator) < chance)]


@pytest.mark.parametrize("seats", [2, 4, 6])
def test_every_slot_has_equally_many_arenas_at_any_time_and_knows_its_cars(seats):
    state = arenas(50, seats)
    line_up = opponents(state)
    assert (line_up.slots, line_up.per_slot, line_up.where) == (6, 4, slice(26, 50)), "24 of 50 arenas are nearest to half"
    before, kept, changed = line_up.seats.clone(), 0, 0
    for mask in masks(50, 60, 0.3):
        line_up.begin(state, mask)
        seats_now = line_up.seats
        assert torch.equal(seats_now[~mask], before[~mask]), "who drives changes only where an episode begins"
        assert (seats_now[:26] == POLICY).all()
        slots = seats_now[26:].amax(-1)
        assert slots.bincount().tolist() == [0, 4, 4, 4, 4, 4, 4]
        assert ((seats_now[26:] == POLICY).sum(-1) == seats // 2).all(), "one team is the policy's"
        assert torch.equal(slots - 1, line_up.slot_of_arena())
        for slot, rows in enumerate(line_up.rows):
            assert sorted(rows.tolist()) == (seats_now[26:].flatten() == slot + 1).nonzero().squeeze(-1).tolist()
        same = (slots == before[26:].amax(-1))[mask[26:]]
        kept, changed, before = kept + int(same.sum()), changed + int((~same).sum()), seats_now.clone()
    assert changed > 2 * kept, "slots are drawn anew"


def test_every_arena_meets_every_slot_on_both_sides_about_equally():
    """With chances of 1/6 each, counts are binomial; five deviations are exceeded once in two million."""
    state, episodes = arenas(12), 1200
    line_up = opponents(state, share=1.0)
    met = torch.zeros(12, 6, 2)
    for mask in masks(12, episodes, 1.1)[1:]:
        line_up.begin(state, mask)
        met[torch.arange(12), line_up.slot_of_arena(), line_up.sides()] += 1
    expected, spread = episodes / 12, 5 * math.sqrt(episodes / 12)
    assert (met - expected).abs().max() < spread
    assert torch.equal(met.sum((1, 2)), torch.full((12,), float(episodes)))


def test_all_permutations_are_as_likely():
    line_up = Opponents(LookupTable(), [Several(3)], 1.0)
    state = arenas(3)
    line_up.bind(state)
    found: Counter[tuple[int, ...]] = Counter()
    for mask in masks(3, 1200, 1.1):
        line_up.begin(state, mask)
        found[tuple(line_up.place.tolist())] += 1
    assert len(found) == 6 and max(abs(n - 200) for n in found.values()) < 5 * math.sqrt(200)


# A share that changes


def shares(count: int) -> list[float]:
    """Shares of 48 arenas, each for some steps; 0 and the most are among them."""
    chance = random.Random(1)
    return [chance.choice([0.0, 0.0, 0.13, 0.25, 0.3, 0.5, 0.5]) for _ in range(count)]


@pytest.mark.parametrize("seats", [2, 4])
def test_the_share_changes_only_where_episodes_begin_and_evenly_over_slots(seats):
    """The reference knows of each arena only with how many arenas per slot its episode began: its opponent plays where its
    place within the slot is below."""
    state = arenas(48, seats)
    line_up = opponents(state, 0.0, most=0.5)
    assert (line_up.slots, line_up.per_slot, line_up.where) == (6, 4, slice(24, 48))
    per_slot = {0.0: 0, 0.13: 1, 0.25: 2, 0.3: 2, 0.5: 4}  # 48 arenas times the share, over 6 slots
    began_with, before = torch.zeros(24, dtype=torch.int64), line_up.seats.clone()
    for share, mask in zip(shares(80), masks(48, 79, 0.3), strict=True):
        line_up.set(share=share)
        line_up.begin(state, mask)
        assert torch.equal(line_up.seats[~mask], before[~mask]), "who drives changes only where an episode begins"
        assert (line_up.seats[:24] == POLICY).all()
        began_with = torch.where(mask[24:], per_slot[share], began_with)
        within = line_up.place % 4
        playing = within < began_with
        for arena, numbers in enumerate(line_up.seats[24:].tolist()):
            slot = int(line_up.place[arena]) // 4
            assert sorted(set(numbers)) == ([POLICY, slot + 1] if playing[arena] else [POLICY])
            assert numbers.count(slot + 1) == (seats // 2 if playing[arena] else 0), "a whole team"
        assert torch.equal(line_up.of_policy(), line_up.seats == POLICY), "the rest is learned from"
        assert line_up.arenas_in_play == 6 * per_slot[share]
        before = line_up.seats.clone()
        if mask.all():
            assert line_up.seats.amax(-1).bincount(minlength=7)[1:].tolist() == [per_slot[share]] * 6
    line_up.begin(state, torch.ones(48, dtype=torch.bool))
    assert line_up.seats.amax(-1).bincount(minlength=7)[1:].tolist() == [per_slot[line_up.share]] * 6


def test_with_all_of_its_room_it_is_the_line_up_of_before_bit_for_bit():
    """Also after a time with another share, because places are exchanged all the while."""
    state = arenas(48)
    plain, roomy = opponents(state), opponents(state, 0.25, most=0.5)
    steps = masks(48, 40, 0.3)
    for index, mask in enumerate(steps):
        roomy.set(share=0.25 if index < 20 else 0.5)
        for line_up in (plain, roomy):
            line_up.begin(state, mask)
        for name in ("place", "rows", "games", "void"):
            assert torch.equal(getattr(plain, name), getattr(roomy, name)), name
        assert index >= 20 or not torch.equal(plain.seats, roomy.seats)
    for line_up in (plain, roomy):
        line_up.begin(state, torch.ones(48, dtype=torch.bool))
    assert torch.equal(plain.seats, roomy.seats)


class Asked(Idle):
    """Counts how often it is asked to drive."""

    times = 0

    def drive(self, state: GameState, chosen: Tensor) -> Tensor:
        self.times += 1
        return super().drive(state, chosen)


def test_nobody_is_asked_while_nobody_plays():
    state, everywhere = arenas(12), torch.ones(12, dtype=torch.bool)
    player = Asked()
    line_up = Opponents(LookupTable(), [player], 0.5, most=0.5)
    line_up.bind(state)
    parsed = torch.full((12, 2, 8), -1.0)
    line_up.begin(state, everywhere)
    assert (line_up.drive(parsed, parsed) == 0.0).any() and player.times == 1
    line_up.set(share=0.0)
    line_up.begin(state, torch.arange(12) < 9)
    assert (line_up.drive(parsed, parsed) == 0.0).any() and player.times == 2, "games that have begun go on"
    line_up.begin(state, torch.arange(12) >= 9)
    assert torch.equal(line_up.drive(parsed, parsed), parsed) and player.times == 2
    line_up.set(share=0.5)
    line_up.begin(state, everywhere)
    assert (line_up.drive(parsed, parsed) == 0.0).any() and player.times == 3


def test_a_share_beyond_its_room_is_refused_and_the_last_one_stays():
    line_up = opponents(arenas(48), 0.25, most=0.5)
    for share in (0.51, -0.1, math.nan):
        with pytest.raises(UserError, match=r"0\.5 are set aside for them"):
            line_up.set(share=share)
    assert line_up.share == 0.25 and int(line_up.in_play) == 2


def test_a_slot_drives_the_cars_of_its_seats():
    state = arenas(30, 4)
    line_up = opponents(state)
    for mask in masks(30, 10, 0.4):
        line_up.begin(state, mask)
        controls = line_up.drive(torch.full((30, 4, 8), -1.0), torch.zeros(30, 4, 8))
        wanted = torch.tensor([-1.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.0])[line_up.seats]
        assert torch.equal(controls, wanted.unsqueeze(-1).expand(30, 4, 8))


def test_begin_count_exchange_and_another_share_have_no_host_sync():
    state = arenas(30)
    line_up = opponents(state)
    mask = masks(30, 1, 0.5)[1]
    with NoHostSync():
        line_up.begin(state, mask)
        line_up.count(mask)
        line_up.exchange(2, 0.9)
        line_up.set(share=0.2)
        line_up.clear_results()


# Results


class SlowCount:
    """The reference: every game on its own, with Python's numbers."""

    def __init__(self, line_up: Opponents, inverted: bool = False) -> None:
        self.line_up, self.first, self.inverted = line_up, line_up.where.start, inverted
        self.results = [[0, 0, 0] for _ in range(line_up.slots)]
        self.void: set[int] = set()

    def count(self, ended: Tensor, score: Tensor, seats: Tensor, team: Tensor) -> None:
        """`seats` and `team` [E, C] are those of the episode that ended."""
        for arena in ended.nonzero().squeeze(-1).tolist():
            if arena < self.first:
                continue
            drivers = seats[arena].tolist()
            if not any(drivers):
                self.void.discard(arena)
                continue
            opponent = next(seat for seat, number in enumerate(drivers) if number > 0)
            against = int(team[arena, opponent]) ^ self.inverted
            lead = int(score[arena, 1 - against]) - int(score[arena, against])
            if arena not in self.void:
                self.results[drivers[opponent] - 1][WON if lead > 0 else LOST if lead < 0 else DRAWN] += 1
            self.void.discard(arena)

    def exchange(self, slot: int, seats: Tensor) -> None:
        self.void |= {arena for arena, drivers in enumerate(seats.tolist()) if slot + 1 in drivers}


@pytest.mark.parametrize(("seats", "share"), [(2, 0.5), (6, 0.5), (4, 0.3)])
def test_games_are_counted_as_by_hand_and_those_of_exchanged_opponents_are_not(seats, share):
    """With a share of 0.3 nobody plays in a third of the arenas that are set aside."""
    state = arenas(40, seats)
    line_up = opponents(state, share, most=0.5)
    slow, wrong = SlowCount(line_up), SlowCount(line_up, inverted=True)
    line_up.begin(state, torch.ones(40, dtype=torch.bool))
    chance, voided = random.Random(0), 0
    generator = torch.Generator().manual_seed(0)
    for mask in masks(40, 80, 0.2)[1:]:
        state.game.score.copy_(torch.randint(0, 3, (40, 2), generator=generator))
        if chance.random() < 0.2:
            slot = chance.randrange(1, 5)
            line_up.exchange(slot, 0.5)
            for each in (slow, wrong):
                each.exchange(slot, line_up.seats)
        voided += len(slow.void)
        line_up.count(mask)
        for each in (slow, wrong):
            each.count(mask, state.game.score, line_up.seats, state.cars.team)
        state.game.score[mask] = 0
        line_up.begin(state, mask)
        assert line_up.results.tolist() == slow.results
    assert voided and all(min(row) > 0 for row in slow.results) and slow.results != wrong.results
    line_up.clear_results()
    assert not line_up.results.any()


def test_an_episode_that_was_not_seen_from_its_beginning_counts_for_nobody():
    """Such are those in which a resumed run gets another line-up."""
    state, everywhere = arenas(12), torch.ones(12, dtype=torch.bool)
    line_up = opponents(state, share=1.0)
    state.game.tick.fill_(30)
    line_up.begin(state, everywhere)
    line_up.count(everywhere)
    assert not line_up.results.any()
    state.game.tick.zero_()
    line_up.begin(state, everywhere)
    line_up.count(everywhere)
    assert line_up.results.tolist() == [[0, 2, 0]] * 6


def test_what_cannot_be_is_refused():
    for blue, orange in ((1, 0), (2, 1)):
        state = GameState.empty(12, blue + orange)
        state.cars.team[:, blue:] = 1
        with pytest.raises(UserError, match=f"equally many cars, not {blue}v{orange}"):
            opponents(state)
    line_up = opponents(arenas(12))
    with pytest.raises(UserError, match="there is no slot 6"):
        line_up.exchange(6, 0.5)
    with pytest.raises(UserError, match=r"Idle.*is no frozen policy"):
        line_up.exchange(0, 0.5)


# In an environment


class SeenGoal(Goal):
    """Keeps who scored, before the arena begins anew."""

    def __call__(self, state: GameState, previous: GameState, events: Events) -> Tensor:
        self.scored = state.game.goal.clone()
        return super().__call__(state, previous, events)


def config(simulator: str, size: int) -> EnvConfig:
    """Balls fly at goals, so that many are scored."""
    return load_config("rocket-1v1", [
        f"env.rocket.simulator={simulator}", "env.count=24", "env.groups=2", f"env.rocket.blue={size}",
        f"env.rocket.orange={size}", f"env.workers={2 if simulator == 'rocketsim' else 0}",
        "env.rocket.endings={goal: {}, time_out: {seconds: 2}}", "env.rocket.starts={save: 1.0}",
        "env.rocket.observation={advanced_obs_plus: {team_size: 3}}",
    ]).env


@pytest.mark.parametrize(("simulator", "size"), [("warp", 1), ("warp", 2), ("warp", 3), ("rocketsim", 1)])
def test_results_in_an_environment_are_those_of_its_goals(simulator, size):
    env, line_ups = environment(config(simulator, size), lambda task: Opponents(task.action, [Idle(), Several(3)], 0.7))
    for task in env.tasks:
        task.endings._parts["goal"] = task.endings._modules["goal"] = task.endings._others["goal"] = SeenGoal()
    env.reset(0)
    references = [SlowCount(line_up) for line_up in line_ups]
    nothing = torch.full((env.num_rows,), 8)
    for _ in range(70):
        seats = [line_up.seats.clone() for line_up in line_ups]
        step = env.step(nothing)
        ended = (step.terminated | step.truncated).view(24, -1)[:, 0]
        assert torch.equal(step.active.view(24, -1), torch.cat(seats) == POLICY)
        for index, (shard, reference) in enumerate(zip(env._shards, references, strict=True)):
            scored = shard.task.endings["goal"].scored.unsqueeze(-1) == torch.arange(2)
            reference.count(ended[12 * index:12 * index + 12], scored, seats[index], shard.state.cars.team)
    for line_up, reference in zip(line_ups, references, strict=True):
        assert line_up.results.tolist() == reference.results
    total = torch.stack([line_up.get_buffer("results") for line_up in line_ups]).sum(0)
    assert (total.sum(0)[[WON, LOST]] > 0).all()
    env.close()
