"""`wavedash match`: who is stronger and how sure that is, for any two players, in either simulator."""
from __future__ import annotations

import json
from itertools import count
from math import inf, isnan, log10
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from tests.league import leagues
from tests.league.commands import policy_folder, trained
from wavedash import champions
from wavedash.cli import app
from wavedash.errors import UserError
from wavedash.evaluate.results import MatchResult, Score
from wavedash.evaluate.shares import Share
from wavedash.league.games import GamesFile
from wavedash.league.match import Comparison, Terms, compare
from wavedash.league.players import distinct_names, find_entrant
from wavedash.league.ratings import Results, elo, rate
from wavedash.rocket.parts import ScriptedPlayer
from wavedash.rocket.players import Chaser, drive_to
from wavedash.rocket.state import BOOST, GameState


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return trained(tmp_path_factory.mktemp("runs"))


def wavedash(*arguments: object) -> None:
    app([str(argument) for argument in arguments], standalone_mode=False)


class Shooter(ScriptedPlayer):
    """A chaser that drives through the ball at its opponents' goal from kick-offs. It knows sides."""

    def controls(self, state: GameState) -> Tensor:
        cars, ball = state.cars, state.ball.position.unsqueeze(1)
        attack = 1.0 - 2.0 * cars.team  # [E, C]: blue attacks toward +Y
        goal = torch.stack([torch.zeros_like(attack), 5120.0 * attack, torch.zeros_like(attack)], -1)
        way = torch.nn.functional.normalize(ball - goal, dim=-1)
        behind = ((cars.position - ball) * way).sum(-1) > 0
        target = torch.where(behind.unsqueeze(-1), ball + 60.0 * way, ball + 900.0 * way)
        controls = drive_to(cars, target)
        controls[..., BOOST] = behind.float()
        return controls


class WronglyMirrored(Shooter):
    """A shooter that believes that it is always blue."""

    def controls(self, state: GameState) -> Tensor:
        seen = state.clone()
        seen.cars.team.zero_()
        return super().controls(seen)


class OneCarOnly(ScriptedPlayer):
    """A script as it is first written: for one car."""

    def controls(self, state: GameState) -> Tensor:
        return torch.zeros(8)


HERE = "tests.league.test_match"


# The games


def test_a_player_against_itself_wins_half_of_the_decided_games() -> None:
    """The negative control: a match that favours a side or the first player would show here."""
    shooter = find_entrant(f"{HERE}:Shooter")
    found = compare(shooter, find_entrant(f"{HERE}:Shooter"), Terms(games=64, seconds=20, simulators=("warp",)))
    score = found.scores["warp"]
    assert score.goal_share.cases >= 16, "an interval of few goals would contain everything"
    assert score.goal_share.interval[0] < 0.5 < score.goal_share.interval[1]
    assert found.second == f"{HERE}:Shooter#2"
    assert found.verdict.startswith("both are the same player, so every difference is chance: the goal share of ")


def test_a_player_that_is_mirrored_wrongly_is_seen() -> None:
    """As orange it shoots at its own goal: half of its games are lost that should be even."""
    first, second = (find_entrant(f"{HERE}:{name}") for name in ("WronglyMirrored", "Shooter"))
    found = compare(first, second, Terms(games=64, seconds=20, simulators=("warp",)))
    assert found.scores["warp"].goal_share.interval[1] < 0.5
    orange = [game for game in found.games if game.orange.endswith("WronglyMirrored")]
    assert len(orange) == 32
    scored, conceded = (sum(goals) for goals in zip(*((game.orange_goals, game.blue_goals) for game in orange), strict=True))
    assert Share(scored, scored + conceded).interval[1] < 0.25


def test_the_same_seed_plays_the_same_games_and_another_seed_others(run) -> None:
    policy, shooter = find_entrant(str(run)), find_entrant(f"{HERE}:Shooter")
    played = [compare(policy, shooter, Terms(games=16, seconds=10, seed=seed, deterministic=False, simulators=("warp",)))
              for seed in (1, 1, 2)]
    first, again, another = (list(found.results["warp"].played) for found in played)
    assert first == again and first != another
    assert {game.seed for game in played[0].games} == {Terms(seed=1).stream}


