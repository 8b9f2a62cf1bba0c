"""How long the status of many objectives takes over many tasks: `python -m benchmarks.slo_status`.

Makes `sli_events` for the given number of tasks over 35 days in a temporary DuckDB file: an event of each SLI of whole
tasks, one attempt in every second task, and in every twentieth an event of the SLIs of faults. Evaluates objectives
that differ by agent and SLI, then the default pack split by agent and task type, and prints one JSON line with medians
in seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import duckdb

from metrics.openslo import default_objectives
from metrics.slo.evaluate import evaluate, write_status
from metrics.slo.history import histories, write_history
from metrics.slo.objective import EventSource, Objective
from metrics.slo.predicate import Compare

AS_OF = datetime(2026, 11, 29, 12)
EVENTS = """
CREATE TABLE sli_events AS
SELECT s.sli, 't' || i AS task_id, 't' || i AS subject_id,
       TIMESTAMP '2026-11-29 12:00:00' - to_milliseconds(CAST(i * (35 * 86400000.0 / $tasks) AS BIGINT))
           AS event_time,
       CASE WHEN hash(i, s.sli) % 100 < 2 THEN 'bad' WHEN hash(i, s.sli) % 100 = 2 THEN 'unknown'
            WHEN hash(i, s.sli) % 100 = 3 THEN 'excluded' ELSE 'good' END AS verdict,
       (hash(i) % 1000) / 2.0 AS value, 'agent-' || (i % 8) AS agent, 'type-' || (i % 8) % 3 AS task_type,
       'service-' || (i % 3) AS service, 'prod' AS environment, '1.0' AS app_version,
       CASE WHEN hash(i, s.sli) % 100 = 3 THEN 'maintenance' END AS excluded_reason, TRUE AS settled,
       CASE WHEN i % 2 = 0 THEN 'stated' ELSE 'inferred' END AS evidence
FROM range($tasks) t(i), (SELECT unnest($slis) AS sli, unnest($every) AS every) s
WHERE i % s.every = 0
ORDER BY event_time
"""


WHOLE = (
    "task_completion",
    "autonomous_completion",
    "human_intervention",
    "lost_task",
    "latency",
    "active_latency",
    "cost",
    "dead_letter",
)


def every(sli: str) -> int:
    """One task in so many has an event of this SLI."""
    return 1 if sli in WHOLE else 2 if sli == "duplicate_action" else 20


def objectives(count: int) -> list[Objective]:
    """`count` objectives: the default pack, then the same narrowed to one agent after another."""
    pack = [replace(o, per=()) for o in default_objectives()]
    found = list(pack)
    agent = 0
    while len(found) < count:
        for objective in pack:
            assert isinstance(objective.source, EventSource)
            source = replace(objective.source, where=Compare("agent", "=", f"agent-{agent}"))
            found.append(replace(objective, slo=f"{objective.slo}-{agent}", source=source))
        agent += 1
    return found[:count]


def timed(times: int, work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Median seconds of `times` runs by a clock; CPU time tells on a machine that others use as well."""
    taken = []
    for _ in range(times):
        start = clock()
        work()
        taken.append(clock() - start)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=2_000_000)
    parser.add_argument("--objectives", type=int, default=50)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        con = duckdb.connect(str(Path(folder) / "events.duckdb"))
        con.execute(f"SET threads = {options.threads}")
        con.execute("ATTACH ':memory:' AS core")
        chosen = objectives(options.objectives)
        pack = default_objectives()
        slis = sorted({o.source.sli for o in pack if isinstance(o.source, EventSource)})
        con.execute(EVENTS, {"tasks": options.tasks, "slis": slis, "every": [every(s) for s in slis]})
        events = con.execute("SELECT count(*) FROM sli_events").fetchone()
        rows = evaluate(con, chosen, AS_OF)
        points = histories(con, chosen, AS_OF)
        result = {
            "tasks": options.tasks,
            "events": events[0] if events else 0,
            "objectives": len(rows),
            "evaluate_s": timed(options.runs, lambda: evaluate(con, chosen, AS_OF)),
            "evaluate_cpu_s": timed(options.runs, lambda: evaluate(con, chosen, AS_OF), time.process_time),
            "pack_rows": len(evaluate(con, pack, AS_OF)),
            "pack_split_s": timed(options.runs, lambda: evaluate(con, pack, AS_OF)),
            "pack_split_cpu_s": timed(options.runs, lambda: evaluate(con, pack, AS_OF), time.process_time),
            "write_status_s": timed(options.runs, lambda: write_status(con, rows)),
            "history_points": len(points),
            "history_s": timed(options.runs, lambda: histories(con, chosen, AS_OF)),
            "history_cpu_s": timed(options.runs, lambda: histories(con, chosen, AS_OF), time.process_time),
            "write_history_s": timed(options.runs, lambda: write_history(con, points)),
        }
        con.close()
    print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in result.items()}))


if __name__ == "__main__":
    main()
