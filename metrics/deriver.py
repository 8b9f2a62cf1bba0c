"""Runs the SQL files over what is new or due, and keeps their results.

One pass: take the traces with new spans and the tasks that are due, close them under every key by which they could
belong together, run `metrics/sql/_order` over them, replace their rows. A rebuild is the same pass with everything
new, so there is one set of SQL and no second path.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import duckdb

from metrics import functions, rules
from metrics.conventions import compile_families, shipped
from metrics.manifest import Model, filled, models
from metrics.settings import MetricsSettings

log = logging.getLogger("agent_slo.metrics")

PASS_SPANS = 50_000
"""Spans a pass takes at most: bounds its memory and the time until the next one sees fresh spans."""

_CONTENT = ("arguments", "result", "user_text", "output_text", "decision_arguments", "error_message")

_STATE = """
CREATE TABLE IF NOT EXISTS core.pipeline (derived_seq BIGINT, as_of TIMESTAMP, last_pass_at TIMESTAMP);
CREATE TABLE IF NOT EXISTS core._layout (name VARCHAR, signature VARCHAR);
CREATE TABLE IF NOT EXISTS core._join_keys (key UBIGINT, trace_id VARCHAR);
CREATE TABLE IF NOT EXISTS core._traces (trace_id VARCHAR, first_ns BIGINT, last_ns BIGINT);
CREATE TABLE IF NOT EXISTS core._trace_tasks (trace_id VARCHAR, task_id VARCHAR);
CREATE TABLE IF NOT EXISTS core.task_aliases (alias VARCHAR, task_id VARCHAR);
CREATE TABLE IF NOT EXISTS core.model_prices (
  provider VARCHAR, model VARCHAR, valid_from TIMESTAMP, valid_to TIMESTAMP, input DOUBLE, output DOUBLE,
  cache_read DOUBLE, cache_write DOUBLE, tiers VARCHAR, source VARCHAR);
CREATE TABLE IF NOT EXISTS core.revisions (
  task_id VARCHAR, sli VARCHAR, subject_id VARCHAR, from_verdict VARCHAR, to_verdict VARCHAR, changed_at TIMESTAMP, cause VARCHAR);
CREATE TABLE IF NOT EXISTS core.sli_hourly (
  sli VARCHAR, agent VARCHAR, task_type VARCHAR, service VARCHAR, environment VARCHAR, hour TIMESTAMP,
  good BIGINT, bad BIGINT, unknown BIGINT, excluded BIGINT, sum_value DOUBLE, histogram VARCHAR);
CREATE TABLE IF NOT EXISTS core.incidents (
  incident_id VARCHAR, fingerprint VARCHAR, kind VARCHAR, severity VARCHAR, state VARCHAR, agent VARCHAR, tool VARCHAR,
  seen_count BIGINT, first_seen TIMESTAMP, last_seen TIMESTAMP, representative_task_id VARCHAR);
