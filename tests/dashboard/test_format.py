"""Numbers and words as people read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from dashboard import format as spelled

# A code span in what `markdown_text` writes.
_CODE = re.compile(r"(?<!\\)`([^`]+)`")

NAN = float("nan")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.9731, "97.3%"), (1.0, "100%"), (0.0, "0%"), (0.99999, "99.999%"), (0.9996, "99.96%"),
        (0.0001, "0.01%"),
        (0.999999999, ">99.999999%"), (1e-12, "<0.000001%"), (-1.25, "-125.0%"), (None, "—"), (NAN, "—"),
    ],
)  # fmt: skip
def test_only_an_exact_one_reads_100_percent(share: float | None, text: str) -> None:
    assert spelled.percent(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"), (0.85, "850 ms"), (0.9996, "1.0 s"), (3.21, "3.2 s"), (59.96, "1 min"),
        (65, "1 min 5 s"),
        (7800, "2 h 10 min"), (86400 * 3 + 4 * 3600, "3 d 4 h"), (-5, "-5.0 s"), (float("inf"), "never"),
        (None, "—"),
    ],
)  # fmt: skip
def test_durations_have_two_units_at_most(seconds: float | None, text: str) -> None:
    assert spelled.duration(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0"),
        (12.4, "$12.40"),
        (1234.5, "$1,234.50"),
        (0.01234, "$0.0123"),
        (0.000514, "$0.000514"),
        (None, "—"),
    ],
)
def test_dollars_keep_three_digits_below_one(amount: float | None, text: str) -> None:
    assert spelled.usd(amount) == text


def test_targets_are_spelled_as_written() -> None:
    assert [spelled.target_percent(t) for t in (0.99, 0.999, 0.9995, 1.0, None)] == [
        "99%", "99.9%", "99.95%", "100%", "—",
    ]  # fmt: skip


def test_intervals_and_counts() -> None:
    assert spelled.interval(0.941, 0.987) == "94.1–98.7%"
    assert spelled.interval(None, 0.9) == "—"
    assert (spelled.counted(1, "task"), spelled.counted(12345, "task")) == ("1 task", "12,345 tasks")
    assert (spelled.number(3.10), spelled.number(1204.5), spelled.number(0.04), spelled.number(None)) == (
        "3.1", "1,204.5", "0", "—",
    )  # fmt: skip


def test_burn_names_the_windows_people_act_on() -> None:
    rates = (
        '{"5m": {"value": 9}, "1h": {"value": null}, "6h": {"value": 0.44}, '
        '"3d": {"value": 123.4}, "28d": {"value": 1}}'
    )
    assert spelled.burn_line(rates) == "1h — · 6h 0.4× · 3d 123×"
    assert spelled.burn_line("{}") == "—"
    assert spelled.burn_line(None) == "—"


def test_moments_are_utc() -> None:
    assert spelled.when(datetime(2026, 11, 28, 14, 3, 22)) == "2026-11-28 14:03:22 UTC"
    berlin = datetime(2026, 11, 28, 15, 3, tzinfo=UTC).astimezone()
    assert spelled.when(berlin, seconds=False) == "2026-11-28 15:03 UTC"
    assert spelled.ago(datetime(2026, 1, 1), datetime(2026, 1, 1) + timedelta(minutes=3)) == "3 min ago"


@pytest.mark.parametrize(
    "text",
    [
        "**bold**",
        "[a](http://x)",
        "![i](http://x)",
        ":red[x]",
        ":material/home:",
        "$x^2$",
        "<b>x</b>",
        "`code`",
        "# h",
        "1. x",
    ],
)
def test_markdown_has_nothing_left_to_render(text: str) -> None:
    escaped = spelled.markdown_text(text)
    assert _CODE.sub(r"\1", escaped).replace("\\", "") == text
    escaped = _CODE.sub("", escaped)
    for mark in "*[]()!:$<>`#.":
        assert escaped.count(mark) == escaped.count("\\" + mark)


@pytest.mark.parametrize(
    "text",
    [
        "http://evil.example/p.png",
        "HTTPS://evil.example",
        "www.evil.example",
        "mailto:eve@evil.example",
        "eve@evil.example",
        "(see http://evil.example), WWW.evil.example",
        "a`http://evil.example`b",
        "<http://evil.example>",
        "[x](http://evil.example)",
        "$http://evil.example$ \\",
    ],
)
def test_an_address_stands_as_code_so_that_no_link_is_made_of_it(text: str) -> None:
    escaped = spelled.markdown_text(text)
    assert _CODE.findall(escaped)
    assert _CODE.sub(r"\1", escaped).replace("\\", "") == text.replace("\\", "")
    rest = _CODE.sub(" ", escaped).replace("\\", "").lower()
    assert not any(mark in rest for mark in ("://", "www.", "@"))


def test_plotly_gets_no_tags_and_no_line_breaks() -> None:
    assert spelled.plotly_text("<b>x</b>\n&y") == "&lt;b&gt;x&lt;/b&gt; &amp;y"


def test_control_and_direction_marks_are_shown_as_such() -> None:
    assert spelled.one_line("a\x1b[31mb\u202ec\x00") == "a�[31mb�c�"
    assert spelled.one_line("x" * 400, 10) == "x" * 9 + "…"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", "\rx"])
def test_formulas_get_a_quote(text: str) -> None:
    assert spelled.safe_cell(text) == "'" + text


def test_numbers_stay_numbers() -> None:
    assert spelled.safe_cell(-5) == -5
    assert spelled.safe_cell("plain") == "plain"
