"""The house itself: floors, names, and words that must not be in it."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = ("collector", "metrics", "incidents", "dashboard", "agent_slo")
"""From the ground up: a floor imports only floors before it."""


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("package", FLOORS)
def test_a_lower_floor_never_imports_a_higher_one(package: str) -> None:
    higher = set(FLOORS[FLOORS.index(package) + 1 :])
    assert modules(package)
    assert {
        str(p.relative_to(ROOT)): imported(p) & higher for p in modules(package) if imported(p) & higher
    } == {}


def test_no_module_is_a_drawer_for_anything() -> None:
    drawers = re.compile(r"^(utils?|helpers?|common|misc|manager)\.py$")
    found = [
        str(p.relative_to(ROOT)) for package in FLOORS for p in modules(package) if drawers.match(p.name)
    ]
    assert found == []


def tracked() -> list[Path]:
    out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if out.returncode != 0:
        pytest.skip("not a git checkout: the list of files is not known")
    return [ROOT / name for name in out.stdout.decode().split("\0") if name]


def test_no_path_of_a_machine_and_no_address_of_a_package_index() -> None:
    forbidden = re.compile(rb"/(?:work|root|home)/[a-z]|--(?:extra-)?index-url|\"resolved\": *\"http")
    found = []
    for path in tracked():
        if path == Path(__file__).resolve() or not path.is_file() or path.suffix in (".gz", ".png"):
            continue
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if forbidden.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}")
    assert found == []


def test_nothing_is_left_for_later() -> None:
    mark = re.compile(r"\b(TODO|FIXME|XXX)\b|NotImplementedError")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.suffix in (".py", ".sql", ".yaml", ".md", ".toml")
        and path != Path(__file__).resolve()
        and path.is_file()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if mark.search(line)
    ]
    assert found == []


def test_every_sql_file_says_its_grain_or_purpose_first() -> None:
    files = sorted((ROOT / "metrics" / "sql").glob("*.sql"))
    assert len(files) > 20
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("-- Grain: one row per"), path.name
        assert any(line.startswith("-- Inputs: ") for line in lines[:5]), path.name
