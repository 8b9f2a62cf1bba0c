-- one row per raw span delivery of the task's traces (re-deliveries visible)
-- inputs: spans, runs
-- parameters: id (a task_id)
-- The bounds on start_ns let DuckDB skip row groups; an hour of slack takes in spans of skewed clocks.
WITH bounds AS (
    SELECT
        epoch_ns(min(started_at)) - 3600000000000 AS low,
        epoch_ns(max(coalesce(ended_at, started_at))) + 3600000000000 AS high
    FROM runs
    WHERE task_id = $id
)
SELECT
    make_timestamp_ns(start_ns) AS started_at, name, kind, status, status_message,
    (end_ns - start_ns) / 1e9 AS seconds, service, scope, trace_id, span_id, parent_span_id, flags,
    attributes, events
FROM spans
WHERE start_ns BETWEEN (SELECT low FROM bounds) AND (SELECT high FROM bounds)
  AND trace_id IN (SELECT trace_id FROM runs WHERE task_id = $id)
ORDER BY start_ns, seq
LIMIT 2000
