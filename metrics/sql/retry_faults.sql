-- Grain: one row per fault of a retry chain (task, chain, kind).
-- Inputs: retry_chains, tool_calls, task_runs, repeats, executions, interventions, tasks, retry_meetings, detector_limits.
-- The nine kinds of docs/definitions section 5.
WITH pairs AS (
  SELECT r.*, d.backoff_factor, coalesce(r.max_attempts, d.max_attempts) AS allowed
  FROM retry_chains r, detector_limits d
),
faults AS (
  SELECT task_id, chain_id, 'unbounded' AS kind, 'retry.unbounded' AS rule, place, span_id, before_span_id,
    name || ': ' || tries || ' tries, ' || allowed || ' allowed' AS detail
  FROM pairs
  WHERE place = allowed + 1 AND goes_on
  UNION ALL
  -- a tenth of a second is no wait that anyone chose
  SELECT task_id, chain_id, 'no_backoff',
    CASE WHEN wait_s < before_retry_after_s THEN 'retry.no_backoff.before_retry_after' ELSE 'retry.no_backoff.shorter_wait' END,
    place, span_id, before_span_id,
    name || ': waited ' || round(wait_s, 1) || ' s' ||
      CASE WHEN wait_s < before_retry_after_s THEN ', asked to wait ' || round(before_retry_after_s, 1) || ' s'
           ELSE ' after ' || round(earlier_wait_s, 1) || ' s the time before' END
  FROM pairs
  WHERE goes_on AND by_client AND before_outcome <> 'ok'
    AND (wait_s < before_retry_after_s - 0.1 OR (wait_s < backoff_factor * earlier_wait_s AND earlier_wait_s - wait_s > 0.1))
  UNION ALL
  -- a final answer of the receiver, or invalid arguments sent again by the client without being asked
  SELECT task_id, chain_id, 'non_retryable',
    CASE before_kind WHEN 'final' THEN 'retry.non_retryable.final_error' ELSE 'retry.non_retryable.invalid_arguments' END,
    place, span_id, before_span_id, name || ': tried again after ' || coalesce(error_class, 'a final error')
  FROM (SELECT * REPLACE (lag(error_class) OVER (PARTITION BY chain_id ORDER BY place) AS error_class) FROM pairs)
  WHERE goes_on AND before_outcome <> 'ok' AND NOT on_new_ground
    AND (before_kind = 'final' OR (before_kind = 'invalid' AND by_client AND attempt_no > 1))
    -- a model may be asked again with other messages (a shorter history); the same request is one that the client counts or that a new run repeats
    AND (role = 'tool' OR attempt_no > 1 OR run_id <> before_run_id)
  UNION ALL
  SELECT task_id, chain_id, 'same_args_after_rejection', 'retry.same_args_after_rejection',
    place, span_id, before_span_id, name || ': the same arguments again after they were refused'
  FROM pairs
  WHERE goes_on AND role = 'tool' AND before_outcome = 'refused' AND NOT on_new_ground
    AND (before_kind = 'other' OR (before_kind = 'invalid' AND NOT (by_client AND coalesce(attempt_no > 1, false))))
  UNION ALL
  SELECT task_id, chain_id, 'retried_after_success', 'retry.after_success', place, span_id, before_span_id,
    name || ': tried again although the try before had succeeded'
  FROM pairs
  WHERE goes_on AND role = 'tool' AND before_outcome = 'ok' AND by_client
  UNION ALL
  -- retries inside retries: two rounds of one call, each with tries of its own
  SELECT task_id, chain_id, 'amplification', 'retry.amplification', max(place), arg_max(span_id, place), arg_min(span_id, place),
    any_value(name) || ': ' || count(DISTINCT round) || ' rounds of retries, ' || count(*) || ' tries in all'
  FROM (SELECT *, count(*) OVER (PARTITION BY chain_id, round) AS in_round FROM pairs)
  WHERE in_round >= 2
  GROUP BY task_id, chain_id
  HAVING count(DISTINCT round) >= 2
  UNION ALL
  -- one try, an error that asks for another, and nobody tried again or went another way
  SELECT p.task_id, p.chain_id, 'missed_retry', 'retry.missed', p.place, p.span_id, NULL,
    CASE p.role WHEN 'model' THEN 'model call' ELSE p.name END || ': ' || coalesce(p.error_class, 'a passing error') || ' was treated as final'
  FROM pairs p
  JOIN tasks t USING (task_id)
  WHERE p.tries = 1 AND p.outcome <> 'ok' AND p.error_kind = 'retryable'
    -- what may have happened already is not safe to send again without a key
    AND (NOT p.is_side_effect OR p.outcome = 'refused' OR p.idempotency_key IS NOT NULL OR p.effect_class = 'idempotent_write')
    AND (t.outcome IN ('failed', 'unknown') OR p.role = 'report')
    AND NOT EXISTS (
      SELECT 1 FROM task_runs m JOIN task_runs n ON n.task_id = m.task_id AND n.position > m.position WHERE m.run_id = p.run_id)
    AND NOT EXISTS (
      SELECT 1 FROM tool_calls o
      WHERE o.task_id = p.task_id AND o.start_ns > p.start_ns AND ((o.role = p.role AND o.name = p.name) OR o.effect_class = 'escalate'))
  UNION ALL
  -- an unkeyed side effect sent again after an unknown end, and nobody had looked or asked
  SELECT x.task_id, coalesce(c.chain_id, 'chain-' || left(md5(x.attempt_id), 16)), 'blind_retry', 'retry.blind', 2, x.span_id, r.earlier_span_id,
    x.tool || ': sent again without a look after it had ended unknown'
  FROM repeats r
  JOIN executions x USING (attempt_id)
  JOIN executions y ON y.attempt_id = r.earlier_id
  LEFT JOIN retry_chains c ON c.trace_id = x.trace_id AND c.span_id = x.span_id
  WHERE y.outcome = 'unknown' AND r.duplicate = 'unprotected'
    AND NOT EXISTS (
      SELECT 1 FROM executions l
      WHERE l.task_id = x.task_id AND l.effect_class = 'read' AND l.disposition = 'executed' AND l.outcome = 'ok'
        AND l.start_ns >= y.last_ns AND l.start_ns < x.start_ns AND list_has_any(l.leaves, list_concat(y.leaves, x.leaves)))
    AND NOT EXISTS (
      SELECT 1 FROM interventions i
      WHERE i.task_id = x.task_id AND i.decided_at > make_timestamp(y.last_ns // 1000) AND i.decided_at <= make_timestamp(x.start_ns // 1000))
  UNION ALL
  SELECT m.task_id, m.chain_id, 'synchronised', 'retry.synchronised', m.place, m.span_id, NULL,
    m.tool || ': ' || d.synchronised_tasks || ' or more tasks tried again within the same second'
  FROM retry_meetings m, detector_limits d
  WHERE m.tasks >= d.synchronised_tasks
)
SELECT
  task_id, chain_id, kind,
  arg_min(rule, (place, span_id)) AS rule,
  arg_min(detail, (place, span_id)) AS detail,
  list_filter([arg_min(before_span_id, (place, span_id)), arg_min(span_id, (place, span_id))], lambda s: s IS NOT NULL) AS evidence,
  count(*) AS times
FROM faults
GROUP BY task_id, chain_id, kind
