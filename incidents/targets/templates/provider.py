"""promptfoo provider: plays the agent named by AGENT_SLO_AGENT (or `config.agent`) through the case of a test."""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from replay.plug import play


def call_api(prompt: str, options: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """The verdict as JSON text, or an error that says what to set."""
    named = (options.get("config") or {}).get("agent") or os.environ.get("AGENT_SLO_AGENT")
    if not named:
        return {"error": "set AGENT_SLO_AGENT=module:factory, or `agent` in the provider's config"}
    case = json.loads(base64.b64decode(context["vars"]["case_b64"]))
    return {"output": json.dumps(play(case, named))}
