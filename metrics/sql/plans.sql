-- Grain: one row per call of a tool with a declared failure plan that did not succeed at once: was the plan kept?
-- Inputs: retry_chains, executions, interventions, tasks.
-- Judged when the task has ended: until then the plan may still be carried out.
WITH chains AS (
  SELECT
    chain_id, any_value(task_id) AS task_id, any_value(name) AS tool,
    arg_max(plan, place) FILTER (WHERE plan IS NOT NULL) AS plan,
    arg_max(outcome, place) AS last_outcome, arg_max(span_id, place) AS span_id, max(last_ns) AS last_ns, count(*) AS tries,
    bool_or(outcome <> 'ok') AS failed
  FROM retry_chains
  WHERE role = 'tool'
  GROUP BY chain_id
)
SELECT
  c.chain_id, c.task_id, c.tool, c.plan, c.span_id, c.tries,
  c.last_outcome = 'ok'
  OR CASE c.plan
    WHEN 'retry' THEN c.tries > 1
    WHEN 'dead_letter' THEN t.outcome = 'dead_letter'
    WHEN 'escalate' THEN t.outcome = 'handed_over'
      OR EXISTS (
        SELECT 1 FROM executions e
        WHERE e.task_id = c.task_id AND e.effect_class = 'escalate' AND e.disposition = 'executed' AND e.start_ns >= c.last_ns)
      OR EXISTS (SELECT 1 FROM interventions i WHERE i.task_id = c.task_id AND i.requested_at >= make_timestamp(c.last_ns // 1000))
  END AS kept
FROM chains c
JOIN tasks t USING (task_id)
WHERE c.plan IS NOT NULL AND c.failed AND t.outcome NOT IN ('running', 'waiting_human')
