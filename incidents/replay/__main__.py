"""`python -m replay cases.jsonl`: what the scripted agents do in every case of an export.

Exit 0 when the recorded run fails every proven incident, the careful agent passes everything and no trivial agent
passes a whole group; exit 1 otherwise.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path

from .proof import prove


def main(path: str) -> int:
    """Prove every group of an exported file and print one line for each."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines if line.strip()]
    bad = 0
    for group_id, members in groupby(cases, key=lambda case: str(case["split_group"])):
        group = list(members)
        review = group[0]["review"]
        if review["state"] not in ("in_review", "approved"):
            print(f"{review['state']} {group_id}: {review.get('note')}")
            continue
        proof = prove(group)
        bad += not proof.holds
        words = "; ".join(proof.reasons) or f"the recorded calls fail {', '.join(proof.recorded_fails)}"
        print(f"{'ok   ' if proof.holds else 'FAIL '} {group_id}: {words}")
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m replay cases.jsonl")
    sys.exit(main(sys.argv[1]))
