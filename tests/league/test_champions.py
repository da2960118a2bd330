"""The champion that ships is found by its name wherever a policy is; one is packed in 16 bits, with a card from its games."""
from __future__ import annotations

import shlex
import subprocess
import tomllib
from itertools import product
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import wavedash
from wavedash import champions
from wavedash.assembly import make_policy
from wavedash.champions.card import read_stages
from wavedash.champions.pack import LARGEST, card_of, pack
from wavedash.cli.app import app
from wavedash.config_file import dump_config, load_config
from wavedash.envs.kinds import kind_of
from wavedash.errors import UserError
from wavedash.league.card import Against, PlayingCard
from wavedash.league.frozen import FrozenPolicy
from wavedash.league.games import Game, GamesFile
from wavedash.league.players import find_entrant
from wavedash.league.ratings import Results, rate
from wavedash.policy.actor_critic import ActorCritic
from wavedash.ppo.learner_state import policy_fingerprint
from wavedash.preflight import check_run
from wavedash.runs.compatible import IncompatibleError
from wavedash.runs.content import read_policy
from wavedash.runs.initial import initialize, with_absolute_paths
from wavedash.runs.plain import to_json
from wavedash.runs.policy_folder import PolicyFolder
from wavedash.runs.store import CheckpointStore
from wavedash.runs.trust import code_of

ROOT = Path(__file__).parents[2]
STAGES = "- {command: wavedash train rocket-1v1, steps: 700, gpu: none, gpu_minutes: 1.5}\n"
SMALL = ["policy.hidden=[8]", "ppo.normalize_obs=true"]
CPU = torch.device("cpu")


# --- the champion that ships -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["champion", "champion-1v1"])
def test_it_is_found_by_name_wherever_a_policy_is(name):
    run = wavedash.load_run(name)
    assert run.path == ROOT / "wavedash" / "champions" / "1v1"
    assert run.config.env.rocket.blue == 1, "its configuration needs no --trust"
    stored = load_file(run.path / "policy.safetensors")
    assert all(torch.equal(x, stored[key].float()) for key, x in wavedash.load_policy(name).policy.named_parameters())
    entrant = find_entrant(name)
    assert isinstance(entrant.player(), FrozenPolicy) and entrant.name == PlayingCard.read(run.path).name