@pytest.mark.slow
@pytest.mark.parametrize("simulator", ["warp", "rocketsim"])
def test_scripts_need_no_run_and_all_team_sizes_play(simulator) -> None:
    for size in (1, 3):
        found = compare(find_entrant("chaser"), find_entrant("idle"), Terms(2, (simulator,), size, seconds=1))
        assert [(game.size, game.simulator, game.seconds) for game in found.games] == [(size, simulator, 1.0)] * 2


def test_teams_have_one_player_per_car(tmp_path) -> None:
    """The shooter plays with an idle player against two idle ones: it has one car, and that one touches the ball."""
    first, second = find_entrant(f"{HERE}:Shooter+idle"), find_entrant("idle+idle")
    terms = Terms(games=4, seconds=4, simulators=("warp",)).for_entrants([first, second], None)
    assert terms.size == 2
    found = compare(first, second, terms)
    assert found.first == f"{HERE}:Shooter+idle" and found.scores["warp"].touches > 0
    assert found.scores["warp"].opponent_touches == 0


# What is said


def result(scored: int, conceded: int, games: int = 200) -> MatchResult:
    return MatchResult(Score(games, scored, conceded, 3.0, 4.0, 50.0), [], 1, "warp", 0)


@pytest.mark.parametrize(("results", "verdict"), [
    ({"warp": (120, 60)}, "a is stronger: its goal share with 95 % interval is 66.7 % (59.5 to 73.1) in warp\n"),
    ({"warp": (60, 120)}, "b is stronger: the goal share of a with 95 % interval is 33.3 %"),
    ({"warp": (90, 80)},
     "neither is shown to be stronger: the goal share of a with 95 % interval is 52.9 % (45.5 to 60.3) in warp. Four times as "
     "many games make an interval half as wide: --games 800\n"),
    ({"warp": (90, 80), "rocketsim": (80, 90)}, "neither is shown to be stronger in either simulator: the goal share of a"),
    ({"warp": (120, 60), "rocketsim": (110, 60)},
     "a is stronger in both simulators: its goal share with 95 % interval is 66.7 % (59.5 to 73.1) in warp and 64.7 %"),
    ({"warp": (120, 60), "rocketsim": (60, 60)},
     "a is stronger in warp, neither is shown to be stronger in rocketsim: the goal share of a with 95 % interval is 66.7 %"),
    ({"warp": (120, 60), "rocketsim": (60, 120)}, "a is stronger in warp, b is stronger in rocketsim: the goal share of a"),
    ({"warp": (0, 0)}, "neither is shown to be stronger: nobody scored. In longer games somebody may: --seconds 120\n"),
    ({"warp": (120, 60), "rocketsim": (0, 0)},
     "a is stronger in warp, neither is shown to be stronger in rocketsim: the goal share of a with 95 % interval is 66.7 % "
     "(59.5 to 73.1) in warp and undefined (no goals) in rocketsim\n"),
])
def test_the_first_line_says_who_is_stronger_and_how_sure_that_is(results, verdict) -> None:
    found = Comparison("a", "b", Terms(), {name: result(*goals) for name, goals in results.items()})
    assert str(found).startswith(verdict)


def test_the_table_has_a_column_for_each_simulator_and_their_difference() -> None:
    found = Comparison("a", "b", Terms(), {"warp": result(150, 50), "rocketsim": result(199, 0)})
    assert str(found).splitlines()[2:] == [
        "a against b: 1v1, from kick-offs to the first goal or 60 s, half of the games as orange, deterministic",
        "",
        "                warp                        rocketsim",
        "games           200                         200",
        "won-drawn-lost  150 - 0 - 50                199 - 1 - 0",
        "goals           150 : 50                    199 : 0",
        "goal share      75.0 % (68.6 to 80.5)       100.0 % (98.1 to 100.0)",
        "Elo difference  +191 (+135 to +246)         above +686",
        "touches/min     3.0 : 4.0                   3.0 : 4.0",
        "difference      +25.0 points (95 % interval +19.2 to +31.4): more than noise",
    ]