"""


class Prices(Protocol):
    """Where prices come from: rows of `core.model_prices` for one provider and model."""

    def rows(self, provider: str, model: str) -> list[tuple[object, ...]]:
        """Return rows (provider, model, valid_from, valid_to, input, output, cache_read, cache_write, tiers, source).

        Prices in USD per million tokens; no rows when the model is unpriced.
        """
        ...


@dataclass(frozen=True)
class PassReport:
    """What one pass did. `derived_seq`: every span up to it is derived."""

    spans: int
    traces: int
    tasks: int
    seconds: float
    derived_seq: int


class Deriver:
    """Derives steps, runs, tasks, attempts, actions, interventions, findings and SLI events.

    `con`: a connection of the store's instance with `core` and `work` attached read-write and a view or table
    `spans`; nobody else may use it. `sources`: names the tables that can hold spans after a sequence number (all of
    `spans` when not given).
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        settings: MetricsSettings | None = None,
        *,
        prices: Prices | None = None,
        sources: Callable[[int], list[str]] | None = None,
        pass_spans: int = PASS_SPANS,
    ) -> None:
        self._con = con
        self._settings = settings or MetricsSettings()
        self._prices = prices
        self._sources = sources or (lambda seq: ["spans"])
        self._pass_spans = pass_spans
        self._compiled = compile_families(shipped(), self._settings.conventions.aliases)
        self._sql = {model.name: filled(model, self._compiled) for model in models()}
        self._rebuilding = False
        functions.register(con)
        rules.fill(con, self._settings, self._compiled)

    # ---- tables -----------------------------------------------------------------------------------------------

    def migrate(self) -> bool:
        """Create the kept tables, with the columns the SQL files give. Return whether any changed.

        A table whose columns differ from what the SQL gives now is dropped with all that was derived, and everything
        is derived again from the raw spans, which are never touched.
        """
        con = self._con
        for statement in _STATE.split(";\n"):
            if statement.strip():
                con.execute(statement)
        if con.execute("SELECT count(*) FROM core.pipeline").fetchall() == [(0,)]:
            con.execute("INSERT INTO core.pipeline VALUES (0, NULL, NULL)")
        con.execute("CREATE OR REPLACE TEMP TABLE touched_spans AS SELECT * FROM spans LIMIT 0")
        self._bind(datetime(2000, 1, 1))
        self._empty_inputs()
        signatures = {}
        for model in models():
            if model.name == "run_steps":
                self._kept_steps_shape()
            con.execute(f"CREATE OR REPLACE TEMP TABLE {model.name} AS\n{self._sql[model.name]}")
            if model.kept:
                described = con.execute(f"DESCRIBE {model.name}").fetchall()
                signatures[model.name] = hashlib.sha256(repr(described).encode()).hexdigest()
        known = dict(con.execute("SELECT name, signature FROM core._layout").fetchall())
        stale = {name for name, signature in signatures.items() if known.get(name) != signature}
        if stale and known:
            log.warning("derived tables have other columns now (%s): deriving everything again", ", ".join(sorted(stale)))
        if not stale:
            return False
        for model in models():
            if model.kept:
                con.execute(f"DROP TABLE IF EXISTS {model.kept}.{model.name}")
                con.execute(f"CREATE TABLE {model.kept}.{model.name} ({self._columns(model)})")
        self._forget()
        con.execute("DELETE FROM core._layout")
        for name, signature in signatures.items():
            con.execute("INSERT INTO core._layout VALUES (?, ?)", [name, signature])
        return True

    def _columns(self, model: Model) -> str:
        described = self._con.execute(f"DESCRIBE {model.name}").fetchall()
        parts = []
        for name, kind, *_ in described:
            packed = " USING COMPRESSION zstd" if kind == "VARCHAR" and name in _CONTENT else ""
            parts.append(f'"{name}" {kind}{packed}')
        return ", ".join(parts)

    def _kept_steps_shape(self) -> None:
        """An empty `kept_steps` with the columns `run_steps.sql` gives: it reads itself back from the last pass."""
        con = self._con
        con.execute(
            "CREATE OR REPLACE TEMP TABLE kept_steps AS SELECT * EXCLUDE (run_root), NULL::VARCHAR AS run_id, "
            "NULL::DOUBLE AS computed_cost_usd, NULL::DOUBLE AS cost_usd FROM new_steps LIMIT 0"
        )

    def _empty_inputs(self) -> None:
        con = self._con
        con.execute("CREATE OR REPLACE TEMP TABLE model_prices AS SELECT * FROM core.model_prices LIMIT 0")
        con.execute("CREATE OR REPLACE TEMP TABLE kept_revisions (task_id VARCHAR, revision BIGINT)")
        con.execute("CREATE OR REPLACE TEMP TABLE kept_findings (finding_id VARCHAR, found_at TIMESTAMP)")

    def _forget(self) -> None:
        """Drop everything derived; raw spans and operators' tables stay."""
        con = self._con
        for model in models():
            if model.kept == "work":
                con.execute(f"DELETE FROM work.{model.name}")
        with _transaction(con):
            for model in models():
                if model.kept == "core":
                    con.execute(f"DELETE FROM core.{model.name}")
            for name in ("_join_keys", "_traces", "_trace_tasks", "task_aliases", "sli_hourly", "model_prices"):
                con.execute(f"DELETE FROM core.{name}")
            con.execute("UPDATE core.pipeline SET derived_seq = 0")

    # ---- passes -----------------------------------------------------------------------------------------------

    def run(self, as_of: datetime | None = None) -> PassReport:
        """Run one pass: the oldest spans not yet derived (at most `pass_spans` of them) and the tasks due at `as_of`.

        `as_of`: the moment to decide at, UTC (naive or aware); now if not given.
        """
        started = time.perf_counter()
        moment = _naive(as_of)
        con = self._con
        self._bind(moment)
        before, upto = self._take_new()
        self._take_due(moment)
        traces = self._count("new_traces")
        if traces == 0 and self._count("due_traces") == 0:
            if upto > before or self._never_ran():
                con.execute("UPDATE core.pipeline SET derived_seq = ?, as_of = ?, last_pass_at = ?", [upto, moment, _naive(None)])
            return PassReport(0, 0, 0, time.perf_counter() - started, upto)
        self._derive()
        self._keep(moment, upto)
        tasks = self._count("tasks")
        spans = self._count("touched_spans")
        return PassReport(spans, traces, tasks, time.perf_counter() - started, upto)

    def catch_up(self, as_of: datetime | None = None, progress: Callable[[PassReport], None] | None = None) -> int:
        """Run passes at one moment until every stored span is derived and nothing is due. Return `derived_seq`."""
        moment = _naive(as_of)
        while True:
            report = self.run(moment)
            if progress:
                progress(report)
            last = self._con.execute("SELECT coalesce(max(seq), 0) FROM spans").fetchall()[0][0]
            if report.derived_seq >= last and report.traces == 0:
                return report.derived_seq

    def rebuild(self, as_of: datetime | None = None, progress: Callable[[PassReport], None] | None = None) -> int:
        """Derive everything again from the raw spans. Return `derived_seq`."""
        self._rebuilding = True
        try:
            self._forget()
            return self.catch_up(as_of, progress)
        finally:
            self._rebuilding = False

    def derived_seq(self) -> int:
        """Return the sequence number up to which every span is derived."""
        return int(self._con.execute("SELECT derived_seq FROM core.pipeline").fetchall()[0][0])

    def next_due(self) -> datetime | None:
        """Return the next moment (UTC, naive) at which the clock alone changes a task, or None."""
        found = self._con.execute("SELECT min(next_due_at) FROM core.tasks").fetchall()[0][0]
        return found if isinstance(found, datetime) else None

    def explain(self, name: str, task_id: str, as_of: datetime | None = None) -> duckdb.DuckDBPyRelation:
        """Run the files up to `name` for one task only and return that file's rows. Keeps nothing."""
        if name not in self._sql:
            raise ValueError(f"no SQL file is named {name}; there are {', '.join(self._sql)}")
        con = self._con
        self._bind(_naive(as_of))
        con.execute(
            """
            CREATE OR REPLACE TEMP TABLE new_traces AS
            SELECT * FROM core._traces WHERE trace_id IN (SELECT trace_id FROM core._trace_tasks WHERE task_id = ?)
            """,
            [task_id],
        )
        con.execute("CREATE OR REPLACE TEMP TABLE due_traces (trace_id VARCHAR)")
        self._derive(until=name)
        return con.table(name)

    # ---- the parts of a pass ----------------------------------------------------------------------------------

    def _bind(self, moment: datetime) -> None:
        self._con.execute(f"SET VARIABLE as_of = TIMESTAMP '{moment.isoformat(sep=' ')}'")

    def _count(self, table: str) -> int:
        return int(self._con.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])

    def _never_ran(self) -> bool:
        return self._con.execute("SELECT last_pass_at IS NULL FROM core.pipeline").fetchall() == [(True,)]

    def _take_new(self) -> tuple[int, int]:
        """Fill `new_traces` with the traces of the next spans; return the watermark before and after."""
        con = self._con
        before = self.derived_seq()
        tables = self._sources(before)
        if not tables:
            con.execute("CREATE OR REPLACE TEMP TABLE new_traces (trace_id VARCHAR, first_ns BIGINT, last_ns BIGINT)")
            return before, before
        fresh = " UNION ALL ".join(
            f"SELECT seq, trace_id, start_ns FROM {table} WHERE seq > {before}" for table in tables
        )
        con.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE fresh AS
            SELECT seq, trace_id, start_ns FROM ({fresh}) ORDER BY seq LIMIT {self._pass_spans}
            """
        )
        con.execute(
            """
            CREATE OR REPLACE TEMP TABLE new_traces AS
            SELECT trace_id, min(start_ns) AS first_ns, max(start_ns) AS last_ns FROM fresh GROUP BY trace_id
            """
        )
        upto = con.execute("SELECT coalesce(max(seq), ?) FROM fresh", [before]).fetchall()[0][0]
        return before, int(upto)

    def _take_due(self, moment: datetime) -> None:
        self._con.execute(
            """
            CREATE OR REPLACE TEMP TABLE due_traces AS
            SELECT DISTINCT trace_id FROM core._trace_tasks
            WHERE task_id IN (SELECT task_id FROM core.tasks WHERE next_due_at <= ? AND NOT frozen)
            """,
            [moment],
        )

    def _derive(self, until: str | None = None) -> None:
        con = self._con
        self._read_touched_spans()
        for model in models():
            if model.name == "run_steps":
                self._close()
                self._price()
            elif model.name == "tasks":
                self._recall()
            con.execute(f"CREATE OR REPLACE TEMP TABLE {model.name} AS\n{self._sql[model.name]}")
            if model.name == until:
                return

    def _read_touched_spans(self) -> None:
        """Every raw row of the new traces, bounded by time: zone maps do the work of an index."""
        con = self._con
        con.execute(
            """
            CREATE OR REPLACE TEMP TABLE known_new AS
            SELECT t.trace_id, t.first_ns, t.last_ns FROM core._traces t SEMI JOIN new_traces n ON n.trace_id = t.trace_id
            """
        )
        low, high = con.execute(
            """
            SELECT min(first_ns), max(last_ns)
            FROM (SELECT first_ns, last_ns FROM known_new UNION ALL SELECT first_ns, last_ns FROM new_traces)
            """
        ).fetchall()[0]
        con.execute(
            """
            CREATE OR REPLACE TEMP TABLE touched_spans AS
            SELECT s.* FROM spans s SEMI JOIN new_traces n ON n.trace_id = s.trace_id
            WHERE s.start_ns BETWEEN ? AND ?
            """,
            [low if low is not None else 0, high if high is not None else -1],
        )

    def _close(self) -> None:
        """Fill `touched` (all traces to decide again) and `kept_steps` (those of them without new spans)."""
        con = self._con
        con.execute("CREATE OR REPLACE TEMP TABLE touched_keys AS SELECT DISTINCT md5_number_lower(key) AS key, trace_id FROM join_keys")
        con.execute(
            """
            CREATE OR REPLACE TEMP TABLE touched AS
            WITH first AS (
              SELECT trace_id FROM new_traces UNION SELECT trace_id FROM due_traces
            ),
            keys AS (
              SELECT key FROM touched_keys
              UNION SELECT k.key FROM core._join_keys k SEMI JOIN first f ON f.trace_id = k.trace_id
            ),
            near AS (
              SELECT trace_id FROM first UNION SELECT k.trace_id FROM core._join_keys k SEMI JOIN keys y ON y.key = k.key
            )
            SELECT trace_id FROM near
            UNION
            SELECT m.trace_id FROM core._trace_tasks m
            SEMI JOIN (SELECT t.task_id FROM core._trace_tasks t SEMI JOIN near n ON n.trace_id = t.trace_id) o ON o.task_id = m.task_id
            """
        )
        con.execute(
            """
            CREATE OR REPLACE TEMP TABLE old_traces AS
            SELECT t.* FROM core._traces t SEMI JOIN touched u ON u.trace_id = t.trace_id
            """
        )
        con.execute(
            """
            CREATE OR REPLACE TEMP TABLE old_tasks AS
            SELECT DISTINCT t.task_id FROM core._trace_tasks t SEMI JOIN touched u ON u.trace_id = t.trace_id
            """
        )
        low, high = con.execute("SELECT min(first_ns), max(last_ns) FROM old_traces ANTI JOIN new_traces USING (trace_id)").fetchall()[0]
        con.execute(
            """
            CREATE OR REPLACE TEMP TABLE kept_steps AS
            SELECT * EXCLUDE (task_id) FROM work.steps s
            WHERE s.start_ns BETWEEN ? AND ?
              AND s.trace_id IN (SELECT trace_id FROM touched ANTI JOIN new_traces USING (trace_id))
            """,
            [low if low is not None else 0, high if high is not None else -1],
        )

    def _price(self) -> None:
        """Resolve the price of every (provider, model) seen for the first time."""
        con = self._con
        if self._prices is not None:
            unseen = con.execute(
                """
                SELECT DISTINCT coalesce(provider, ''), model FROM new_steps
                WHERE is_leaf_model AND model IS NOT NULL AND input_tokens IS NOT NULL
                EXCEPT SELECT provider, model FROM core.model_prices
                """
            ).fetchall()
            for provider, model in unseen:
                rows = self._prices.rows(provider, model)
                # an unpriced model is remembered too, as a row without prices: asked once, and visible as unpriced
                for row in rows or [(provider, model, None, None, None, None, None, None, None, "unpriced")]:
                    con.execute("INSERT INTO core.model_prices VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", list(row))
        con.execute(
            """
            CREATE OR REPLACE TEMP TABLE model_prices AS
            SELECT * FROM core.model_prices
            WHERE (provider, model) IN (SELECT DISTINCT (coalesce(provider, ''), model) FROM new_steps WHERE is_leaf_model)
            """
        )

    def _recall(self) -> None:
        """What earlier passes said of the touched tasks and a derivation cannot know: revisions and first sightings."""
        con = self._con
        con.execute(
            """
            CREATE OR REPLACE TEMP TABLE kept_revisions AS
            SELECT task_id, count(*) AS revision FROM core.revisions
            WHERE task_id IN (SELECT task_id FROM old_tasks) GROUP BY task_id
            """
        )
        con.execute(
            """
            CREATE OR REPLACE TEMP TABLE kept_findings AS
            SELECT finding_id, min(found_at) AS found_at FROM core.findings
            WHERE task_id IN (SELECT task_id FROM old_tasks) GROUP BY finding_id
            """
        )

    def _keep(self, moment: datetime, upto: int) -> None:
        """Replace the rows of the touched traces and tasks. Work first, core with its watermark last.

        DuckDB writes one attached file a transaction, so a pass that dies in between has moved no watermark and is
        simply done again.
        """
        con = self._con
        with _transaction(con):
            for name in (model.name for model in models() if model.kept == "work"):
                low, high, known = con.execute("SELECT min(first_ns), max(last_ns), count(*) FROM old_traces").fetchall()[0]
                if known:
                    con.execute(
                        f"DELETE FROM work.{name} WHERE start_ns BETWEEN ? AND ? AND trace_id IN (SELECT trace_id FROM old_traces)",
                        [low, high],
                    )
                con.execute(f"INSERT INTO work.{name} BY NAME SELECT * FROM {name}")
        with _transaction(con):
            self._keep_core(moment, upto)

    def _keep_core(self, moment: datetime, upto: int) -> None:
        con = self._con
        some_old = self._count("old_tasks") > 0
        if some_old:
            con.execute("CREATE OR REPLACE TEMP TABLE old_events AS SELECT * FROM core.sli_events WHERE task_id IN (SELECT task_id FROM old_tasks)")
            if not self._rebuilding:
                self._note_revisions(moment)
        else:
            con.execute("CREATE OR REPLACE TEMP TABLE old_events AS SELECT * FROM sli_events LIMIT 0")
        for model in models():
            if model.kept == "core":
                if some_old:
                    con.execute(f"DELETE FROM core.{model.name} WHERE task_id IN (SELECT task_id FROM old_tasks)")
                con.execute(f"INSERT INTO core.{model.name} BY NAME SELECT * FROM {model.name}")
        self._keep_hours()
        if some_old:
            con.execute("DELETE FROM core.task_aliases WHERE task_id IN (SELECT task_id FROM old_tasks)")
        con.execute("INSERT INTO core.task_aliases SELECT DISTINCT own_id, task_id FROM task_runs WHERE own_id <> task_id")
        if self._count("old_traces"):
            con.execute("DELETE FROM core._trace_tasks WHERE trace_id IN (SELECT trace_id FROM old_traces)")
            con.execute("DELETE FROM core._traces WHERE trace_id IN (SELECT trace_id FROM old_traces)")
        con.execute("INSERT INTO core._trace_tasks SELECT DISTINCT trace_id, task_id FROM task_runs")
        con.execute("INSERT INTO core._traces SELECT trace_id, min(start_ns), max(start_ns) FROM steps GROUP BY trace_id")
        if self._count("known_new"):
            con.execute("DELETE FROM core._join_keys WHERE trace_id IN (SELECT trace_id FROM known_new)")
        con.execute("INSERT INTO core._join_keys SELECT key, trace_id FROM touched_keys")
        con.execute("UPDATE core.pipeline SET derived_seq = ?, as_of = ?, last_pass_at = ?", [upto, moment, _naive(None)])

    def _note_revisions(self, moment: datetime) -> None:
        """A decided verdict that changes is a row in `revisions`; the event itself moves, silently it never does."""
        con = self._con
        con.execute(
            """
            INSERT INTO core.revisions
            SELECT o.task_id, o.sli, o.subject_id, o.verdict, coalesce(n.verdict, 'withdrawn'), ?,
              CASE WHEN n.subject_id IS NULL THEN 'late_span' WHEN o.task_id <> n.task_id THEN 'joined' ELSE 'late_span' END
            FROM old_events o
            LEFT JOIN sli_events n ON n.sli = o.sli AND n.subject_id = o.subject_id
            WHERE o.verdict IN ('good', 'bad') AND o.settled AND coalesce(n.verdict, 'withdrawn') <> o.verdict
            """,
            [moment],
        )

    def _keep_hours(self) -> None:
        con = self._con
        con.execute(
            """
            CREATE OR REPLACE TEMP TABLE touched_hours AS
            SELECT DISTINCT date_trunc('hour', event_time) AS hour
            FROM (SELECT event_time FROM old_events UNION ALL SELECT event_time FROM sli_events)
            """
        )
        con.execute("DELETE FROM core.sli_hourly WHERE hour IN (SELECT hour FROM touched_hours)")
        low, high = con.execute("SELECT min(hour), max(hour) FROM touched_hours").fetchall()[0]
        con.execute(
            """
            INSERT INTO core.sli_hourly
            SELECT sli, agent, task_type, service, environment, date_trunc('hour', event_time) AS hour,
              count(*) FILTER (WHERE verdict = 'good'), count(*) FILTER (WHERE verdict = 'bad'),
              count(*) FILTER (WHERE verdict = 'unknown'), count(*) FILTER (WHERE verdict = 'excluded'),
              sum(value) FILTER (WHERE verdict IN ('good', 'bad')), NULL
            FROM core.sli_events
            WHERE event_time >= ? AND event_time < ?::TIMESTAMP + INTERVAL 1 HOUR
              AND date_trunc('hour', event_time) IN (SELECT hour FROM touched_hours)
            GROUP BY ALL
            """,
            [low, high],
        )


@contextmanager
def _transaction(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    con.execute("BEGIN")
    try:
        yield
    except BaseException:
        con.execute("ROLLBACK")
        raise
    con.execute("COMMIT")


def _naive(moment: datetime | None) -> datetime:
    if moment is None:
        return datetime.now(UTC).replace(tzinfo=None)
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
