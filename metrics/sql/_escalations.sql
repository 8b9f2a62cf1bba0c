-- Grain: one row per task that asked a human, or of which anyone says whether it needed one.
-- Inputs: tasks, task_runs, run_verdicts, steps, executions, interventions, escalation_rules, core.label_log.
-- A person's word stands before what the trace states, and that before what the configuration says; without any of them
-- whether a human was needed is unknown. A take-over without a question is nothing that the agent asked for.
WITH asked AS (
  SELECT
    task_id,
    count(*) AS asks,
    min(coalesce(requested_at, decided_at)) AS asked_at,
    -- unknown unless both levels are stated
    bool_and(lower(trim(level)) = lower(trim(required_level))) FILTER (WHERE level IS NOT NULL AND required_level IS NOT NULL) AS right_level
  FROM interventions
  WHERE kind <> 'take_over'
  GROUP BY task_id
),
-- on the question itself, or on any other step of the task: that is how a question that was never asked is stated
stated AS (
  SELECT
    t.task_id,
    bool_or(lower(trim(s.required_level)) <> 'none') AS needed,
    'required level ' || string_agg(DISTINCT trim(s.required_level), ', ' ORDER BY trim(s.required_level)) AS reason,
    list(s.span_id ORDER BY s.start_ns, s.span_id) AS evidence
  FROM steps s
  JOIN task_runs t USING (run_id)
  WHERE trim(s.required_level) <> ''
  GROUP BY t.task_id
),
-- calls that were made, refused or only asked for: they needed a human or not whatever became of them
calls AS (
  SELECT task_id, tool, arguments, span_id FROM executions
  UNION ALL
  SELECT task_id, call.name, call.arguments, span_id
  FROM (
    SELECT t.task_id, coalesce(r.last_model_span_id, r.root_span_id) AS span_id, unnest(r.open_calls) AS call
    FROM run_verdicts r
    JOIN task_runs t USING (run_id)
    WHERE r.verdict = 'paused'
  )
),
fits AS (
  SELECT
    k.task_id, r.position, r.needed, c.span_id,
    CASE
      WHEN r.tool_glob IS NULL THEN concat_ws(' of ', 'task type ' || k.task_type, k.agent)
      WHEN r.argument IS NULL THEN c.tool
      ELSE c.tool || ': ' || r.argument || ' ' || json_extract_string(c.arguments, '$."' || r.argument || '"') || ' is above ' || r.above
    END AS reason
  FROM escalation_rules r
  JOIN tasks k ON coalesce(k.task_type, '') GLOB r.type_glob AND coalesce(k.agent, '') GLOB r.agent_glob
  LEFT JOIN calls c ON c.task_id = k.task_id AND c.tool GLOB r.tool_glob
  WHERE r.tool_glob IS NULL
    OR (c.tool IS NOT NULL
      AND (r.argument IS NULL OR try_cast(json_extract_string(c.arguments, '$."' || r.argument || '"') AS DOUBLE) > r.above))
),
configured AS (
  SELECT
    task_id,
    arg_min(needed, position) AS needed,
    arg_min(reason, (position, reason)) AS reason,
    list_distinct(list(span_id ORDER BY span_id) FILTER (WHERE span_id IS NOT NULL)) AS evidence
  FROM fits
  GROUP BY task_id
),
-- a label given under an id that has joined another task is that task's
said AS (
  SELECT
    i.task_id,
    max_by(struct_pack(needed := l.needed, note := l.note, said_by := l.said_by, said_at := l.said_at), l.said_no) AS word
  FROM core.label_log l
  JOIN (SELECT own_id, task_id FROM task_runs UNION SELECT task_id, task_id FROM tasks) i ON i.own_id = l.task_id
  GROUP BY i.task_id
)
SELECT
  k.task_id,
  a.task_id IS NOT NULL AS asked,
  coalesce(a.asks, 0) AS asks,
  a.asked_at,
  a.right_level,
  CASE WHEN w.task_id IS NOT NULL THEN w.word.needed ELSE coalesce(s.needed, c.needed) END AS needed,
  CASE WHEN w.task_id IS NOT NULL THEN 'person' WHEN s.needed IS NOT NULL THEN 'stated' WHEN c.needed IS NOT NULL THEN 'configured' END AS source,
  CASE WHEN w.task_id IS NOT NULL THEN w.word.note WHEN s.needed IS NOT NULL THEN s.reason ELSE c.reason END AS note,
  w.word.said_by AS said_by,
  w.word.said_at AS said_at,
  CASE WHEN w.task_id IS NOT NULL THEN [] WHEN s.needed IS NOT NULL THEN s.evidence ELSE coalesce(list_sort(c.evidence), []) END AS evidence,
  k.agent, k.task_type, k.service, k.environment, k.app_version, k.started_at AS task_started_at, k.outcome, k.eligible, k.decided_at
FROM tasks k
LEFT JOIN asked a USING (task_id)
LEFT JOIN stated s USING (task_id)
LEFT JOIN configured c USING (task_id)
LEFT JOIN said w USING (task_id)
WHERE a.task_id IS NOT NULL OR s.task_id IS NOT NULL OR c.task_id IS NOT NULL OR w.task_id IS NOT NULL
