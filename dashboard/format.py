"""Numbers and words as people read them: pure text, shared by the pages and the command line.

Unknown is written as an em dash, never as 0, None or NaN. Nothing here decides; it only spells.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

UNKNOWN = "—"

OUTCOME_WORDS: Mapping[str, str] = {
    "completed": "completed",
    "failed": "failed",
    "lost": "lost",
    "dead_letter": "dead letter",
    "waiting_human": "waiting for a human",
    "handed_over": "handed over",
    "cancelled_user": "cancelled by the user",
    "cancelled_system": "cancelled by the system",
    "running": "running",
    "unknown": "unknown",
}

# A glyph before the word, so that a column of outcomes can be scanned without colour.
OUTCOME_GLYPHS: Mapping[str, str] = {
    "completed": "✓",
    "failed": "✕",
    "lost": "∅",
    "dead_letter": "✉",
    "waiting_human": "◷",
    "handed_over": "→",
    "cancelled_user": "–",
    "cancelled_system": "–",
    "running": "…",
    "unknown": "?",
}

EVIDENCE_WORDS: Mapping[str, str] = {
    "stated": "stated by the agent",
    "evaluated": "judged by an evaluation",
    "inferred": "inferred from the trace",
    "none": "no evidence",
}

STATE_WORDS: Mapping[str, str] = {
    "ok": "On target",
    "at_risk": "At risk",
    "exhausted": "Budget spent",
    "insufficient_data": "Too few events",
    "no_data": "No data yet",
    "invalid": "Invalid objective",
}

CAUSE_WORDS: Mapping[str, str] = {
    "model_repeat": "the model asked again",
    "retry_after_timeout": "retried after a timeout",
    "resume_reexecution": "run again after a resume",
    "crash_replay": "replayed after a crash",
    "redelivery": "the same input was delivered again",
    "orchestrator_retry": "retried by the orchestrator",
    "unknown": "cause unknown",
}

DUPLICATE_WORDS: Mapping[str, str] = {
    "unprotected": "unprotected duplicate",
    "protected": "protected by its key",
    "no_op": "repeat without effect",
}


def missing(value: Any) -> bool:
    """True for None, NaN and pandas' NaT: the ways an unknown arrives from SQL."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def words(table: Mapping[str, str], key: Any) -> str:
    """The words of a key; a key we do not know keeps its own spelling, with spaces for underscores."""
    if missing(key):
        return UNKNOWN
    return table.get(str(key), str(key).replace("_", " "))


def count(value: Any) -> str:
    """`12,345`."""
    return UNKNOWN if missing(value) else f"{int(value):,}"


def short(value: Any) -> str:
    """A large count in three digits: `17.0 M`."""
    if missing(value):
        return UNKNOWN
    for least, size, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if value >= least:
            scaled = float(value) / size
            return f"{scaled:.1f} {unit}" if scaled < 100 else f"{scaled:.0f} {unit}"
    return count(value)


def counted(value: Any, one: str, many: str | None = None) -> str:
    """`1 task`, `12,345 tasks`."""
    return f"{count(value)} {one if value == 1 else many or one + 's'}"


def percent(value: Any, digits: int = 1) -> str:
    """A share from 0 to 1 as `97.3%`.

    More digits appear near the ends, so that only an exact 1 reads 100% and only an exact 0 reads 0%.
    """
    if missing(value):
        return UNKNOWN
    share = float(value)
    if math.isinf(share):
        return "∞" if share > 0 else "-∞"
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    for places in range(digits, 7):
        text = f"{share * 100:.{places}f}"
        if float(text) not in (0.0, 100.0):
            return f"{text}%"
    return f"{'>' if share > 0.5 else '<'}{'99.999999' if share > 0.5 else '0.000001'}%"


def chance(value: Any) -> str:
    """A probability as `98%`; near the ends only that it is nearly certain: `>99.9%`."""
    if missing(value) or 0.001 <= value <= 0.999:
        return percent(value, 0)
    return ">99.9%" if value > 0.5 else "<0.1%"


def budget_words(remaining: Any) -> str:
    """What is left of an error budget: `29% left`, `overspent by 120%`."""
    if missing(remaining):
        return UNKNOWN
    return f"{percent(remaining, 0)} left" if remaining >= 0 else f"overspent by {percent(-remaining, 0)}"


def signed(value: Any, spell: Callable[[Any], str]) -> str:
    """A change with its sign, spelt by `spell`: `+12`, `-$0.40`, `±0`."""
    if missing(value):
        return UNKNOWN
    if value == 0:
        return f"±{spell(0)}"
    return f"{'+' if value > 0 else '-'}{spell(abs(value))}"


def signed_percent(value: Any) -> str:
    """A change of a share in points of percent: `+1.2%`."""
    return signed(value, lambda share: percent(share, 1))


def interval(lower: Any, upper: Any) -> str:
    """A 95 % interval as `94.1–98.7%`."""
    if missing(lower) or missing(upper):
        return UNKNOWN
    return f"{percent(lower).removesuffix('%')}–{percent(upper)}"


def target_percent(value: Any) -> str:
    """A target as it was written: `99%`, `99.9%`, `99.95%`."""
    return UNKNOWN if missing(value) else f"{float(value) * 100:.6f}".rstrip("0").rstrip(".") + "%"


def number(value: Any, digits: int = 1) -> str:
    """A plain number without trailing zeros: `3.1`, `12`, `1,204.5`."""
    if missing(value):
        return UNKNOWN
    text = f"{float(value):,.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def burn(value: Any) -> str:
    """A burn rate as `1.2×`; 1× spends the budget exactly within the window."""
    if missing(value):
        return UNKNOWN
    rate = float(value)
    return f"{rate:,.0f}×" if rate >= 100 else f"{rate:.1f}×"


