"""What every page has: its head with the state of the data, errors in one line, and live refresh."""

from __future__ import annotations

import base64
import csv
import io
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from collector.reader import ReaderError
from dashboard.door import Answers, DoesNotAnswer, addresses, answers, data_folder
from dashboard.filters import arrive, arrived, heed_keys, unsaid
from dashboard.format import UNKNOWN, count, markdown_text, missing, one_line, safe_cell, when
from dashboard.saying import keep_fields

FOLLOW_SECONDS = 3
ROW_PIXELS = 33

# Drawn here because Streamlit would load a named icon for the browser's tab from another host.
_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    '<circle cx="16" cy="16" r="14" fill="#0072B2"/>'
    '<path d="M8 17l5 5 11-12" fill="none" stroke="#fff" stroke-width="4" stroke-linecap="round"/></svg>'
)
ICON = "data:image/svg+xml;base64," + base64.b64encode(_SVG.encode()).decode()

# Constant text, never data. Streamlit's defaults leave wide gaps between the lines of a card.
_STYLE = """
<style>
  .block-container { max-width: 1500px; }
  .st-key-page_head { margin-bottom: .25rem; }
  [class*="st-key-card_"] { gap: .6rem; padding-bottom: .9rem; }
  [class*="st-key-card_"] [data-testid="stMetricLabel"] p { font-size: .92rem; }
  [class*="st-key-card_"] [data-testid="stCaptionContainer"] p { line-height: 1.5; }
  .st-key-verdict { gap: .6rem; }
  [data-testid="stMetricValue"] { font-variant-numeric: tabular-nums; }
  [class*="st-key-facts"] [data-testid="stMetricValue"] { font-size: 1.2rem; }
  [class*="st-key-facts"] [data-testid="stMetric"] { padding: 0; }
  /* As high as the names of figures that lead nowhere, so that all values stand on one line. */
  .stHorizontalBlock[class*="st-key-facts"] { row-gap: .9rem; }
  [class*="st-key-facts"] button { min-height: 0; padding: 0; }
  [class*="st-key-facts"] button, [class*="st-key-facts"] [data-testid="stMetricLabel"] { height: 1.6rem; }
  [class*="st-key-facts"] button > div { gap: .2rem; }
  /* A list that is brought into view must not begin below the bar of pages. */
  [class*="st-key-list_"] { scroll-margin-top: 4.5rem; }
  .st-key-scope { padding: .5rem .9rem .75rem; }
  [class*="st-key-card_"] [data-testid="stPageLink"] a { padding: 0; }
  [data-testid="stCaptionContainer"] code { color: inherit; }
</style>
"""
# Streamlit's own greys and its chips are below 4.5 : 1, which small text needs to be read.
_LIGHT = """
<style>
  [data-testid="stCaptionContainer"] { opacity: .75; }
</style>
"""
_DARK = """
<style>
  [data-testid="stMultiSelectTagsContainer"] [data-tag] * { color: #11161c; }
</style>
"""


def style() -> None:
    """Install the constant style sheets."""
    st.html(_STYLE + (_DARK if dark() else _LIGHT))


def page(
    title: str, show: Callable[[Answers], None], *, needs: str = "tasks", keys: Sequence[str] = ()
) -> None:
    """Run one page: head, then `show` with an open reader; expected errors become one readable line.

    `needs` is the view without which the folder holds nothing to show yet; `keys` are the names that its address may
    have.
    """
    data = data_folder()
    opened = False
    brought = arrive()
    keep_fields()
    tab(title)
    try:
        with answers(data) as reader:
            opened = True
            reader.ahead("views", "has_tasks", "pipeline")
            ready = needs in reader.views()
            state = reader.row("pipeline") if ready and "slo_status" in reader.views() else None
            st.session_state["follow_mark"] = _mark(reader, state)
            _head(title, reader, state)
            # Always there, so that what comes below keeps its place, and its text, when the collector goes.
            with st.container(key="page_state"):
                if ready and reader.source != "door":
                    st.caption(
                        markdown_text(
                            f"Nothing new arrives and nothing can be changed until it runs: {_collecting(data)}"
                        )
                    )
            if ready and _holds_tasks(reader):
                heed_keys(keys)
                show(reader)
                arrived(brought)
            else:
                _empty(data, reader)
    except ReaderError as error:
        if not opened:
            st.title(title, anchor=False)
        silent = isinstance(error, DoesNotAnswer)
        st.error(
            "The collector does not answer." if silent else "The data cannot be read.",
            icon=":material/error:",
        )
        st.text(str(error))
        # A timer looks whether that has changed.
        st.session_state["follow_mark"] = _UNREADABLE
        if not opened and not silent:
            _pointing(data)
    # A fragment also runs within the page, where everything is fresh.
    st.session_state["just_drawn"] = True
    _follow(str(data))


