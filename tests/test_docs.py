"""Documentation is tested: whatever a user can set, send or ask has its line."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from agent_slo import reference
from agent_slo.config import Config
from agent_slo.derivation import derive_once
from collector.store import Store
from metrics.conventions import canonical_keys
from metrics.openslo import default_objectives
from tests.metrics import worlds

DOCS = Path(__file__).parent.parent / "docs"


def sections(page: str) -> dict[str, str]:
    """Heading -> text of each `##` section."""
    parts = re.split(r"^## (.+)$", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name.strip().strip("`"): text for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def words(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))


def test_every_view_and_column_is_documented_and_nothing_else(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    try:
        derive_once(store, Config(), default_objectives(), worlds.end())
        with store.reader() as con:
            rows = con.execute(
                "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = 'memory' AND NOT internal"
            ).fetchall()
    finally:
        store.close()
    views: dict[str, set[str]] = {}
    for view, column in rows:
        views.setdefault(view, set()).add(column)
    documented = sections("views.md")
    assert set(views) == set(documented)
    # columns by which the machine works and that are no contract
    private = {"deliveries", "start_ns", "end_ns", "leaves", "depth", "scope"}
    missing = {view: sorted(columns - words(documented[view]) - private) for view, columns in views.items()}
    internal = {"steps", "attempts"}  # carry more than the contract; what is listed must exist
    assert {view: left for view, left in missing.items() if left and view not in internal} == {}
    for view in internal:
        first = {line.split("|")[1] for line in documented[view].splitlines() if line.startswith("| `")}
        assert words(" ".join(first)) <= views[view], view


def keys(model: type[BaseModel], before: str = "") -> Iterator[str]:
    """Dotted names of all settings; the name under a mapping or a list is left out."""
    for name, field in model.model_fields.items():
        inner = [t for t in _types(field.annotation) if isinstance(t, type) and issubclass(t, BaseModel)]
        if not inner or before:
            yield before + name
        for section in inner:
            if not before:
                yield from keys(section, f"{name}.")


def _types(annotation: typing.Any) -> Iterator[typing.Any]:
    yield annotation
    for argument in typing.get_args(annotation):
        yield from _types(argument)


def test_every_setting_is_documented() -> None:
    documented = words((DOCS / "configure.md").read_text(encoding="utf-8"))
    missing = [key for key in keys(Config) if key not in documented]
    assert missing == []


def test_every_attribute_of_ours_is_documented_and_read() -> None:
    documented = {
        w for w in words((DOCS / "definitions.md").read_text(encoding="utf-8")) if w.startswith("agent_slo.")
    }
    read = {key for key in canonical_keys() if key.startswith("agent_slo.")}
    assert read <= documented
    assert documented - read == {"agent_slo.run.started"}


def test_the_command_line_page_is_what_the_commands_say() -> None:
    written = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert written == reference.page(), "run `make docs`"


@pytest.mark.parametrize("page", sorted(p.name for p in DOCS.glob("*.md")))
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    targets = [t.split("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in t]
    assert [t for t in targets if t and not (DOCS / t).exists()] == []


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_links_of_the_front_pages_lead_somewhere(page: str) -> None:
    root = DOCS.parent
    targets = [
        t.split("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", (root / page).read_text()) if "://" not in t
    ]
    assert targets
    assert [t for t in targets if not (root / t).exists()] == []
