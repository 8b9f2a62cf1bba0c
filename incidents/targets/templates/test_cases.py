"""Every group of this export as a test: `python -m pytest test_cases.py`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from replay import prove  # noqa: E402
from replay.plug import play  # noqa: E402

CASES = [json.loads(line) for line in (HERE / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
GROUPS: dict[str, list[dict[str, Any]]] = {}
for _case in CASES:
    GROUPS.setdefault(_case["fingerprint"]["value"], []).append(_case)
LIVE = ("in_review", "approved")
PROVEN = {name: group for name, group in GROUPS.items() if group[0]["review"]["state"] in LIVE}


@pytest.mark.parametrize("name", sorted(PROVEN))
def test_group_proves_itself(name: str) -> None:
    """The recorded calls fail, a careful agent passes, and no trivial agent passes the group."""
    assert prove(PROVEN[name]).reasons == ()


@pytest.mark.parametrize("case", [c for group in PROVEN.values() for c in group], ids=lambda c: c["case_id"])
def test_agent_passes(case: dict[str, Any]) -> None:
    """The agent named by AGENT_SLO_AGENT (`module:factory`) passes every case."""
    named = os.environ.get("AGENT_SLO_AGENT")
    if not named:
        pytest.skip("set AGENT_SLO_AGENT=module:factory to test an agent")
    played = play(case, named)
    verdict = played["verdict"]
    if verdict["inconclusive"]:
        pytest.skip(f"inconclusive: the incident has no answer for {played['unmatched']}")
    assert verdict["pass"], "; ".join(r["why"] for r in verdict["results"] if not r["pass"])
