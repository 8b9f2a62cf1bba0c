"""`python -m tests.cases`: the accuracy of the detectors on the labelled cases; exit 1 when a label is not met."""

from __future__ import annotations

import sys

from tests.cases.score import lines, run

if __name__ == "__main__":
    score = run()
    for line in lines(score):
        print(line)
    for difference in score.differences:
        print(difference, file=sys.stderr)
    sys.exit(1 if score.differences else 0)
