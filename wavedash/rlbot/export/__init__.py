"""Export of a policy as a bot that RLBot v5 starts: a folder, and the same as a zip."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wavedash.config import RocketConfig
from wavedash.loading import load_run
from wavedash.rlbot.export.check import BotAgreement
from wavedash.rlbot.export.texts import Bot
from wavedash.rlbot.export.write import write_bot, zip_of
from wavedash.rocket.kind import rocket_task


@dataclass(frozen=True)
class ExportedBot:
    """The result; `str()` of it is what `wavedash export rlbot` prints."""

    policy: Path
    folder: Path
    zip: Path
    agreement: BotAgreement

    def __str__(self) -> str:
        found = self.agreement
        lines = [("policy", str(self.policy)), ("bot", str(self.folder / "bot.toml")),
                 ("zip", f"{self.zip} ({self.zip.stat().st_size:,} bytes)"),
                 ("checked", f"{found.decisions:,} decisions on random states beside the trainer: largest difference "
                             f"{found.observation:.1g} of what it sees, {found.choice:.1g} of what it chooses"),
                 ("next", f"python -m pip install -r {self.folder / 'requirements.txt'}, then add the folder to RLBot's GUI; "
                          "docs/rlbot.md")]
        return "\n".join(f"{name:<10}{value}" for name, value in lines)


def export_bot(run: str | Path, out: str | Path, name: str | None = None, developer: str = "Wavedash",
               description: str | None = None, trust: bool = False) -> ExportedBot:
    """Writes the policy of a run as a bot into the folder `out`, and as `out`.zip beside it. `name`: that of the run."""
    loaded, folder = load_run(run, trust=trust), _with_name(Path(out))
    task = rocket_task(loaded.config.env, loaded.path)
    about = description or f"Trained with Wavedash for {', '.join(map(str, task.team_sizes))}."
    bot = Bot(name or loaded.config.name, developer, about, task.hitbox, _tags(task))
    agreement = write_bot(loaded.policy.policy, task, bot, folder, f"{loaded.config.name}@{loaded.source.step}")
    return ExportedBot(loaded.path, folder, zip_of(folder), agreement)


def _with_name(folder: Path) -> Path:
    """The same folder by a path that ends with its name, which the zip beside it gets: `.` and `..` have none."""
    return folder if folder.name not in ("", "..") else folder.resolve()


def _tags(config: RocketConfig) -> tuple[str, ...]:
    """The words of RLBot's GUI for the team sizes that the policy was trained in."""
    largest = {size.larger for size in config.team_sizes}
    return tuple(tag for tag, plays in (("1v1", 1 in largest), ("teamplay", max(largest) > 1)) if plays)
