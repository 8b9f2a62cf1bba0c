-- one row: tasks in scope with a model call whose cost is unknown, by what is not known of it
-- inputs: scope, unpriced_usage, task_costs
-- parameters: those of scope
WITH lacking AS (
    SELECT task_id
    FROM ({scope})
    WHERE model_calls > 0 AND NOT coalesce(cost_complete, false)
),
unpriced AS (
    SELECT DISTINCT task_id FROM task_costs WHERE unpriced_calls > 0
)
SELECT
    count(*) AS tasks,
    count(u.task_id) AS no_price,
    count(*) - count(u.task_id) AS no_usage
FROM lacking l
LEFT JOIN unpriced u USING (task_id)
