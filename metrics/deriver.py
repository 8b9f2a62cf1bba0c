"""Runs the SQL files over what is new or due, and keeps their results.

One pass: take the traces with new spans and the tasks that are due, close them under every key by which they could
belong together, run `metrics/sql/_order` over them, replace their rows. A rebuild is the same pass with everything
new, so there is one set of SQL and no second path. What a pass does besides is in `metrics/sql/passes/`.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import duckdb

from metrics import functions, rules
from metrics.conventions import Compiled, compile_families, shipped
from metrics.conventions.logs import compile_logs
from metrics.conventions.logs import shipped as log_families
from metrics.manifest import Model, filled, log_sql, models, pass_sql, views
from metrics.settings import MetricsSettings
from metrics.transaction import transaction

log = logging.getLogger("agent_slo.metrics")

PASS_SPANS = 100_000
"""Spans a pass takes at most: bounds its memory and the time until the next one sees fresh spans."""

# Long texts: compressed on disk. Everything else is short or compresses by itself.
_CONTENT = ("arguments", "result", "user_text", "output_text", "decision_arguments", "error_message")


_SPENT = {
    "fields": ("touched_spans", "touched_logs", "deliveries"),
    "understood": ("fields",),
    "new_steps": ("understood", "tree"),
    "run_steps": ("new_steps", "kept_steps"),
}
"""What no later file reads once one is made. These tables hold the prompts of a whole pass, uncompressed."""

_WRITTEN = "_written"
"""The row of `core._layout` that holds the signature of the SQL texts; the others hold that of a table's columns."""

_OF_THE_DATA = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)
"""Errors that a value in a trace can cause. Everything else (disk, memory, an interrupt, SQL of ours) is no trace's
fault and is raised."""


