-- Grain: one row per run: one execution of an agent, with its verdict and the task it is part of.
-- Inputs: run_verdicts, task_runs, links.
SELECT
  r.run_id, t.task_id, r.trace_id, r.agent, r.verdict, r.trigger, r.started_at, r.ended_at, r.rule, r.evidence,
  t.position, t.intent, r.conversation_id, r.service, r.last_seen_at, r.root_span_id,
  -- why it belongs to its task: the joins that lead back to earlier runs of it
  coalesce((SELECT list(DISTINCT l.rule ORDER BY l.rule) FROM links l WHERE l.run_id = r.run_id), []) AS joined_by
FROM run_verdicts r
JOIN task_runs t USING (run_id)
