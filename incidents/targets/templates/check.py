"""promptfoo assertion: one check of the case, as the replay judged it."""

from __future__ import annotations

import json
from typing import Any


def get_assert(output: str, context: dict[str, Any]) -> dict[str, Any]:
    """Pass or fail with the reason; a call without a recorded answer is said to be inconclusive."""
    played = json.loads(output)
    wanted = context["config"]["check"]
    found = next(result for result in played["verdict"]["results"] if result["id"] == wanted)
    why = found["why"]
    if played["verdict"]["inconclusive"]:
        why = f"inconclusive, the incident has no answer for a call: {why}"
    return {"pass": bool(found["pass"]), "score": 1.0 if found["pass"] else 0.0, "reason": why}