def tab(title: str) -> None:
    """Name the browser's tab, so that several of them can be told apart."""
    st.set_page_config(page_title=f"{one_line(title, 60)} · agent-slo", page_icon=ICON, layout="wide")


def _holds_tasks(reader: Answers) -> bool:
    found = reader.row("has_tasks")
    return found is not None and bool(found["found"])


def _head(title: str, reader: Answers, state: dict[str, Any] | None) -> None:
    with st.container(
        key="page_head", horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"
    ):
        st.title(title, anchor=False, width="content")
        with st.container(horizontal=True, width="content", vertical_alignment="center"):
            if reader.source == "door":
                st.badge("Collector running", icon=":material/sensors:", color="green")
            else:
                st.badge("Collector down: reading its files", icon=":material/sensors_off:", color="orange")
            if state is not None:
                # The statuses on the page are those of the last evaluation, which a later pass need not repeat.
                moment = when(state["as_of"] if missing(state["evaluated_at"]) else state["evaluated_at"])
                behind = "" if state["derived"] else " · catching up"
                st.caption(f"Decided as of {moment}{behind}", width="content")


def _empty(data: Path, reader: Answers) -> None:
    spans = reader.row("span_count") if "spans" in reader.views() else None
    if spans is not None and spans["spans"] > 0:
        st.info(f"{count(spans['spans'])} spans have arrived; the first tasks appear within seconds.")
    else:
        st.subheader("Nothing has arrived yet", anchor=False)
    if reader.source != "door":
        in_the_shell(
            "No collector runs over this folder, so nothing can arrive. Start one first:", _collecting(data)
        )
    _pointing(data)


def _collecting(data: Path) -> str:
    """How to start the collector."""
    return shlex.join(["agent-slo", "collect", "--data", str(data)])


_ALSO = "export OTEL_SERVICE_NAME=my-agent\nexport OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true\n"


def _pointing(data: Path) -> None:
    where = addresses(data)
    left, right = st.columns(2, gap="medium")
    with left.container(border=True):
        st.markdown("**Point your agents here**")
        st.caption("Any OpenTelemetry exporter will do. Set this where the agent runs, then start it:")
        st.code(
            f"export OTEL_EXPORTER_OTLP_ENDPOINT=http://{where['http']}\n"
            "export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n"
            f"{_ALSO}",
            language="bash",
        )
        st.caption(
            "The name tells your agents apart. Without the last line most instrumentations keep arguments and answers "
            "to themselves: equal calls then cannot be told from different ones."
        )
        st.caption("For gRPC:")
        st.code(
            f"export OTEL_EXPORTER_OTLP_ENDPOINT=http://{where['grpc']}\n"
            "export OTEL_EXPORTER_OTLP_PROTOCOL=grpc\n"
            f"{_ALSO}",
            language="bash",
        )
    with right.container(border=True):
        st.markdown("**Or look at the samples first**")
        st.caption("Loads sample traces into a folder of their own, so they never mix with yours:")
        st.code("agent-slo demo", language="bash")
        st.caption("Traces that are already in files:")
        st.code(f"agent-slo import traces.jsonl --data {data}", language="bash")


@st.fragment(run_every=FOLLOW_SECONDS)  # type: ignore[untyped-decorator]
def _follow(folder: str) -> None:
    """Redraw the page when new spans were derived, a status changed or the address is incomplete, and only then."""
    if st.session_state.pop("just_drawn", False):
        return
    if unsaid():
        st.rerun()
    try:
        with answers(Path(folder)) as reader:
            mark = _mark(reader, reader.row("pipeline") if "slo_status" in reader.views() else None)
    except DoesNotAnswer as error:
        # What is shown, and what somebody types, stays: there is nothing to draw in its place.
        if st.session_state.get("follow_mark") != _UNREADABLE:
            st.warning(markdown_text(f"What is shown may be old: {error}."), icon=":material/sync_problem:")
            if not st.session_state.get("silence_told"):
                st.toast("The collector does not answer.", icon=":material/sync_problem:")
        st.session_state["silence_told"] = True
        return
    except ReaderError:
        mark = _UNREADABLE
    st.session_state["silence_told"] = False
    if st.session_state.get("follow_mark", mark) != mark:
        st.session_state["follow_mark"] = mark
        st.rerun()


