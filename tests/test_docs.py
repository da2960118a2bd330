"""The instructions of the pages in docs/ work."""
from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.one_process import Job, run_jobs
from tests.web.serving import Server
from wavedash.bench.parity.scenes import SCENES
from wavedash.config import RunConfig
from wavedash.config_file import _option_keys, load_config
from wavedash.rocket.names import shipped

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize(("page", "trainings"), [("own-environment", 3), ("export", 1), ("diagnose", 0), ("from-sb3", 1),
                                                 ("listeners", 0), ("debug", 2), ("memory", 0), ("distillation", 3),
                                                 ("imitation", 3)])
def test_a_page_can_be_followed(page: str, trainings: int, tmp_path: Path) -> None:
    """Its files are written, its commands and its Python are run; only the training is shortened."""
    whole = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    jobs: list[Job] = []
    trained = 0
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", whole, re.MULTILINE | re.DOTALL):
        if named := re.match(r"# (\S+\.\w+)\n", text):
            assert not any(named[1] in job for job in jobs if isinstance(job, dict)), "a module is imported only once"
            jobs.append({named[1]: text})
            continue
        commands = [] if language == "python" else [shlex.split(line)[1:] for line in text.splitlines()]
        for command in commands:
            if command[0] == "train":
                trained += 1
                command += [] if "--smoke" in command else ["total_steps=2000"]
        jobs += [text] if language == "python" else commands
    assert trained == trainings
    run_jobs(jobs, tmp_path)


@pytest.mark.slow
def test_the_page_about_walking_can_be_followed(tmp_path: Path) -> None:
    """Its files are written, its commands and its Python are run, with few robots for a short time; benchmarks are left out."""
    short = {"train": ["total_steps=1000", "env.count=16", "ppo.minibatch_size=192", "ppo.epochs=1", "device=cpu"],
             "eval": ["--episodes", "1", "--seconds", "1"], "render": ["--seconds", "0.2"], "export": ["--episodes", "1"]}
    jobs: list[Job] = []
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", (DOCS / "walking.md").read_text(encoding="utf-8"),
                                     re.MULTILINE | re.DOTALL):
        if named := re.match(r"# (\S+\.\w+)\n", text):
            jobs.append({named[1]: text})
        elif language == "python":
            jobs.append(text)
        elif language == "bash":
            commands = [shlex.split(line, comments=True)[1:] for line in text.splitlines()]
            jobs += [[*words, *short.get(words[0], [])] for words in commands if words[0] != "bench"]
    assert sum(isinstance(job, list) and job[0] == "train" for job in jobs) == 6
    printed = "".join(run_jobs(jobs, tmp_path))
    assert (tmp_path / "walk.gif").exists() and (tmp_path / "walker" / "robot.json").exists() and "stairs_up" in printed


