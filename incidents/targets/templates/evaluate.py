"""pydantic-evals over the cases of this export: `AGENT_SLO_AGENT=module:factory python evaluate.py`.

Exit 1 when a check fails.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from pydantic_evals import Dataset  # noqa: E402
from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext  # noqa: E402
from replay.plug import play  # noqa: E402


@dataclass
class Invariant(Evaluator[Any, Any, Any]):
    """One check of a case, as the replay judged it."""

    check: str

    def get_default_evaluation_name(self) -> str:
        return self.check

    def evaluate(self, ctx: EvaluatorContext[Any, Any, Any]) -> EvaluationReason:
        found = next(result for result in ctx.output["verdict"]["results"] if result["id"] == self.check)
        return EvaluationReason(value=bool(found["pass"]), reason=found["why"])


def load() -> Dataset[dict[str, Any], Any, dict[str, Any]]:
    """The dataset with its evaluators."""
    return Dataset[dict[str, Any], Any, dict[str, Any]].from_file(
        HERE / "cases.json", custom_evaluator_types=[Invariant]
    )


def evaluate(agent: str) -> dict[str, bool]:
    """Case name -> whether every check holds, for one agent."""
    report = load().evaluate_sync(lambda inputs: play(inputs["case"], agent), progress=False)
    results = {case.name: all(item.value for item in case.assertions.values()) for case in report.cases}
    return results | {failure.name: False for failure in report.failures}


if __name__ == "__main__":
    named = os.environ.get("AGENT_SLO_AGENT")
    if not named:
        sys.exit("set AGENT_SLO_AGENT=module:factory")
    found = evaluate(named)
    for name, passed in sorted(found.items()):
        print("ok  " if passed else "FAIL", name)
    sys.exit(0 if all(found.values()) else 1)
