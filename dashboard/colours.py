"""Okabe-Ito colours, the only ones the charts use: distinct for every common form of colour blindness."""

from __future__ import annotations

from collections.abc import Mapping

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
SKY = "#56B4E9"
PURPLE = "#CC79A7"
YELLOW = "#F0E442"
GREY = "#8A939B"
TEXT_GREY = "#5A6570"
"""For small text on white."""

# Bottom to top in the stacked chart. The second value is a plotly fill pattern, so that neighbours differ
# without any colour at all.
OUTCOME_STYLE: Mapping[str, tuple[str, str]] = {
    "completed": (GREEN, ""),
    "handed_over": (SKY, ""),
    "running": (BLUE, "."),
    "waiting_human": (ORANGE, ""),
    "unknown": (GREY, ""),
    "cancelled_user": (GREY, "/"),
    "cancelled_system": (GREY, "x"),
    "failed": (VERMILION, ""),
    "lost": (PURPLE, "\\"),
    "dead_letter": (VERMILION, "x"),
}

ROLE_STYLE: Mapping[str, str] = {
    "model": BLUE,
    "tool": SKY,
    "side_effect": GREEN,
    "retrieval": PURPLE,
    "human": ORANGE,
    "guardrail": YELLOW,
    "evaluator": YELLOW,
    "other": GREY,
}

# Streamlit's badge colours; the badge always carries the word as well.
STATE_BADGE: Mapping[str, tuple[str, str]] = {
    "ok": ("green", ":material/check_circle:"),
    "at_risk": ("orange", ":material/warning:"),
    "exhausted": ("red", ":material/error:"),
    "insufficient_data": ("gray", ":material/hourglass_empty:"),
    "no_data": ("gray", ":material/radio_button_unchecked:"),
    "invalid": ("red", ":material/block:"),
}

OUTCOME_BADGE: Mapping[str, tuple[str, str]] = {
    "completed": ("green", ":material/check_circle:"),
    "handed_over": ("blue", ":material/forward:"),
    "running": ("blue", ":material/progress_activity:"),
    "waiting_human": ("orange", ":material/person:"),
    "failed": ("red", ":material/cancel:"),
    "lost": ("violet", ":material/help_center:"),
    "dead_letter": ("red", ":material/inventory_2:"),
    "cancelled_user": ("gray", ":material/do_not_disturb_on:"),
    "cancelled_system": ("gray", ":material/do_not_disturb_on:"),
    "unknown": ("gray", ":material/question_mark:"),
}
