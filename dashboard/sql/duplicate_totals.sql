-- one row: the three numbers about repeats
-- inputs: actions
SELECT
    coalesce(sum(duplicates_unprotected), 0)::BIGINT AS unprotected,
    coalesce(sum(duplicates_protected), 0)::BIGINT AS protected,
    coalesce(sum(no_op_repeats), 0)::BIGINT AS no_op,
    count(DISTINCT task_id) FILTER (duplicates_unprotected > 0) AS tasks
FROM actions
