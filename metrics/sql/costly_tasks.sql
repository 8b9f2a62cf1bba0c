-- Grain: one row per task that cost a multiple of what tasks of its type cost on the days before.
-- Inputs: tasks, baselines, detector_limits.
SELECT t.task_id, t.cost_usd, b.value AS usual_usd, t.evidence
FROM tasks t
JOIN baselines b ON b.series = 'task:' || t.task_type AND b.day = t.started_at::DATE
CROSS JOIN detector_limits d
WHERE t.cost_complete AND t.cost_usd > b.value * d.runaway_multiple
