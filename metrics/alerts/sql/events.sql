-- grain: one row per finding of the asked-for kinds whose attempt or task is not older than $oldest
-- inputs: findings, attempts, tasks; $kinds, $oldest, $as_of
-- A finding names its spans, not its tool: the tool is that of the last attempt among them.
SELECT f.kind, f.task_id, f.detail,
       coalesce(max(a.started_at), any_value(t.ended_at), any_value(t.started_at), f.found_at) AS happened_at,
       f.found_at, arg_max(a.tool, a.started_at) AS tool, any_value(t.agent) AS agent, any_value(t.service) AS service
FROM findings f
JOIN tasks t ON t.task_id = f.task_id
LEFT JOIN attempts a ON a.task_id = f.task_id AND list_contains(f.evidence, a.span_id)
WHERE list_contains($kinds, f.kind) AND f.found_at > $oldest AND f.found_at <= $as_of
  AND (t.excluded_reason IS NULL OR t.excluded_reason = 'maintenance')
GROUP BY f.finding_id, f.kind, f.task_id, f.detail, f.found_at
HAVING happened_at > $oldest
ORDER BY f.found_at, f.finding_id