def usd(value: Any) -> str:
    """US dollars: cents from $1 on, below that three significant digits."""
    if missing(value):
        return UNKNOWN
    amount = float(value)
    if amount == 0:
        return "$0"
    if abs(amount) >= 1:
        return f"${amount:,.2f}"
    places = min(8, 2 - math.floor(math.log10(abs(amount))))
    return f"${amount:.{places}f}"


def size(bytes_: Any) -> str:
    """Bytes as `3.2 MB` (powers of ten, as disks are sold)."""
    if missing(bytes_):
        return UNKNOWN
    value = float(bytes_)
    for unit in ("B", "kB", "MB"):
        if value < 999.5:
            return f"{value:.0f} {unit}" if unit != "MB" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} GB"


def duration(seconds: Any) -> str:
    """Seconds as the two largest units: `850 ms`, `3.2 s`, `4 min 5 s`, `2 h 10 min`, `3 d 4 h`."""
    if missing(seconds):
        return UNKNOWN
    value = float(seconds)
    if math.isinf(value):
        return "never"
    if value < 0:
        return "-" + duration(-value)
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 59.95:
        return f"{value:.1f} s"
    whole = round(value)
    for size, unit, small_size, small in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = (whole % size) // small_size
            return f"{whole // size} {unit}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"


def when(moment: Any, *, seconds: bool = True) -> str:
    """A UTC moment as `2026-11-28 14:03:22 UTC`."""
    if missing(moment):
        return UNKNOWN
    value: datetime = moment.to_pydatetime() if hasattr(moment, "to_pydatetime") else moment
    if value.tzinfo is not None:
        value = value.astimezone(UTC)
    return value.strftime("%Y-%m-%d %H:%M:%S UTC" if seconds else "%Y-%m-%d %H:%M UTC")


def ago(moment: Any, now: datetime) -> str:
    """How long ago a UTC moment was: `3 min ago`."""
    if missing(moment):
        return UNKNOWN
    value: datetime = moment.to_pydatetime() if hasattr(moment, "to_pydatetime") else moment
    passed = (now.replace(tzinfo=None) - value.replace(tzinfo=None)) / timedelta(seconds=1)
    if passed < 1:
        return "just now"
    return f"{duration(passed).split(' ')[0]} {duration(passed).split(' ')[1]} ago"


def json_object(text: Any) -> dict[str, Any]:
    """A JSON column as a dict; unknown or not an object: empty."""
    if missing(text):
        return {}
    value = json.loads(text) if isinstance(text, str) else text
    return dict(value) if isinstance(value, Mapping) else {}


def json_list(text: Any) -> list[Any]:
    """A JSON column as a list; unknown or not a list: empty."""
    if missing(text):
        return []
    value = json.loads(text) if isinstance(text, str) else text
    return list(value) if isinstance(value, (list, tuple)) else []


# One window for pages, one for the day's trend, one for tickets; the rest is in the JSON.
_BURN_WINDOWS = ("1h", "6h", "3d")


def burn_line(burn_json: Any) -> str:
    """The burn rates people act on: `1h 0.4× · 6h 1.2× · 3d 0.8×`; a window without events is a dash."""
    rates = json_object(burn_json)
    windows = [window for window in _BURN_WINDOWS if window in rates] or list(rates)[:3]
    parts = []
    for window in windows:
        item = rates[window]
        value = item.get("value") if isinstance(item, Mapping) else item
        parts.append(f"{window} {burn(value)}")
    return " · ".join(parts) or UNKNOWN


# Every ASCII punctuation mark can be escaped in CommonMark; Streamlit adds `:name:` and `$math$`, which the
# same escape switches off. Newlines would open new blocks.
_MARKDOWN = re.compile(r"([!-/:-@\[-`{-~])")
# Streamlit's Markdown makes links of addresses after it has resolved escapes, so that no escape keeps them text; it
# leaves code alone. The runs hold no mark that could end the code or mean anything where code is not understood.
_ADDRESS = re.compile(r"((?=[^\s`\[\]<>$]*(?:://|www\.|@))[^\s`\[\]<>$]+)", re.IGNORECASE)


def markdown_text(value: Any) -> str:
    """Text for a place that renders Markdown (labels, badges), with nothing in it left to render.

    What a reader's browser would make a link of (`http://...`, `www....`, `name@host`) stands as code.
    """
    parts = _ADDRESS.split(one_line(value))
    return "".join(
        f"`{part}`" if place % 2 else _MARKDOWN.sub(r"\\\1", part) for place, part in enumerate(parts)
    )


def plotly_text(value: Any) -> str:
    """Text for a plotly label or hover, which would render a subset of HTML."""
    return html.escape(one_line(value), quote=False)


_DIRECTION = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def one_line(value: Any, limit: int = 300) -> str:
    """Text on one line: control and direction marks become `�`, long text is cut with an ellipsis."""
    if missing(value):
        return UNKNOWN
    text = _CONTROL.sub("�", " ".join(str(value).replace("\t", " ").splitlines()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def safe_cell(value: Any) -> Any:
    """A cell for CSV: text that a spreadsheet would run as a formula gets a leading quote.

    Marks that turn the direction of writing become `�`: a name must not read as another.
    """
    if not isinstance(value, str):
        return value
    text = _DIRECTION.sub("�", value)
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
