"""The running collector of a data folder, found by its door.json."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from agent_slo.errors import CommandError
from agent_slo.reading import has_view, rows
from collector.reader import open_reader

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class LiveDoor:
    """A collector that answers: its process, and where its OTLP/HTTP receiver listens (host:port)."""

    pid: int
    http: str
    address: str


def live_door(data: Path) -> LiveDoor | None:
    """The collector of this folder, or None when none answers (a stale door.json is no collector)."""
    try:
        found: dict[str, Any] = json.loads((data / "door.json").read_text(encoding="utf-8"))
        door = LiveDoor(int(found["pid"]), str(found["http"]), str(found["door"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        raise CommandError(f"{data / 'door.json'}: run this as the user that runs the collector") from error
    except (ValueError, KeyError, TypeError):
        return None
    if not psutil.pid_exists(door.pid) or health(door) is None:
        return None
    return door


def health(door: LiveDoor) -> dict[str, Any] | None:
    """What /healthz says, or None when nothing answers there."""
    try:
        answer = httpx.get(f"{door.address}/healthz", timeout=5.0, trust_env=False)
        found: dict[str, Any] = answer.json()
    except (httpx.HTTPError, ValueError):
        return None
    return found


def wait_until_derived(data: Path) -> None:
    """Return when everything stored by now is derived and the objectives are evaluated over it.

    Raises `CommandError` when the collector stops or its derivation fails.
    """
    with open_reader(data) as reader:
        wanted = reader.sql("SELECT coalesce(max(seq), 0) AS seq FROM spans").column("seq")[0].as_py()
        while True:
            if has_view(reader, "slo_status"):
                state = rows(reader, "pipeline")
                if state and state[0]["derived_seq"] >= wanted and state[0]["evaluated"]:
                    return
            door = live_door(data)
            if door is None:
                raise CommandError(
                    f"the collector of {data} stopped before everything was derived; start it again"
                )
            failure = (health(door) or {}).get("background_failure")
            if failure:
                raise CommandError(f"the collector of {data} cannot derive: {failure}; its log says more")
            time.sleep(POLL_SECONDS)
