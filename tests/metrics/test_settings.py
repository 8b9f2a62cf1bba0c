"""The sections of the configuration that change what is derived."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from metrics.settings import MetricsSettings, TaskRule, ToolRule, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (90, 90),
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("7d", 604800),
        ("2w", 1209600),
        ("250ms", 0.25),
    ],
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["soon", "10 parsecs", "", "-5m", "0s", "5m later", True])
def test_durations_that_are_none(text: object) -> None:
    with pytest.raises(ValueError, match=r"is no duration"):
        parse_duration(text)


def test_defaults_are_the_documented_ones() -> None:
    settings = MetricsSettings()
    assert settings.results.refused == ["^Error"]
    assert settings.exclude.environments == ["test", "eval", "replay"]
    assert ToolRule().window == timedelta(hours=24)
    assert (ToolRule().retry.max_attempts, settings.detectors.retry.max_attempts) == (None, 10)


def test_an_unknown_key_and_a_bad_pattern_are_refused() -> None:
    with pytest.raises(ValidationError, match="efect"):
        MetricsSettings.model_validate({"tools": {"a": {"efect": "write"}}})
    with pytest.raises(ValidationError, match="is no regular expression"):
        MetricsSettings.model_validate({"results": {"refused": ["(unclosed"]}})


@pytest.mark.parametrize("policy", ["exclude", "bad", "bad-after-24h", "bad-after-30m"])
def test_policies_for_unknown_outcomes(policy: str) -> None:
    assert TaskRule(unknown=policy).unknown == policy


@pytest.mark.parametrize("policy", ["good", "bad-after-", "later"])
def test_policies_that_are_none(policy: str) -> None:
    with pytest.raises(ValidationError):
        TaskRule(unknown=policy)
