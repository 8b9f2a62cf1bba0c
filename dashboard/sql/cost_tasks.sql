-- one row per task in scope, those with most of one measure first
-- inputs: scope
-- parameters: those of scope; by (`cost`, `active`, `wall` or `tokens`)
WITH scope AS NOT MATERIALIZED ({scope})
SELECT
    started_at, task_id, agent, task_type, outcome, app_version, model_calls, tool_calls, input_tokens, output_tokens,
    cost_usd, cost_complete, active_s, wall_s, human_wait_s,
    CASE $by WHEN 'cost' THEN cost_usd WHEN 'active' THEN active_s WHEN 'wall' THEN wall_s
        ELSE coalesce(input_tokens + output_tokens, input_tokens, output_tokens) END AS measured
FROM scope
WHERE measured IS NOT NULL
ORDER BY measured DESC, task_id
LIMIT 50