_UNREADABLE = ("unreadable", None, None)


def _mark(reader: Answers, state: dict[str, Any] | None) -> tuple[Any, ...]:
    """What is shown: where it was read, how far it is derived, and what the objectives say."""
    said = (None, None) if state is None else (state["derived_seq"], state["status_mark"])
    return (reader.source, *said)


def table(
    rows: list[dict[str, Any]],
    columns: dict[str, str],
    *,
    key: str,
    selectable: bool = False,
    drop_empty: bool = False,
    height: int | None = None,
    config: dict[str, Any] | None = None,
    raw: Sequence[Mapping[str, Any]] | None = None,
) -> int | None:
    """Show rows as a table of plain cells: `columns` maps row keys to headings, in order.

    Text that a spreadsheet would run as a formula gets a leading quote, since the table can be downloaded as
    CSV. What is not known is a dash in the cell itself: Streamlit would write one too faint to be read.
    `drop_empty` leaves out columns in which no row says anything. Returns the position of the row that was clicked,
    if `selectable`.

    The table's own CSV holds the cells as they are spelt, under a name by the clock. With `raw`, the rows as they were
    answered, a button below offers them as `KEY.csv`: numbers as numbers, times in ISO 8601.
    """
    if drop_empty:
        columns = {n: h for n, h in columns.items() if any(not missing(r[n]) and r[n] != "" for r in rows)}
    # A column of numbers is drawn as such, and takes no text.
    numeric = {name for name in columns if any(isinstance(row[name], (int, float)) for row in rows)}
    frame = pd.DataFrame(
        [
            [_cell(row[name]) if name in numeric or not missing(row[name]) else UNKNOWN for name in columns]
            for row in rows
        ],
        columns=list(columns.values()),
        dtype=object,
    )
    shown = st.dataframe(
        frame,
        key=key,
        hide_index=True,
        width="stretch",
        height=height if height is not None else "auto",
        placeholder=UNKNOWN,
        column_config=config,
        on_select="rerun" if selectable else "ignore",
        selection_mode="single-cell",
    )
    if raw:
        name = f"{key.rstrip('_0123456789')}.csv"
        st.download_button(
            markdown_text(name), partial(raw_csv, raw), file_name=name, mime="text/csv", key=f"csv_{key}",
            type="tertiary", icon=":material/download:", on_click="ignore",
            help="These rows with raw numbers, for a spreadsheet",
        )  # fmt: skip
    if not selectable:
        return None
    cells = shown["selection"]["cells"]
    return int(cells[0][0]) if cells else None


_COUNTERS = {"matching"}
"""Columns of a query that say something of the whole list."""


def raw_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV: numbers and true or false as they are, times in ISO 8601 (UTC), unknown empty, lists with commas.

    Text that a spreadsheet would run as a formula gets a leading quote.
    """
    text = io.StringIO()
    names = [name for name in rows[0] if name not in _COUNTERS]
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows([[_raw(row[name]) for name in names] for row in rows])
    return text.getvalue()


def _raw(value: Any) -> Any:
    if missing(value):
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    return _cell(value)


def rows_height(rows: int, most: int = 760) -> int | None:
    """Height in pixels of a table of so many rows, at most `most`; None, which fits it to them, up to ten rows."""
    # As tall as Streamlit draws them with the theme's font, with two for the frame.
    return None if rows <= 10 else min(ROW_PIXELS * (rows + 1) + 2, most)


def _cell(value: Any) -> Any:
    if missing(value):
        return None
    if isinstance(value, (list, tuple)):
        return safe_cell(", ".join(str(item) for item in value))
    return safe_cell(value)


def in_the_shell(why: str, *commands: str) -> None:
    """What to type where a page can only read; the commands are shown as they are."""
    st.caption(markdown_text(why))
    st.code("\n".join(commands), language="bash")


def open_task(task_id: str) -> None:
    """Go to the page of one task."""
    st.switch_page("screens/task.py", query_params={"id": task_id})


def dark() -> bool:
    """Whether the reader's theme is dark."""
    return bool(st.context.theme.type == "dark")


def badge(word: str, colour: str, icon: str) -> None:
    """A badge that says its meaning in words as well as in colour."""
    st.badge(markdown_text(word), icon=icon, color=colour)