def test_its_configuration_names_no_code_and_its_files_are_small_and_in_16_bits():
    files = [file for file in champions.FOLDER.glob("*/*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < LARGEST
    for mode in [*champions.modes(), *champions.walkers()]:
        folder = champions.FOLDER / mode
        assert sorted(file.name for file in folder.iterdir()) == [
            "card.yaml", "config.yaml", "policy.safetensors", "state.json"]
        config = load_config(str(folder / "config.yaml"))
        assert not list(code_of(config)) and config.init is None
        assert "/work" not in "".join((folder / name).read_text() for name in ("card.yaml", "config.yaml", "state.json"))
        policy, _ = read_policy(PolicyFolder(folder))
        stored = load_file(folder / "policy.safetensors")
        assert {stored[name].dtype for name, _ in policy.named_parameters()} == {torch.float16}
        card = card_of(mode).read(folder)
        assert card.parameters == sum(x.numel() for x in policy.parameters())
        assert card.name == f"champion-{mode}@{card.steps}" and PolicyFolder(folder).step == card.steps


def test_a_wheel_has_it():
    """Hatch takes every file of the package that git does not ignore."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["wavedash"]}
    try:
        ignored = subprocess.run(["git", "check-ignore", "--no-index", *champions.FOLDER.glob("*/*")], cwd=ROOT,
                                 capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no git here")
    assert ignored.returncode != 0 and ignored.stdout == "", "0: some are ignored"


def test_a_champion_that_does_not_ship_is_refused_with_those_that_do():
    with pytest.raises(UserError, match=r"^no champion for 3v3 ships with this version; there is champion-1v1(, |$)"):
        wavedash.load_run("champion-3v3")
    with pytest.raises(UserError, match="no champion for 2v2 ships"):
        find_entrant("champion+chaser", size=2)
    with pytest.raises(UserError, match="no champion for 2v2 ships"):
        check_run(load_config("rocket-2v2", ["init=champion"]))
    with pytest.raises(UserError, match="no checkpoint found at"):
        wavedash.load_run("./champion")  # a path, not a name


def test_a_run_begins_with_it_and_records_its_name():
    """With other networks it is refused with the overrides that fit, and with those it does."""
    options = ["init=champion", "policy.hidden=[3]"]
    hidden = wavedash.load_policy("champion").policy.config.hidden
    with pytest.raises(IncompatibleError) as told:
        check_run(load_config("rocket-1v1", options))
    assert f"\n  policy.hidden: there {hidden}, here [3]\n" in str(told.value)
    fits = shlex.split(str(told.value).rpartition("To make it fit, add: ")[2])
    config = load_config("rocket-1v1", [*options, *fits])
    policy = make_policy(kind_of(config.env).spaces(config.env, CPU), config)
    assert initialize(policy, config).path == champions.FOLDER / "1v1"
    expected = wavedash.load_policy("champion").policy.state_dict()
    assert all(torch.equal(x, expected[name]) for name, x in policy.state_dict().items())
    assert with_absolute_paths(config).init == "champion"


def test_in_larger_teams_it_is_refused_without_options_that_could_not_work():
    """Its observation has no room for four cars, so no override makes it fit."""
    with pytest.raises(IncompatibleError) as told:
        check_run(load_config("rocket-2v2", ["init=champion-1v1"]))
    assert "env.rocket.observation: there " in str(told.value) and "To make it fit" not in str(told.value)
    assert str(told.value).endswith("train in teams of its size, or begin without init")


def test_a_script_is_nothing_to_begin_with():
    with pytest.raises(UserError, match=r"init=chaser: no checkpoint found .*\n.*Scripts such as the chaser have no weights"):
        check_run(load_config("rocket-1v1", ["init=chaser"]))


def test_its_card_is_shown(capsys):
    assert app(["champion", "show"], standalone_mode=False) is None
    assert capsys.readouterr().out.startswith(PlayingCard.read(champions.FOLDER / "1v1").name)


# --- packing ---------------------------------------------------------------------------------------------------------


def trained(folder: Path, *overrides: str, scale: float = 1.0) -> ActorCritic:
    """Writes a policy folder with made-up weights and statistics, and returns the policy."""
    config = load_config("rocket-1v1", [*SMALL, *overrides])
    policy = make_policy(kind_of(config.env).spaces(config.env, CPU), config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for x in policy.parameters():
            x.copy_(scale * torch.randn(x.shape, generator=generator))
        for buffer in policy.buffers():
            if buffer.is_floating_point():
                buffer.copy_(torch.rand(buffer.shape, generator=generator, dtype=torch.float64) + 0.123456789)
    folder.mkdir()
    (folder / "config.yaml").write_text(dump_config(config))
    (folder / "state.json").write_text(to_json({"steps": 7, "fingerprint": policy_fingerprint(policy)}))
    save_file(policy.state_dict(), folder / "policy.safetensors")
    return policy


@pytest.fixture
def stages(tmp_path: Path) -> Path:
    (tmp_path / "training.yaml").write_text(STAGES * 2)
    return tmp_path / "training.yaml"


def test_a_packed_policy_is_the_same_but_for_the_last_bits_of_its_weights(tmp_path, stages):
    policy = trained(tmp_path / "policy")
    card = pack(str(tmp_path / "policy"), "1v1", stages, tmp_path / "champions")
    packed, _ = read_policy(PolicyFolder(tmp_path / "champions" / "1v1"))
    before, after = policy.state_dict(), packed.state_dict()
    weights = {name for name, _ in policy.named_parameters()}
    assert weights < before.keys(), "there are statistics too"
    for name, x in before.items():
        assert torch.equal(after[name], x.half().float() if name in weights else x), name
        assert after[name].dtype == x.dtype
    assert policy_fingerprint(packed) == policy_fingerprint(policy)
    assert (card.name, card.steps, card.gpu_minutes) == ("champion-1v1@1400", 1400, 3.0)
    packed_into = tmp_path / "champions" / "1v1"
    assert PlayingCard.read(packed_into) == card and PolicyFolder(packed_into).step == 1400


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_policy_folder_may_hold_either_kind_of_16_bits(dtype, tmp_path):
    policy = trained(tmp_path / "policy")
    weights = {name for name, _ in policy.named_parameters()}
    stored = {name: x.to(dtype) if name in weights else x for name, x in policy.state_dict().items()}
    save_file(stored, tmp_path / "policy" / "policy.safetensors")
    read = wavedash.load_policy(tmp_path / "policy").policy
    assert all(torch.equal(x, stored[name].float()) for name, x in read.named_parameters())


def test_a_checkpoint_without_its_configuration_is_refused(tmp_path, stages):
    config = load_config("rocket-1v1", SMALL)
    spaces = kind_of(config.env).spaces(config.env, CPU)
    policy = make_policy(spaces, config)
    CheckpointStore(tmp_path / "copied").save(7, {"policy": dict(policy.state_dict())},
                                              {"fingerprint": policy_fingerprint(policy)}, {})
    with pytest.raises(UserError, match=r"there is no .*config\.yaml, which says what environment to use"):
        pack(str(tmp_path / "copied"), "1v1", stages, tmp_path / "champions")


def test_a_policy_with_memory_is_packed_too(tmp_path, stages):
    policy = trained(tmp_path / "policy", "policy.memory={kind: gru, size: 4}")
    pack(str(tmp_path / "policy"), "1v1", stages, tmp_path / "champions")
    packed, _ = read_policy(PolicyFolder(tmp_path / "champions" / "1v1"))
    assert all(torch.equal(x.half().float(), y) for x, y in zip(policy.parameters(), packed.parameters(), strict=True))


@pytest.mark.parametrize(("mode", "overrides", "scale", "message"), [
    ("2v2", (), 1.0, "was trained in 1v1, so it cannot be the champion of 2v2"),
    ("1v2", (), 1.0, "'1v2' is no size of teams"),
    ("1v1", ("env.rocket.rewards={tests.runs.own_code:Own: 1}",), 1.0, r"names code .*tests\.runs\.own_code:Own"),
    ("1v1", (), 1e6, "weights that fp16 has no room for"),
    ("1v1", ("env.rocket.blue=2", "rating=null"), 1.0, "was trained in 2v1"),
])
def test_what_cannot_ship_is_refused(mode, overrides, scale, message, tmp_path, stages):
    trained(tmp_path / "policy", scale=scale)
    (tmp_path / "policy" / "config.yaml").write_text(dump_config(load_config("rocket-1v1", [*SMALL, *overrides])))
    with pytest.raises(UserError, match=message):
        pack(str(tmp_path / "policy"), mode, stages, tmp_path / "champions")
    assert not (tmp_path / "champions").exists(), "nothing was written"


def test_champions_that_are_too_large_together_are_refused(tmp_path, stages, monkeypatch):
    trained(tmp_path / "policy")
    for mode, size in (("2v2", 10_000), ("1v1", 10**6)):  # its own older version does not count
        (tmp_path / "champions" / mode).mkdir(parents=True)
        (tmp_path / "champions" / mode / "policy.safetensors").write_bytes(bytes(size))
    whole = sum(file.stat().st_size for file in (tmp_path / "policy").iterdir())
    monkeypatch.setattr("wavedash.champions.pack.LARGEST", 10_000 + whole // 4)
    with pytest.raises(UserError, match=r"all champions together have [\d,]+ bytes; at most [\d,]+ can ship"):
        pack(str(tmp_path / "policy"), "1v1", stages, tmp_path / "champions")
    monkeypatch.setattr("wavedash.champions.pack.LARGEST", 10_000 + whole)
    pack(str(tmp_path / "policy"), "1v1", stages, tmp_path / "champions")


@pytest.mark.parametrize(("text", "message"), [
    ("[]", "the list is empty"), ("- {command: x}", r"0\.steps is missing"), ("- [", "does not say how the policy was trained"),
])
def test_how_it_was_trained_must_be_said(text, message, tmp_path):
    (tmp_path / "training.yaml").write_text(text)
    with pytest.raises(UserError, match=message):
        read_stages(tmp_path / "training.yaml")


# --- the card --------------------------------------------------------------------------------------------------------


def a_card(name: str = "champion-1v1@1400") -> PlayingCard:
    return PlayingCard.model_validate({"name": name, "mode": "1v1", "parameters": 1, "training": [
        {"command": "wavedash train rocket-1v1", "steps": 1400, "gpu": "none", "gpu_minutes": 3}]})


def played(simulator: str, blue: str, orange: str, won: int, drawn: int, lost: int, size: int = 1) -> list[Game]:
    """Games with these results for blue."""
    goals = [(1, 0)] * won + [(0, 0)] * drawn + [(0, 1)] * lost
    return [Game("2026-11-16T15:04:05Z", 0, blue, orange, size, *result, 9.0, simulator, 1) for result in goals]


def games_of(own: str) -> list[Game]:
    games = []
    for simulator, more in (("rocketsim", 0), ("warp", 5)):
        games += played(simulator, own, "chaser", 40 + more, 3, 2) + played(simulator, "chaser", own, 1, 4, 50)
        games += played(simulator, "rung", own, 30, 5, 20) + played(simulator, "rung", "chaser", 60, 0, 3)
    return games


def test_ratings_and_shares_follow_from_the_games(tmp_path):
    own = a_card().name
    GamesFile(tmp_path / "games.csv").add([*games_of(own), *played("warp", own, "chaser", 0, 0, 99, size=2)])
    card = a_card().with_games(GamesFile(tmp_path / "games.csv").read())
    card.write(tmp_path)
    card = PlayingCard.read(tmp_path)
    assert list(card.play) == ["rocketsim", "warp"]
    for simulator, more in (("rocketsim", 0), ("warp", 5)):
        play, games = card.play[simulator], [game for game in games_of(own) if game.simulator == simulator]
        rating = rate(Results.of(games))[own]
        assert (play.rating, play.interval) == (round(rating.value, 1), [round(rating.low, 1), round(rating.high, 1)])
        assert list(play.against) == ["rung", "chaser"], "the strongest first"
        chaser, rung = play.against["chaser"], play.against["rung"]
        assert (chaser.won, chaser.drawn, chaser.lost) == (90 + more, 7, 3)
        assert chaser.goal_share == round((90 + more) / (93 + more), 4)
        assert (rung.won, rung.drawn, rung.lost) == (20, 5, 30)
        assert rung.interval[0] < rung.goal_share == 0.4 < rung.interval[1]
    text = str(card)
    assert "1,400 steps in 3.0 GPU minutes" in text and "40.0 % (" in text and "wavedash train rocket-1v1\n" in text


def test_the_card_is_written_by_the_command(tmp_path, monkeypatch, capsys, stages):
    monkeypatch.setattr(champions, "FOLDER", tmp_path / "champions")
    trained(tmp_path / "policy")
    pack(str(tmp_path / "policy"), "1v1", stages, tmp_path / "champions")
    GamesFile(tmp_path / "games.csv").add(games_of("champion-1v1@1400"))
    for option, text in (("--stochastic", "sampled their actions"), ("--deterministic", "took their likeliest actions")):
        app(["champion", "card", "1v1", "--games", str(tmp_path / "games.csv"), option], standalone_mode=False)
        said = capsys.readouterr().out
        assert "rocketsim: rating" in said and text in said
    assert set(PlayingCard.read(tmp_path / "champions" / "1v1").play) == {"rocketsim", "warp"}


def test_games_of_others_make_no_card():
    with pytest.raises(UserError, match=r"no 1v1 games of champion-1v1@1400 in this file: it holds those of a, chaser"):
        a_card().with_games(played("warp", "a", "chaser", 1, 0, 1))


def test_without_a_goal_there_is_no_share():
    record = Against.of(0, 10, 0)
    assert record.goal_share is None and record.interval == [0.0, 1.0]
    card = a_card().with_games([*played("warp", a_card().name, "chaser", 0, 10, 0)])
    assert "no goals" in str(card)


def test_every_side_and_result_is_counted_once():
    """All nine combinations of goals up to 2, from both sides."""
    own, games = a_card().name, []
    for mine, theirs in product(range(3), repeat=2):
        games.append(Game("", 0, own, "chaser", 1, mine, theirs, 1.0, "warp", 1))
        games.append(Game("", 0, "chaser", own, 1, theirs, mine, 1.0, "warp", 1))
    record = a_card().with_games(games).play["warp"].against["chaser"]
    assert (record.won, record.drawn, record.lost) == (6, 6, 6)


def test_a_damaged_card_is_named(tmp_path):
    (tmp_path / "card.yaml").write_text("name: 3\n")
    with pytest.raises(UserError, match=r"card\.yaml is no card of a champion"):
        PlayingCard.read(tmp_path)
    with pytest.raises(UserError, match="cannot read"):
        PlayingCard.read(tmp_path / "nowhere")
