-- All traces to decide again: the new and the due ones, what shares a key with them, and the other traces of their tasks.
-- One hop is enough: a join depends only on runs that share the key, and whoever is joined already is in the same task.
-- Inputs: join_keys, new_traces, due_traces, core._join_keys, core._traces, core._trace_tasks, work.steps.
CREATE OR REPLACE TEMP TABLE touched_keys AS
SELECT DISTINCT md5_number_lower(key) AS key, trace_id, md5_number_lower(gate) AS gate FROM join_keys;
CREATE OR REPLACE TEMP TABLE touched AS
WITH first AS (
  SELECT trace_id, md5_number_lower(trace_id) AS trace FROM (SELECT trace_id FROM new_traces UNION SELECT trace_id FROM due_traces)
),
asked AS (
  SELECT key, gate FROM touched_keys
  UNION
  SELECT k.key, k.gate FROM core._join_keys k SEMI JOIN first f ON f.trace = k.trace
),
-- one look at the many keys: what stands under the asked ones, and under their gates
held AS (
  SELECT k.key, k.trace
  FROM core._join_keys k
  SEMI JOIN (SELECT key FROM asked UNION SELECT gate FROM asked WHERE gate IS NOT NULL) a ON a.key = k.key
),
keys AS (
  SELECT key
  FROM asked
  WHERE gate IS NULL OR gate IN (SELECT key FROM held) OR gate IN (SELECT key FROM touched_keys)
),
near AS (
  SELECT trace FROM first
  UNION
  SELECT h.trace FROM held h SEMI JOIN keys y ON y.key = h.key
),
their_tasks AS (
  SELECT DISTINCT t.task FROM core._trace_tasks t SEMI JOIN near n ON n.trace = t.trace
)
SELECT trace_id FROM first
UNION
SELECT t.trace_id FROM core._trace_tasks t SEMI JOIN near n ON n.trace = t.trace
UNION
SELECT t.trace_id FROM core._trace_tasks t SEMI JOIN their_tasks o ON o.task = t.task;
CREATE OR REPLACE TEMP TABLE old_traces AS
SELECT t.* FROM core._traces t SEMI JOIN touched u ON u.trace_id = t.trace_id;
CREATE OR REPLACE TEMP TABLE old_tasks AS
SELECT DISTINCT t.task_id FROM core._trace_tasks t SEMI JOIN (SELECT md5_number_lower(trace_id) AS trace FROM touched) u ON u.trace = t.trace;
-- steps of touched traces without new spans are taken as they were kept
CREATE OR REPLACE TEMP TABLE kept_traces AS
SELECT o.* FROM old_traces o ANTI JOIN new_traces n ON n.trace_id = o.trace_id;
SET VARIABLE low = (SELECT coalesce(min(first_ns), 0) FROM kept_traces);
SET VARIABLE high = (SELECT coalesce(max(last_ns), -1) FROM kept_traces);
CREATE OR REPLACE TEMP TABLE kept_steps AS
SELECT s.* EXCLUDE (task_id, started_at, ended_at)
FROM work.steps s
SEMI JOIN kept_traces k ON k.trace_id = s.trace_id
WHERE s.start_ns BETWEEN getvariable('low') AND getvariable('high');
