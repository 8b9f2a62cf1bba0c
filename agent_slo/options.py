"""The options every command shares, and what they lead to: the data folder and the configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agent_slo.config import LoadedConfig, load_config
from metrics.settings import parse_duration

if TYPE_CHECKING:
    from metrics.slo.objective import Objective

DEFAULT_DATA = Path("agent-slo-data")

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Place:
    """Where a command works: the data folder, and the configuration file if one was named."""

    data: Path
    config_file: Path | None
    stated: bool
    """Whether the user named the data folder."""

    def config(self) -> LoadedConfig:
        """Read the configuration. Raises `CommandError` naming file and line."""
        return load_config(self.config_file, self.data)

    def objectives(self) -> list[Objective]:
        """The configured objectives, else the packaged ones. Raises `CommandError` or `OpenSLOError`."""
        from metrics.openslo import default_objectives, load

        loaded = self.config()
        files, unknown = loaded.objective_files(), loaded.config.unknown_policy()
        return load(files, unknown=unknown) if files else default_objectives(unknown)


def common(command: Command) -> Command:
    """Add `--data` and `--config`; the command receives them as its first argument, a `Place`.

    Both may also stand before the command's name, as in `agent-slo --data DIR report`.
    """

    @click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Data folder.")
    @click.option(
        "--config", "config_file", type=click.Path(path_type=Path, dir_okay=False), help="Settings file."
    )
    @click.pass_context
    @wraps(command)
    def with_place(
        context: click.Context, /, data: Path | None, config_file: Path | None, **rest: Any
    ) -> Any:
        outer: dict[str, Path | None] = context.find_root().obj or {}
        data = data or outer.get("data")
        place = Place(data or DEFAULT_DATA, config_file or outer.get("config_file"), stated=data is not None)
        return command(place, **rest)

    return with_place  # type: ignore[return-value]


class Moment(click.ParamType[datetime]):
    """A UTC moment: an ISO date or time, or `7d` for that long ago. Gives a naive UTC `datetime`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read the text; fails with the accepted forms."""
        if isinstance(value, datetime):
            return value
        text = str(value).strip()
        now = datetime.now(UTC).replace(tzinfo=None)
        if text.lower() == "now":
            return now
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            try:
                length: timedelta = parse_duration(text)
            except ValueError:
                self.fail(f"{text!r} is no time; write 2026-11-28, 2026-11-28T14:00Z or 7d (ago)", param, ctx)
            return now - length
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment


as_of_option = click.option("--as-of", type=Moment(), help="Decide as if it were this moment (UTC).")
since_option = click.option(
    "--since", type=Moment(), help="Only what started since: a time, or 7d for a week ago."
)
