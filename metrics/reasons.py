"""Rule ids in words: what `metrics/reasons.yaml` says of each."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import yaml


@cache
def reasons() -> dict[str, str]:
    """Rule id -> sentence."""
    text = files("metrics").joinpath("reasons.yaml").read_text(encoding="utf-8")
    return {str(rule): str(sentence) for rule, sentence in yaml.safe_load(text).items()}


def sentence(rule: str | None) -> str | None:
    """Return the sentence for a rule id; None for none, and for an id that no file of this version writes.

    A task that ended as its last run did carries the run's rule behind `task.` or `task.waiting.`.
    """
    if rule is None:
        return None
    known = reasons()
    for shorter in (rule, rule.removeprefix("task.waiting."), rule.removeprefix("task.")):
        if shorter in known:
            return known[shorter]
    return None