@pytest.mark.slow
def test_the_page_about_adaptation_can_be_followed(tmp_path: Path) -> None:
    """Its commands are run, each shorter; the run that the benchmark names is the one that was trained before."""
    short = {"train": ["total_steps=2000", "env.count=16", "ppo.epochs=1", "device=cpu"],
             "bench": ["--series", "2", "--games", "2", "--seconds", "1"]}
    blocks = re.findall(r"^```bash\n(.*?)^```", (DOCS / "adaptation.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    commands = [shlex.split(line)[1:] for text in blocks for line in text.replace("\\\n", " ").splitlines()]
    assert {words[0] for words in commands} == set(short)
    printed = "".join(run_jobs([[*words, *short[words[0]]] for words in commands], tmp_path))
    assert "the late starter" in printed and "has no memory that outlasts a game: all its games are the same" in printed


@pytest.mark.slow
def test_the_page_about_replays_can_be_followed(tmp_path: Path) -> None:
    """Its commands are run in order, each shorter, and a run begins with its starts. The replays are games of our simulator,
    since those of players cannot be shipped."""
    page = (DOCS / "replays.md").read_text(encoding="utf-8")
    games = """
from pathlib import Path
from wavedash.replays import one_file
from wavedash.replays.generate import as_replay, play
from wavedash.rocket.sim.simulator import WarpSimulator

simulator = WarpSimulator(4, 1, 1)
played = play(simulator, 120, 8, seed=3)
simulator.close()
one_file.read_replay = lambda path: as_replay(played, int(path.stem), 1)[0]
Path("FOLDER").mkdir()
for game in range(4):
    Path(f"FOLDER/{game}.replay").write_text(f"game {game}")
"""
    short = {"import": ["--workers", "0"], "train-inverse": ["--rounds", "1", "--steps", "20"],
             "train": ["total_steps=2000", "env.count=16", "device=cpu"]}
    jobs: list[Job] = [games]
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        if language == "yaml":
            starts = json.dumps(yaml.safe_load(text)["env"]["rocket"]["starts"])
            jobs.append(["train", "rocket-1v1", f"env.rocket.starts={starts}", "rating=null", *short["train"]])
            continue
        commands = [shlex.split(line)[1:] for line in text.splitlines()]
        jobs += [[*words, *short[words[1] if words[0] == "replays" else words[0]]] for words in commands]
    assert [job[1] for job in jobs[1:]] == ["import", "train-inverse", "rocket-1v1", "rocket-1v1"]
    printed = run_jobs(jobs, tmp_path)
    assert "4 files: 4 imported" in printed[1] and "percent right" in printed[2]
    assert (tmp_path / "my-inverse.safetensors").exists() and len([*tmp_path.glob("runs/*/*/metrics.jsonl")]) == 2


@pytest.mark.slow
def test_the_page_about_watching_can_be_followed(tmp_path: Path) -> None:
    """Every `wavedash watch` of it and of the README serves the page until Ctrl-C; runs that it names are short ones."""
    pages = (DOCS / "watch.md").read_text(encoding="utf-8") + (DOCS.parent / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash\n(.*?)^```", pages, re.MULTILINE | re.DOTALL)
    lines = [line for text in blocks for line in text.splitlines() if line.startswith("wavedash ")]
    commands = [shlex.split(line, comments=True)[1:] for line in lines]
    exports = [words for words in commands if words[:2] == ["page", "export"]]
    watched = {tuple(words[1:]) for words in commands if words[0] == "watch"}
    assert ["train", "rocket-1v1", "--page"] in commands and len(exports) == 1 and len(watched) >= 4
    run_jobs([["train", "cartpole", "--smoke", "name=rocket-1v1"], *exports], tmp_path)
    assert (tmp_path / "my-bot.html").stat().st_size > 500_000
    for words in sorted(watched):
        with Server(tmp_path / "runs", *(word.replace("runs/", f"{tmp_path}/runs/") for word in words)) as server:
            assert server.ask("/api/about").status == 200
            assert server.interrupt() == 0, server.errors.read_text()


@pytest.mark.slow
def test_the_pages_about_the_league_recipes_and_team_sizes_can_be_followed(tmp_path: Path) -> None:
    """Their commands and their Python are run in order, with few games, short ones, and a short training."""
    page = "\n".join((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("league", "recipes", "team-sizes"))
    jobs: list[Job] = []
    for language, text in re.findall(r"^```(python|bash)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        lines = [line for line in text.splitlines() if line.startswith("wavedash ")]
        jobs += [text] if language == "python" else [shorter(shlex.split(line, comments=True))[1:] for line in lines]
    assert len(jobs) > 5
    run_jobs(jobs, tmp_path)


@pytest.mark.slow
def test_the_pages_about_the_curriculum_and_a_day_can_be_followed(tmp_path: Path) -> None:
    """Their files are written and their commands run in order, each training once and short."""
    page = "\n".join((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("curriculum", "a-day-of-training"))
    for text in re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        (tmp_path / text.partition("\n")[0].removeprefix("# ")).write_text(text, encoding="utf-8")
    lines = [line for text in re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
             for line in text.splitlines() if line.startswith("wavedash ")]
    jobs: dict[str, list[str]] = {}
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        trains = words[0] == "train"
        named = [word if not word.startswith("runs/") else f"{word}-smoke" for word in words]
        short = ["--smoke", "device=cpu", "rating={every: 500, games: 2, seconds: 1, most: 1}"] if trains else []
        jobs.setdefault(" ".join(words[:2]) if trains else line, [*named, *short])
    assert len(jobs) >= 8
    printed = "".join(run_jobs(list(jobs.values()), tmp_path))
    assert "Phase3-Compete" in printed and "Phase9-Trios" in printed, "all phases were gone through"


def test_what_a_day_begins_with_a_policy_of_the_academy_fits_it() -> None:
    text = (DOCS / "a-day-of-training.md").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if "init=runs/rocket-academy" in line)
    _, _, preset, *overrides = shlex.split(line)
    begun, academy = load_config(preset, overrides), load_config("rocket-academy")
    assert begun.env.rocket is not None and academy.env.rocket is not None
    assert begun.env.rocket.observation == academy.env.rocket.observation
    assert begun.env.rocket.action == academy.env.rocket.action and begun.policy == academy.policy


def test_the_configuration_on_the_page_about_the_league_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", (DOCS / "league.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "my-bot.yaml").write_text(text, encoding="utf-8")
    config = load_config(str(tmp_path / "my-bot.yaml"))
    assert config.opponents is not None and config.rating is not None and config.checkpoint.best_by == "rating"


def shorter(words: list[str]) -> list[str]:
    """The same command with less to compute."""
    command = words[1]
    if command == "train":
        return [*words, "--smoke", "env.count=16", "device=cpu"]
    if command in ("eval", "match", "tournament"):
        kept = [word for n, word in enumerate(words) if "--games" not in words[max(0, n - 1) : n + 1]]
        return [*kept, "--games", "2", *([] if command == "eval" else ["--seconds", "2", "--device", "cpu"])]
    return words


def test_the_tree_of_folders_is_that_of_the_package() -> None:
    """The tree in docs/architecture.md names every folder, by its indentation, and no other."""
    page, root = (DOCS / "architecture.md").read_text(encoding="utf-8"), DOCS.parent
    tree = re.findall(r"^```\n(wavedash/\n.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    path, named = [""] * 9, set()
    for indent, name in re.findall(r"^( *)([\w.-]+/)", tree, re.MULTILINE):
        depth = len(indent) // 2
        path[depth] = name
        named.add("".join(path[: depth + 1]))
    found = {f"{file.parent.relative_to(root).as_posix()}/" for pattern in ("*.py", "*.yaml")
             for file in root.glob(f"wavedash/**/{pattern}")}
    inside = ("wavedash/bench/parity/scenes/", "wavedash/compat/rlgym_ppo/")  # in the line of the folder above them
    assert named == {folder for folder in found if not folder.startswith(inside)} | {"page/", "tests/", "docs/"}


@pytest.mark.parametrize("page", ["details", "simulator", "parity"])
def test_a_page_names_files_that_exist(page: str) -> None:
    text, root = (DOCS / f"{page}.md").read_text(encoding="utf-8"), DOCS.parent
    named = re.findall(r"`([\w/]+\.py)`", text)
    assert len(named) >= (1 if page == "parity" else 16)
    for name in named:
        folders = (".", "wavedash", "wavedash/rocket/sim/**", "tests/**")
        assert any([*root.glob(f"{folder}/{name}")] for folder in folders), f"docs/{page}.md names {name}, which does not exist"


def test_links_lead_to_files_that_exist() -> None:
    root, followed = DOCS.parent, 0
    for page in (root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md", *DOCS.glob("*.md")):
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                followed += 1
                assert (page.parent / target).exists(), f"{page.relative_to(root)} links to {target}, which does not exist"
    assert followed > 50


def test_the_page_about_the_simulator_names_all_files_of_the_simulator() -> None:
    page = (DOCS / "simulator.md").read_text(encoding="utf-8")
    plumbing = {"__init__", "arena", "contacts", "package", "shapes", "simulator"}
    files = {file.stem for file in DOCS.parent.glob("wavedash/rocket/sim/**/*.py")} - plumbing
    assert files == {Path(name).stem for name in re.findall(r"`([\w/]+\.py)`", page)} - {"state", "test_parity_rows"}


@pytest.mark.slow
def test_the_program_on_the_page_about_the_simulator_prints_what_the_page_says(tmp_path: Path) -> None:
    page = (DOCS / "simulator.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    assert run_jobs([blocks["python"]], tmp_path) == [blocks["text"]]
    *_, first, _, second, _, count = shlex.split(blocks["bash"])
    assert {first, second} <= set(SCENES) and int(count) > 0


@pytest.mark.slow
@pytest.mark.parametrize(("page", "module_name", "name", "logged"), [
    ("first-reward", "my_rewards", "my-bot", "reward/fast_touch"), ("first-start", "my_starts", "my-starts", "rollout/reward"),
    ("first-observation", "my_observation", "my-duel", "rollout/reward"),
])
def test_a_page_about_a_first_part_can_be_followed(page: str, module_name: str, name: str, logged: str, tmp_path: Path) -> None:
    """Its file is written, its Python prints what the page says, its YAML names parts that exist."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == ["python", "python", "text", "yaml", "bash"]
    (_, module), (_, code), (_, printed), (_, task), (_, command) = blocks
    assert command == f"wavedash train {name}.yaml\n"
    files = {f"{module_name}.py": module, f"{name}.yaml": task}
    smaller = ["--smoke", "env.count=4", "policy.hidden=[16]"]
    _, of_code, _ = run_jobs([files, code, [*command.split()[1:], *smaller]], tmp_path)
    assert of_code == printed
    metrics = next(tmp_path.glob(f"runs/{name}*/*/metrics.jsonl")).read_text(encoding="utf-8")
    assert logged in metrics, "what each reward paid is logged by its name"


@pytest.mark.parametrize("kind", ["reward", "start"])
def test_the_page_about_a_first_part_lists_all_that_ship(kind: str) -> None:
    page = (DOCS / f"first-{kind}.md").read_text(encoding="utf-8")
    listed = re.findall(rf"^- `(wavedash/(?:rocket/{kind}s/\w+|tasks/{kind}s)\.py)`: ((?:`\w+`,?\s+)+)", page, re.MULTILINE)
    by_file = {name: file for file, found in listed for name in re.findall(r"`(\w+)`", found)}
    classes = shipped(kind)
    assert by_file == {name: c.__module__.replace(".", "/") + ".py" for name, c in classes.items()}


def test_the_page_about_measures_lists_all_that_ship_and_its_file_names_them(tmp_path: Path) -> None:
    page = (DOCS / "measures.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) != []
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(shipped("measure"))
    (text,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "my-bot.yaml").write_text(text, encoding="utf-8")
    rocket = load_config(str(tmp_path / "my-bot.yaml")).env.rocket
    assert rocket is not None and rocket.measures == ["turtle", {"dribble": {"seconds": 3}}]


@pytest.mark.slow
def test_the_page_about_measures_can_be_followed(tmp_path: Path) -> None:
    """Its class is written to its file, and its commands are run with the training shortened."""
    page = (DOCS / "measures.md").read_text(encoding="utf-8")
    (module,) = re.findall(r"^```python\n# my_measures.py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    commands = re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(commands) == 2
    smaller = ["--smoke", "env.count=4", "policy.hidden=[16]"]
    run_jobs([{"my_measures.py": module}, *([*shlex.split(command)[1:], *smaller] for command in commands)], tmp_path)
    logged = "".join(file.read_text(encoding="utf-8") for file in tmp_path.glob("runs/*/*/metrics.jsonl"))
    for name in ("turtle", "dribble", "big_boost"):
        assert f"env/per_minute/{name}_attempts" in logged


def test_the_page_about_stable_baselines3_names_options_that_exist() -> None:
    page = (DOCS / "from-sb3.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:env|policy|ppo|checkpoint|report)\.[a-z_.]+)`", page))
    assert len(named) > 40 and named <= set(_option_keys(RunConfig))
