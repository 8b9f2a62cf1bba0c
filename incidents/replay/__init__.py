"""Replays one incident as a small world: tools that answer, faults that strike, a ledger of what really happened.

Standard library only, and copied as it stands into every export: an evaluation runs without agent-slo installed.
"""

from .agents import AGENTS, TRIVIAL
from .checks import CHECKS, Verdict, judge
from .drive import Outcome, replay_recorded, run_agent
from .proof import Proof, prove
from .world import LiveClock, ProcessCrash, Simulator, ToolError, ToolTimeout, VirtualClock

__all__ = [
    "AGENTS",
    "CHECKS",
    "TRIVIAL",
    "LiveClock",
    "Outcome",
    "ProcessCrash",
    "Proof",
    "Simulator",
    "ToolError",
    "ToolTimeout",
    "Verdict",
    "VirtualClock",
    "judge",
    "prove",
    "replay_recorded",
    "run_agent",
]
