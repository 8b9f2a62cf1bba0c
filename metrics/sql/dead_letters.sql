-- Grain: one row per dead letter: work that was parked, or that fails alike until everyone gives up.
-- Inputs: tasks, task_runs, run_verdicts, detector_limits.
-- A conversation is poisoned when its last tasks all failed with the same error, and one that will not pass by itself.
WITH failures AS (
  SELECT
    t.task_id, t.conversation_id, t.outcome, t.started_at, t.rule, t.evidence,
    r.root_error_class AS error_class, r.root_span_id
  FROM tasks t
  JOIN task_runs m USING (task_id)
  JOIN run_verdicts r USING (run_id)
  QUALIFY row_number() OVER (PARTITION BY t.task_id ORDER BY r.dropped, m.position DESC) = 1
),
poisoned AS (
  SELECT
    *,
    sum(CASE WHEN outcome = 'failed' AND error_class IS NOT DISTINCT FROM before_class THEN 0 ELSE 1 END)
      OVER (PARTITION BY conversation_id ORDER BY started_at, task_id) AS streak
  FROM (
    SELECT *, lag(CASE WHEN outcome = 'failed' THEN error_class END) OVER (PARTITION BY conversation_id ORDER BY started_at, task_id) AS before_class
    FROM failures
    WHERE conversation_id IS NOT NULL
  )
),
in_a_row AS (
  SELECT
    *,
    count(*) OVER (PARTITION BY conversation_id, streak) AS alike,
    row_number() OVER (PARTITION BY conversation_id ORDER BY started_at DESC, task_id DESC) AS from_end,
    list(root_span_id) OVER (PARTITION BY conversation_id, streak ORDER BY started_at, task_id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS span_ids
  FROM poisoned
),
-- every run of one task failed, and the last retry was the last
exhausted AS (
  SELECT m.task_id, count(*) AS runs, list(r.root_span_id ORDER BY m.position) AS span_ids
  FROM task_runs m
  JOIN run_verdicts r USING (run_id)
  GROUP BY m.task_id
  HAVING bool_and(r.verdict = 'failed')
)
SELECT task_id, 'dead_letter.stated' AS rule, 'parked after its retries were exhausted' AS detail, evidence
FROM failures
WHERE outcome = 'dead_letter'
UNION ALL
SELECT f.task_id, 'dead_letter.poisoned_conversation', alike || ' tasks of one conversation in a row failed with ' || error_class,
  list_filter(span_ids, lambda s: s IS NOT NULL)
FROM in_a_row f, detector_limits d
WHERE from_end = 1 AND outcome = 'failed' AND error_class IS NOT NULL AND alike >= d.failures_alike
  AND retry_class(f.error_class, f.error_class) <> 'retryable'
UNION ALL
SELECT e.task_id, 'dead_letter.retries_exhausted', e.runs || ' runs of the same work failed, and nobody started another', list_filter(e.span_ids, lambda s: s IS NOT NULL)
FROM exhausted e
JOIN tasks t USING (task_id), detector_limits d
WHERE t.outcome = 'failed' AND e.runs >= d.failures_alike
