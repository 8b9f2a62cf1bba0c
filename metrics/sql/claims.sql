-- Grain: one row per ended task whose end hides a failure: false success, or a failure that vanished.
-- Inputs: tasks, task_runs, run_facts, executions, actions, uncertain, tool_calls.
-- A claim is what the sender states. A clean end with a cut-off answer counts as one: whoever reads it takes it for done.
WITH last_run AS (
  SELECT t.task_id, r.*
  FROM task_runs t
  JOIN run_facts r USING (run_id)
  WHERE NOT r.dropped
  QUALIFY row_number() OVER (PARTITION BY t.task_id ORDER BY t.position DESC) = 1
),
ended AS (
  SELECT
    t.task_id, t.outcome, t.claimed,
    coalesce(t.claimed = 'success', false) OR (t.rule = 'task.stated' AND t.outcome = 'completed') AS claims,
    t.evaluated,
    l.root_ended AND NOT l.root_error AS clean_root,
    l.run_id, l.root_span_id, l.last_model_span_id, l.last_model_finish, l.last_model_error, l.last_model_empty, l.last_model_output,
    l.agent_error_span_id, l.root_output
  FROM tasks t
  JOIN last_run l USING (task_id)
  WHERE t.outcome NOT IN ('running', 'waiting_human', 'lost')
),
-- a side effect whose last try did not end well, which nobody settled and no later call of the tool made good
loose AS (
  SELECT a.task_id, a.tool, a.evidence[-1] AS span_id, a.last_outcome, a.last_ns
  FROM actions a
  WHERE (a.last_outcome = 'refused' OR (a.last_outcome = 'unknown' AND NOT a.settled))
    AND NOT EXISTS (
      SELECT 1 FROM executions e
      WHERE e.task_id = a.task_id AND e.tool = a.tool AND e.disposition = 'executed' AND e.outcome = 'ok' AND e.start_ns >= a.first_ns
        AND is_about(argument_leaves(a.arguments), e.leaves))
),
last_call AS (
  SELECT task_id, arg_max(outcome, (start_ns, span_id)) AS outcome, arg_max(error_kind, (start_ns, span_id)) AS error_kind,
    arg_max(span_id, (start_ns, span_id)) AS span_id, arg_max(name, (start_ns, span_id)) AS tool
  FROM tool_calls
  WHERE role = 'tool'
  GROUP BY task_id
),
false_success AS (
  SELECT e.task_id, 1 AS strength, 'false_success.effect_not_done' AS rule,
    o.tool || ' ended ' || o.last_outcome || ', and the task claims success' AS detail, [o.span_id, e.root_span_id] AS evidence
  FROM ended e JOIN loose o USING (task_id)
  WHERE e.claims
  UNION ALL
  SELECT task_id, 2, 'false_success.check_says_no', 'claimed success, but its check says no', [root_span_id]
  FROM ended WHERE claims AND evaluated = 'fail'
  UNION ALL
  SELECT task_id, 3, 'false_success.part_failed', 'claimed success, but an agent or the last model call failed',
    [coalesce(agent_error_span_id, last_model_span_id), root_span_id]
  FROM ended WHERE claims AND clean_root AND (agent_error_span_id IS NOT NULL OR last_model_error)
  UNION ALL
  SELECT task_id, 4, 'false_success.cut_off', 'ended cleanly with a cut-off answer (finish reason ' || last_model_finish || ')',
    [last_model_span_id, root_span_id]
  FROM ended WHERE clean_root AND coalesce(claimed, '') <> 'failure' AND last_model_finish IN ('length', 'error') AND NOT last_model_error
  UNION ALL
  SELECT task_id, 5, 'false_success.empty', 'claimed success with an empty answer', [last_model_span_id, root_span_id]
  FROM ended WHERE claims AND clean_root AND last_model_empty
  UNION ALL
  SELECT e.task_id, 6, 'false_success.last_call_failed', 'claimed success, but the last call (' || c.tool || ') failed', [c.span_id, e.root_span_id]
  FROM ended e JOIN last_call c USING (task_id)
  WHERE e.claims AND e.clean_root AND c.outcome = 'refused' AND c.error_kind = 'other'
),
vanished AS (
  SELECT e.task_id, 1 AS strength, 'vanished.no_plan_b' AS rule,
    o.tool || ' ended ' || o.last_outcome || ' for good, and nothing says so' AS detail, [o.span_id, e.root_span_id] AS evidence
  FROM ended e
  JOIN loose o USING (task_id)
  WHERE NOT e.claims AND e.clean_root AND coalesce(e.claimed, '') <> 'failure' AND e.outcome IN ('unknown', 'completed')
    -- an answer that admits it has not let it vanish
    AND NOT says_failed(coalesce(e.last_model_output, e.root_output))
    AND NOT EXISTS (
      SELECT 1 FROM executions x
      WHERE x.task_id = e.task_id AND x.effect_class = 'escalate' AND x.disposition = 'executed' AND x.start_ns > o.last_ns)
)
SELECT task_id, 'false_success' AS kind, arg_min(rule, (strength, detail)) AS rule, arg_min(detail, (strength, detail)) AS detail,
  list_filter(arg_min(evidence, (strength, detail)), lambda s: s IS NOT NULL) AS evidence
FROM false_success
GROUP BY task_id
UNION ALL
SELECT task_id, 'vanished_failure', arg_min(rule, (strength, detail)), arg_min(detail, (strength, detail)),
  list_filter(arg_min(evidence, (strength, detail)), lambda s: s IS NOT NULL)
FROM vanished
WHERE task_id NOT IN (SELECT task_id FROM false_success)
GROUP BY task_id
