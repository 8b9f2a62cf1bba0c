-- Grain: one row per run: the task it is part of, its place in it, and the intent it serves.
-- Inputs: run_verdicts, links.
-- A task is a connected set of runs. Its id is the stated one, else a hash of its earliest run; the ids its other runs
-- would have had alone stay valid as aliases.
WITH RECURSIVE ranked AS (
  SELECT run_id, row_number() OVER (ORDER BY start_ns, run_id) AS place FROM run_verdicts
),
pairs AS (
  SELECT run_id AS a, earlier AS b FROM links UNION SELECT earlier, run_id FROM links
),
labelled(run_id, place) USING KEY (run_id) AS (
  SELECT run_id, place FROM ranked
  UNION ALL
  SELECT p.a, min(l.place)
  FROM labelled l
  JOIN pairs p ON p.b = l.run_id
  JOIN recurring.labelled r ON r.run_id = p.a
  WHERE l.place < r.place
  GROUP BY p.a
),
named AS (
  SELECT
    r.*, l.place AS component,
    -- the first run of a trace is named by the trace, so that a trace id leads to its task; further ones by their root too
    'task-' || left(md5(CASE WHEN row_number() OVER (PARTITION BY r.trace_id ORDER BY r.start_ns, r.run_id) = 1 THEN r.trace_id ELSE r.run_id END), 16) AS own_id
  FROM run_verdicts r
  JOIN labelled l USING (run_id)
),
grouped AS (
  SELECT
    *,
    coalesce(min(task_id_stated) OVER whole, first_value(own_id) OVER (whole ORDER BY start_ns, run_id)) AS task_id,
    row_number() OVER (whole ORDER BY start_ns, run_id) AS position,
    last_value(input_id IGNORE NULLS) OVER earlier AS input_id_before,
    last_value(rule) OVER earlier AS rule_before,
    last_value(CASE WHEN len(user_texts) > 0 THEN user_texts END IGNORE NULLS) OVER earlier AS texts_before
  FROM named
  WINDOW
    whole AS (PARTITION BY component),
    earlier AS (PARTITION BY component ORDER BY start_ns, run_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT
  run_id, trace_id, task_id, own_id, position,
  -- a new user input opens a new intent; a resume, an approval, a retry or a redelivery of the same input does not
  sum(CASE
    WHEN position > 1
         AND coalesce(input_id <> input_id_before, len(user_texts) > 0 AND NOT list_has_any(user_texts, texts_before), false)
         AND coalesce(trigger, 'start') NOT IN ('resume', 'retry', 'redelivery')
         -- the words that answer the run's own question are a decision, no new request
         AND coalesce(rule_before, '') <> 'run.paused.answer_asks' THEN 1 ELSE 0 END)
    OVER (PARTITION BY task_id ORDER BY start_ns, run_id) AS intent
FROM grouped