class Prices(Protocol):
    """Where prices come from: rows of `core.model_prices` for one provider and model."""

    @property
    def by_service(self) -> bool:
        """Whether prices differ by service, so that they are asked for per service."""
        ...

    def rows(self, provider: str, model: str, service: str | None) -> list[tuple[object, ...]]:
        """Return rows of `metrics.prices.COLUMNS`; no rows when the model is unpriced.

        Prices in USD per million tokens. `provider` and `service` are '' where none is stated; `service` is
        None when prices do not differ by it.
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
        self._compiled: dict[frozenset[str] | None, Compiled] = {}
        self._sql = {model.name: filled(model, self._conventions(None)) for model in models()}
        self._rebuilding = False
        self._late = 0
        self._redelivered = 0
        self._spans = 0
        functions.register(con)
        rules.fill(con, self._settings)

    # ---- tables -----------------------------------------------------------------------------------------------

    def migrate(self) -> bool:
        """Create the kept tables, with the columns the SQL files give. Return whether any changed.

        A table whose columns differ from what the SQL gives now is dropped with all that was derived, and everything
        is derived again from the raw spans, which are never touched.
        """
        con = self._con
        con.execute(pass_sql("state"))
        if "trace_id" in self._con.table("core._join_keys").columns:
            con.execute(pass_sql("numbers"))
        con.execute(pass_sql("labels"))
        self._tell_logs()
        known = dict(con.execute("SELECT name, signature FROM core._layout").fetchall())
        # running all files to see their columns takes most of a second: the same texts give the same columns
        written = hashlib.sha256("\n".join([duckdb.__version__, *self._sql.values()]).encode()).hexdigest()
        if known.pop(_WRITTEN, None) == written:
            self._make_views()
            return False
        shapes = self._shapes()
        stale = sorted(name for name, (signature, _) in shapes.items() if known.get(name) != signature)
        if not stale:
            con.execute("DELETE FROM core._layout WHERE name = ?", [_WRITTEN])
            con.execute("INSERT INTO core._layout VALUES (?, ?)", [_WRITTEN, written])
            self._make_views()
            return False
        if known:
            log.warning(
                "derived tables have other columns now (%s): deriving everything again", ", ".join(stale)
            )
        frozen = self._set_frozen_aside() if known else []
        for model in models():
            if model.kept:
                con.execute(f"DROP TABLE IF EXISTS {model.kept}.{model.name}")
                con.execute(f"CREATE TABLE {model.kept}.{model.name} ({shapes[model.name][1]})")
        self._bring_frozen_back(frozen)
        con.execute(pass_sql("frozen_facts"))
        self._forget()
        con.execute("DELETE FROM core._layout")
        signatures = {name: signature for name, (signature, _) in shapes.items()} | {_WRITTEN: written}
        con.executemany("INSERT INTO core._layout VALUES (?, ?)", [list(pair) for pair in signatures.items()])
        self._make_views()
        return True

    def _make_views(self) -> None:
        for name, sql in views():
            self._con.execute(f"CREATE OR REPLACE VIEW core.{name} AS\n{sql}")

    def _shapes(self) -> dict[str, tuple[str, str]]:
        """Run all files over nothing: name of each kept model -> (signature, column definitions)."""
        con = self._con
        self._bind(datetime(2000, 1, 1))
        con.execute("CREATE OR REPLACE TEMP TABLE touched_spans AS SELECT * FROM spans LIMIT 0")
        con.execute("CREATE OR REPLACE TEMP TABLE model_prices AS SELECT * FROM core.model_prices LIMIT 0")
        con.execute("CREATE OR REPLACE TEMP TABLE kept_revisions (task_id VARCHAR, revision BIGINT)")
        con.execute("CREATE OR REPLACE TEMP TABLE kept_findings (finding_id VARCHAR, found_at TIMESTAMP)")
        shapes = {}
        for model in models():
            if model.name == "run_steps":
                # it reads its own rows of earlier passes back: here, none, in the shape it gives
                con.execute(
                    "CREATE OR REPLACE TEMP TABLE kept_steps AS SELECT * EXCLUDE (run_root), NULL::VARCHAR AS run_id, "
                    "NULL::DOUBLE AS computed_cost_usd, NULL::DOUBLE AS cost_usd FROM new_steps LIMIT 0"
                )
            if model.name == "retry_meetings":
                con.execute("CREATE OR REPLACE TEMP TABLE met_moments AS SELECT * FROM retry_moments LIMIT 0")
            elif model.name == "baselines":
                con.execute(
                    "CREATE OR REPLACE TEMP TABLE known_baselines AS "
                    "SELECT series, day, n, value FROM core.baselines LIMIT 0"
                )
            self._make(model)
            if model.kept:
                described = con.execute(f"DESCRIBE {model.name}").fetchall()
                columns = [
                    f'"{name}" {kind}'
                    + (" USING COMPRESSION zstd" if kind == "VARCHAR" and name in _CONTENT else "")
                    for name, kind, *_ in described
                ]
                shapes[model.name] = hashlib.sha256(repr(described).encode()).hexdigest(), ", ".join(columns)
        return shapes

    def _forget(self) -> None:
        """Drop everything derived; raw spans, prices asked for and operators' tables stay."""
        con = self._con
        # What retention froze cannot be derived again: its spans are gone.
        decided = "task_id IN (SELECT task_id FROM core.tasks WHERE frozen)"
        with transaction(con):
            for model in models():
                if model.kept == "work":
                    con.execute(f"DELETE FROM work.{model.name} WHERE NOT coalesce({decided}, false)")
        with transaction(con):
            kept = [model.name for model in models() if model.kept == "core" and model.name != "tasks"]
            for name in (*kept, "task_aliases", "tasks"):
                con.execute(f"DELETE FROM core.{name} WHERE NOT coalesce({decided}, false)")
            for name in (
                "_join_keys",
                "_traces",
                "_trace_tasks",
                "_recheck",
                "baselines",
                "sli_hourly",
                "model_prices",
                "parked_traces",
            ):
                con.execute(f"DELETE FROM core.{name}")
            con.execute("UPDATE core.pipeline SET derived_seq = 0")
            con.execute("CREATE OR REPLACE TEMP TABLE old_events AS SELECT * FROM core.sli_events")
            con.execute("CREATE OR REPLACE TEMP TABLE sli_events AS SELECT * FROM core.sli_events LIMIT 0")
            con.execute(pass_sql("hours"))

    # ---- retention --------------------------------------------------------------------------------------------

    def freeze(self, gone_seq: int) -> int:
        """Make the tasks final that have a span with a seq up to `gone_seq`, which is about to be removed.

        Their steps and attempts go, with what their actions were called with; verdicts and SLI events stay. Neither a
        rebuild nor a late span changes them. Safe to repeat. Returns how many tasks were not frozen before.
        """
        con = self._con
        con.execute(f"SET VARIABLE gone_seq = {int(gone_seq)}")
        con.execute(pass_sql("freeze"))
        with transaction(con):
            con.execute(pass_sql("keep_frozen"))
        with transaction(con):
            for model in models():
                if model.kept == "work":
                    con.execute(
                        f"DELETE FROM work.{model.name} WHERE trace_id IN (SELECT trace_id FROM gone_traces)"
                    )
        return self._count("frozen_tasks")

    def forget_tasks(self, before: datetime) -> int:
        """Remove frozen tasks that ended before a moment (naive UTC), with everything kept of them; return how many."""
        con = self._con
        con.execute(
            "CREATE OR REPLACE TEMP TABLE old_tasks AS SELECT task_id FROM core.tasks "
            "WHERE frozen AND coalesce(ended_at, started_at) < ?",
            [before],
        )
        with transaction(con):
            for name in (
                *(model.name for model in models() if model.kept == "core"),
                "task_aliases",
                "revisions",
            ):
                con.execute(f"DELETE FROM core.{name} WHERE task_id IN (SELECT task_id FROM old_tasks)")
        return self._count("old_tasks")

    def _set_frozen_aside(self) -> list[str]:
        """Copy the rows of frozen tasks out of tables that are about to be dropped; return which tables had any."""
        present = {row[0] for row in self._con.execute("SELECT name FROM core._layout").fetchall()}
        found = []
        for model in models():
            if model.kept == "core" and model.name in present and "tasks" in present:
                self._con.execute(
                    f"CREATE OR REPLACE TEMP TABLE aside_{model.name} AS SELECT * FROM core.{model.name} "
                    "WHERE task_id IN (SELECT task_id FROM core.tasks WHERE frozen)"
                )
                if self._count(f"aside_{model.name}"):
                    found.append(model.name)
        return found

    def _bring_frozen_back(self, names: list[str]) -> None:
        """Put them into the new tables, column by column as far as both have it."""
        con = self._con
        for name in names:
            new = {row[0]: row[1] for row in con.execute(f"DESCRIBE core.{name}").fetchall()}
            both = [row[0] for row in con.execute(f"DESCRIBE aside_{name}").fetchall() if row[0] in new]
            columns = ", ".join(f'"{column}"' for column in both)
            values = ", ".join(f'TRY_CAST("{column}" AS {new[column]})' for column in both)
            con.execute(f"INSERT INTO core.{name} ({columns}) SELECT {values} FROM aside_{name}")

    # ---- passes -----------------------------------------------------------------------------------------------

    def run(self, as_of: datetime | None = None) -> PassReport:
        """Run one pass: the oldest spans not yet derived (at most `pass_spans` of them) and the tasks due at `as_of`.

        `as_of`: the moment to decide at, UTC (naive or aware); now if not given.
        """
        started = time.perf_counter()
        moment = _naive(as_of)
        self._bind(moment)
        before, upto = self._take_new()
        self._con.execute(pass_sql("due"))
        traces = self._count("new_traces")
        if traces == 0 and self._count("due_traces") == 0:
            if upto > before or self._never_ran():
                self._mark(moment, upto)
            return PassReport(0, 0, 0, time.perf_counter() - started, upto)
        try:
            self._derive()
        except _OF_THE_DATA as error:
            self._park(moment, error)
            return self.run(moment)
        self._keep(moment, upto)
        spans, tasks = self._spans, self._count("tasks")
        if self._count("core._recheck"):
            tasks += self._decide_again(moment, upto)
        return PassReport(spans, traces, tasks, time.perf_counter() - started, upto)

    def _park(self, moment: datetime, error: Exception) -> None:
        """Find the new trace that no file can take, by halves, and set it aside; raise `error` if it is no single one.

        A parked trace is in `parked_traces` with the error, its raw spans stay, and a rebuild tries it again.
        """
        con = self._con
        con.execute("CREATE OR REPLACE TEMP TABLE suspects AS SELECT * FROM new_traces")
        con.execute("DELETE FROM due_traces")
        left = [row[0] for row in con.execute("SELECT trace_id FROM suspects ORDER BY trace_id").fetchall()]
        if not left or (found := self._failure(left)) is None:
            raise error
        while len(left) > 1:
            half = left[: len(left) // 2]
            cause = self._failure(half)
            if cause is None:
                half = left[len(left) // 2 :]
                cause = self._failure(half)
            if cause is None:
                raise error
            left, found = half, cause
        reason = str(found).splitlines()[0][:500]
        log.error("trace %s cannot be derived and is set aside: %s", left[0], reason)
        con.execute("INSERT INTO core.parked_traces VALUES (?, ?, ?)", [left[0], reason, moment])

    def _failure(self, traces: list[str]) -> duckdb.Error | None:
        """What deriving only these of the suspects raises."""
        self._con.execute(
            "CREATE OR REPLACE TEMP TABLE new_traces AS SELECT * FROM suspects WHERE list_contains(?, trace_id)",
            [traces],
        )
        try:
            self._derive()
        except _OF_THE_DATA as error:
            return error
        return None

    def _decide_again(self, moment: datetime, upto: int) -> int:
        """Decide the tasks whose verdict hangs on what this pass changed elsewhere; return how many.

        What they are decided by (their calls, their costs) does not change with it, so one round is enough.
        """
        self._con.execute("DELETE FROM new_traces")
        self._con.execute(pass_sql("due"))
        self._derive()
        self._keep(moment, upto)
        return self._count("tasks")

    def catch_up(
        self, as_of: datetime | None = None, progress: Callable[[PassReport], None] | None = None
    ) -> int:
        """Run passes at one moment until every stored span is derived and nothing is due. Return `derived_seq`."""
        moment = _naive(as_of)
        while True:
            report = self.run(moment)
            if progress:
                progress(report)
            last = self._con.execute("SELECT coalesce(max(seq), 0) FROM spans").fetchall()[0][0]
            if report.derived_seq >= last and report.traces == 0:
                return report.derived_seq

    def rebuild(
        self, as_of: datetime | None = None, progress: Callable[[PassReport], None] | None = None
    ) -> int:
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

    def redelivered(self) -> int:
        """Return how many spans, or log records that tell of work, came again since the folder was made."""
        return int(self._con.execute("SELECT redelivered FROM core.pipeline").fetchall()[0][0])

    def explain(self, name: str, task_id: str, as_of: datetime | None = None) -> duckdb.DuckDBPyRelation:
        """Run the files up to `name` for one task only and return that file's rows. Keeps nothing.

        Raises `ValueError` that lists the files when none is called `name`.
        """
        if name not in self._sql:
            raise ValueError(f"no SQL file is named {name}; there are {', '.join(self._sql)}")
        self._bind(_naive(as_of))
        self._con.execute("SET VARIABLE task_id = ?", [task_id])
        self._con.execute(pass_sql("one_task"))
        self._derive(until=name)
        # what shares a conversation is decided together; shown is what belongs to the task alone
        shown = {
            "task_id": "task_id = getvariable('task_id')",
            "trace_id": "trace_id IN (SELECT trace_id FROM core._trace_tasks WHERE task_id = getvariable('task_id'))",
            "run_id": "run_id IN (SELECT run_id FROM core.runs WHERE task_id = getvariable('task_id'))",
        }
        table = self._con.table(name)
        column = next((column for column in shown if column in table.columns), None)
        return table.filter(shown[column]) if column else table

    # ---- the parts of a pass ----------------------------------------------------------------------------------

    def _bind(self, moment: datetime) -> None:
        self._con.execute(f"SET VARIABLE as_of = TIMESTAMP '{moment.isoformat(sep=' ')}'")

    def _count(self, table: str) -> int:
        return int(self._con.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])

    def _never_ran(self) -> bool:
        return bool(self._con.execute("SELECT last_pass_at IS NULL FROM core.pipeline").fetchall()[0][0])

    def _mark(self, moment: datetime, upto: int) -> None:
        self._con.execute(
            "UPDATE core.pipeline SET derived_seq = ?, as_of = ?, last_pass_at = ?, "
            "late_after_retention = late_after_retention + ?, redelivered = redelivered + ?, "
            "counted_seq = greatest(counted_seq, ?)",
            [upto, moment, _naive(None), self._late, self._redelivered, upto],
        )
        self._late = self._redelivered = 0

    def _count_read(self) -> None:
        """Count the rows that were read, and of them what came again.

        A row that was counted once is not when it is derived again.
        """
        con = self._con
        self._spans = self._count("touched_spans")
        con.execute("SET VARIABLE counted_seq = (SELECT counted_seq FROM core.pipeline)")
        self._redelivered = int(con.execute(pass_sql("redelivered")).fetchall()[0][0])

    def _tell_logs(self) -> None:
        """Create `log_spans` (log records that tell of work, as spans) and `log_events` (what others say of a span).

        Both are empty where no logs are kept.
        """
        kept = "SELECT count(*) > 0 FROM duckdb_columns() WHERE table_name = 'logs' AND column_name = 'observed_ns'"
        with_logs = bool(self._con.execute(kept).fetchall()[0][0])
        nothing = (
            "CREATE OR REPLACE TEMP VIEW log_spans AS SELECT * FROM spans WHERE false; "
            "CREATE OR REPLACE TEMP VIEW log_events AS "
            "SELECT seq, trace_id, span_id, start_ns AS at_ns, start_ns AS observed_ns, name, attributes "
            "FROM spans WHERE false"
        )
        self._con.execute(log_sql(compile_logs(log_families())) if with_logs else nothing)

    def _conventions(self, only: frozenset[str] | None) -> Compiled:
        """Return the SQL pieces for the families whose spans a pass reads (all when None)."""
        if only not in self._compiled:
            stated = self._settings.conventions
            self._compiled[only] = compile_families(shipped(), stated.aliases, stated.roles, only)
        return self._compiled[only]

    def _make(self, model: Model) -> None:
        sql = self._sql[model.name]
        if model.name == "fields":
            found = self._con.execute("SELECT DISTINCT emitter FROM deliveries").fetchall()
            sql = filled(model, self._conventions(frozenset(emitter for (emitter,) in found)))
        self._con.execute(f"CREATE OR REPLACE TEMP TABLE {model.name} AS\n{sql}")

    def _take_new(self) -> tuple[int, int]:
        """Fill `new_traces` with the traces of the next spans; return the watermark before and after."""
        con = self._con
        before = self.derived_seq()
        rows = [
            f"SELECT seq, trace_id, start_ns FROM {table} WHERE seq > {before}"
            for table in self._sources(before)
        ]
        rows.append(f"SELECT seq, trace_id, start_ns FROM log_spans WHERE seq > {before}")
        rows.append(f"SELECT seq, trace_id, at_ns FROM log_events WHERE seq > {before}")
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE fresh AS "
            f"SELECT * FROM ({' UNION ALL '.join(rows)}) ORDER BY seq LIMIT {self._pass_spans}"
        )
        con.execute(pass_sql("new"))
        # a rebuild reads them again, so it does not count them again
        self._late = 0 if self._rebuilding else self._count("late_spans")
        upto = con.execute("SELECT coalesce(max(seq), ?) FROM fresh", [before]).fetchall()[0][0]
        con.execute(f"SET VARIABLE upto = {int(upto)}")
        return before, int(upto)

    def _derive(self, until: str | None = None) -> None:
        self._con.execute(pass_sql("read"))
        self._count_read()
        for model in models():
            if model.name == "call_costs":
                self._price()
            elif model.name == "run_steps":
                self._con.execute(pass_sql("close"))
            elif model.name == "tasks":
                self._con.execute(pass_sql("recall"))
            elif model.name == "retry_meetings":
                self._con.execute(pass_sql("meet"))
            elif model.name == "baselines":
                self._con.execute(pass_sql("baselines"))
            self._make(model)
            if model.name == until:
                return
            for spent in _SPENT.get(model.name, ()):
                self._con.execute(f"DROP TABLE {spent}")

    def _price(self) -> None:
        """Resolve the price of every (provider, model), and service where it matters, seen for the first time.

        An unpriced model is remembered too, as a row without prices: asked once, and visible as unpriced.
        """
        con = self._con
        by_service = self._prices is not None and self._prices.by_service
        con.execute(f"SET VARIABLE by_service = {by_service}")
        if self._prices is not None:
            for provider, model, service in con.execute(pass_sql("unseen_models")).fetchall():
                unpriced = (provider, model, *[None] * 7, "unpriced", service)
                for row in self._prices.rows(provider, model, service) or [unpriced]:
                    con.execute(
                        "INSERT INTO core.model_prices VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", list(row)
                    )
        con.execute(pass_sql("prices"))

    def _keep(self, moment: datetime, upto: int) -> None:
        """Replace the rows of the touched traces and tasks. Work first, core with its watermark last.

        DuckDB writes one attached file a transaction, so a pass that dies in between has moved no watermark and is
        simply done again.
        """
        con = self._con
        known = self._count("old_tasks") > 0
        if self._count("stale_baselines"):
            con.execute(pass_sql("mark_stale"))
        con.execute(pass_sql("peers"))
        con.execute(pass_sql("bounds"))
        with transaction(con):
            for model in models():
                if model.kept == "work":
                    # also what a pass that died before core had already put here
                    con.execute(
                        f"DELETE FROM work.{model.name} "
                        "WHERE start_ns BETWEEN getvariable('low') AND getvariable('high') "
                        "AND trace_id IN (SELECT trace_id FROM touched)"
                    )
                    con.execute(f"INSERT INTO work.{model.name} BY NAME SELECT * FROM {model.name}")
        with transaction(con):
            con.execute(pass_sql("old_events"))
            if not self._rebuilding:
                con.execute(pass_sql("revisions"))
            for model in models():
                if model.kept == "core":
                    if known:
                        bounded = " AND event_time >= getvariable('first_event')" * (
                            model.name == "sli_events"
                        )
                        con.execute(
                            f"DELETE FROM core.{model.name} "
                            f"WHERE task_id IN (SELECT task_id FROM old_tasks){bounded}"
                        )
                    con.execute(f"INSERT INTO core.{model.name} BY NAME SELECT * FROM {model.name}")
            con.execute(pass_sql("hours"))
            con.execute(pass_sql("keep_index"))
            con.execute(pass_sql("keep_baselines"))
            self._mark(moment, upto)


def _naive(moment: datetime | None) -> datetime:
    if moment is None:
        return datetime.now(UTC).replace(tzinfo=None)
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
