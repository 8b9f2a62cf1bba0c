"""What agent-slo would like to know of a run and no convention says: that it began, and what became of it.

Everything here is plain OpenTelemetry; see README.md for what it buys.
"""

from __future__ import annotations

from agent_slo_emit.attributes import human_decision, idempotency_key, outcome, task
from agent_slo_emit.markers import MARKER, RunMarkers, instrument

__all__ = ["MARKER", "RunMarkers", "human_decision", "idempotency_key", "instrument", "outcome", "task"]
