-- one row per task in scope, the dearest or the slowest first
-- inputs: scope
-- parameters: those of scope; by (`cost`, `active` or `wall`)
WITH scope AS NOT MATERIALIZED ({scope})
SELECT
    started_at, task_id, agent, task_type, outcome, app_version, model_calls, tool_calls, input_tokens, output_tokens,
    cost_usd, cost_complete, active_s, wall_s, human_wait_s
FROM scope
WHERE CASE $by WHEN 'cost' THEN cost_usd WHEN 'active' THEN active_s ELSE wall_s END IS NOT NULL
ORDER BY CASE $by WHEN 'cost' THEN cost_usd WHEN 'active' THEN active_s ELSE wall_s END DESC, task_id
LIMIT 50
