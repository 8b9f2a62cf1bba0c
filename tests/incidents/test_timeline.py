"""What undoes a fault is told as its undoing, not as a fault."""

from __future__ import annotations

from pathlib import Path

from incidents import timeline
from tests.incidents.stories import worked
from tests.incidents.test_repairs import PAIRED, TWICE, UNDONE, gathered


def test_what_undoes_a_duplicate_is_no_fault(tmp_path: Path) -> None:
    found = gathered(tmp_path, [worked("t", "Pay 40 to Ada.", [*TWICE, UNDONE])], PAIRED)
    told = next(one for one in found if one.incident["kind"] == "duplicate_action")
    lines = [line for line in timeline.tell(told) if line.span_ids]
    assert [(line.text.split("(")[0], line.fault, line.undoes) for line in lines] == [
        ("pay", True, False),
        ("pay", True, False),
        ("cancel_payment", False, True),
    ]
    assert lines[-1].span_ids[0] in told.evidence_span_ids
    assert lines[-1].text.endswith("; undoes pay")
    assert "cancel_payment" not in timeline.sentence(lines)