def test_an_elo_difference_is_that_of_the_ratings() -> None:
    value, low, high = elo(Share(300, 400))
    assert value == pytest.approx(400 * log10(3))
    played = result(300, 100, 700)
    games = Results(["a", "b"], *torch.tensor([[[0.0, 300.0], [100.0, 0.0]], [[0.0, 300.0], [300.0, 0.0]]]).double().numpy())
    rating = rate(games, {"b": 0.0})["a"]
    assert rating.value == pytest.approx(value, rel=0.01) and played.score.goalless == 300
    assert (rating.low, rating.high) == pytest.approx((low, high), abs=4.0), "Wald's interval and Wilson's"
    assert elo(Share(5, 5))[0] == inf and elo(Share(0, 5))[0] == -inf and isnan(elo(Share(0, 0))[0])


# The command


@pytest.mark.slow
def test_the_command_plays_a_policy_folder_in_both_simulators_and_keeps_every_game(run, tmp_path, capsys) -> None:
    rung, out = policy_folder(run, tmp_path / "rung"), tmp_path / "games.csv"
    wavedash("match", rung, "chaser", "--games", 3, "--seconds", 1, "--simulator", "both", "--out", out, "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["first"], told["second"], list(told["simulators"])) == ("rung", "chaser", ["warp", "rocketsim"])
    assert {score["games"] for score in told["simulators"].values()} == {4}, "equally many from both sides"
    games = GamesFile(out).read()
    assert [(game.blue, game.orange, game.simulator) for game in games] == [
        (*pair, simulator) for simulator in ("warp", "rocketsim") for pair in (("rung", "chaser"), ("chaser", "rung")) * 2]
    with pytest.raises(UserError, match=r"already has games of rung and chaser in warp with this seed: the same games would "
                                        r"count twice\. Use another seed, such as --seed 2, or another file"):
        wavedash("match", "chaser", rung, "--simulator", "warp", "--out", out)
    wavedash("match", rung, "chaser", "--games", 2, "--seconds", 1, "--simulator", "warp", "--out", out, "--seed", 2)
    assert len(GamesFile(out).read()) == 10 and "rung against chaser: 1v1" in capsys.readouterr().out


@pytest.mark.slow
def test_runs_of_one_name_are_told_apart_by_their_folders(run, tmp_path) -> None:
    other = trained(tmp_path)
    first, second = find_entrant(str(run)), find_entrant(str(other))
    assert first.name == second.name == "rocket-1v1@128"
    assert list(distinct_names([first, second]).values()) == [f"{run.name}@128", f"{other.name}@128"]


@pytest.mark.parametrize(("arguments", "message"), [
    (["chasr", "idle"], r"there is no player 'chasr'; did you mean 'chaser'\? A player is one of"),
    (["chaser", "nowhere/at/all"], r"there is no player 'nowhere/at/all'\."),
    (["chaser", "C:/nowhere"], r"there is no player 'C:/nowhere'\."),
    (["chaser", "C:\\nowhere"], r"there is no player 'C:\\nowhere'\."),
    (["chaser+idle", "chaser", "--size", "1"],
     "chaser\\+idle has 2 players, and a team has 1 car here: name one player for each car, or use --size 2"),
    (["chaser+idle", "chaser+idle+idle"], "chaser\\+idle has 2 players, and a team has 3 cars here"),
    (["chaser", "idle", "--device", "nonsense"], "there is no device 'nonsense': use auto, cpu, cuda, or cuda:1"),
    (["chaser", "idle", "--out", "docs"], "cannot read docs: .*; name a games.csv"),
    (["chaser", "idle", "--out", "pyproject.toml"], "pyproject.toml is no file of games"),
    (["chaser", "idle", "--out", "no/such/folder/games.csv"], "cannot write .*games.csv: .*; name another file with --out"),
])
def test_mistakes_are_named_before_anything_is_played(arguments, message) -> None:
    with pytest.raises(UserError, match=message):
        wavedash("match", *arguments)


def test_a_script_that_answers_for_one_car_only_is_told_what_controls_are() -> None:
    with pytest.raises(UserError, match=rf"player {HERE}:OneCarOnly returned \[8\] as controls, and they are a tensor \[arenas,"
                                        r" cars, 8\], here \[2, 2, 8\]: correct its method `controls`"):
        wavedash("match", f"{HERE}:OneCarOnly", "chaser", "--games", 2)


def test_snapshots_of_a_league_are_versions_of_their_run(tmp_path) -> None:
    """Every run has a step-...: under that name games of different runs would be taken for games of one policy."""
    ours, theirs = (tmp_path / name / "20260101-000000-abcd" for name in ("ours", "theirs"))
    for run in (ours, theirs):
        (run / "checkpoints").mkdir(parents=True)
        (run / "config.yaml").write_text(f"name: {run.parent.name}\n")
    folders = [leagues.policy_folder(run / "league" / "step-000000000007", "policy.hidden=[4]", f"name={run.parent.name}")
               for run in (ours, theirs)]
    assert [find_entrant(str(folder)).name for folder in folders] == ["ours@7", "theirs@7"]
    again = leagues.policy_folder(tmp_path / "new" / "1-ab" / "league" / "step-000000000007", "policy.hidden=[4]",
                                  "name=ours")
    (again.parent.parent / "checkpoints").mkdir()
    (again.parent.parent / "config.yaml").write_text("name: ours\n")
    names = distinct_names([find_entrant(str(folder)) for folder in (folders[0], again)])
    assert list(names.values()) == ["20260101-000000-abcd@7", "1-ab@7"]
    elsewhere = leagues.policy_folder(tmp_path / "mine", "policy.hidden=[4]", "name=ours")
    assert find_entrant(str(elsewhere)).name == "mine", "whoever gave a folder a name of its own is called by it"


def test_a_folder_cannot_take_the_name_of_the_champion_or_of_a_version_of_a_run(tmp_path) -> None:
    """Its games would count for that one. The champion itself keeps its name, by whichever path it is found."""
    shipped = find_entrant("champion")
    assert shipped.name == f"champion-1v1@{shipped.run.source.step}"
    assert find_entrant(str(champions.FOLDER / "1v1")).name == shipped.name
    (tmp_path / "link").symlink_to(champions.FOLDER)
    assert find_entrant(str(tmp_path / "link" / "1v1")).name == shipped.name
    for name in (shipped.name, "ours@7", "chaser"):
        folder = leagues.policy_folder(tmp_path / name, "policy.hidden=[4]")
        assert find_entrant(str(folder)).name == str(folder)


def test_the_champion_is_the_one_for_the_teams_of_the_other_policy(tmp_path) -> None:
    theirs = leagues.policy_folder(tmp_path / "theirs", "policy.hidden=[4]", preset="rocket-2v2")
    for players in (["champion", theirs], [theirs, "champion"]):
        with pytest.raises(UserError, match="no champion for 2v2 ships"):
            wavedash("match", *players)


@pytest.mark.slow
def test_a_policy_is_refused_in_teams_that_it_cannot_observe(run) -> None:
    with pytest.raises(UserError, match=r"the policy of .* cannot play Rocket League 2v2, its observation has no room"):
        wavedash("match", run, "chaser", "--size", 2, "--games", 2)


def test_progress_is_told_on_stderr_every_half_minute(monkeypatch, capsys) -> None:
    clock = count(step=20)  # every look at the clock is twenty seconds later
    monkeypatch.setattr("wavedash.cli.progress.time", SimpleNamespace(monotonic=lambda: next(clock)))
    wavedash("match", "chaser", "idle", "--games", 2, "--seconds", 1, "--simulator", "warp")
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "chaser against idle in warp: 0 % of the games, 40 s" and len(told) == 8, "16 steps of the arenas"
    wavedash("eval", "champion", "--against", "chaser", "--games", 2)
    assert capsys.readouterr().err.startswith("champion against chaser in warp: 0 % of the games, 40 s\n")


def test_a_player_of_the_shipped_ones_is_called_by_its_name() -> None:
    assert find_entrant("Chaser").name == "chaser" and isinstance(find_entrant("Chaser").player(), Chaser)
