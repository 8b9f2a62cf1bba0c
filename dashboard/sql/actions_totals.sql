-- one row: executed side effects of the tasks in scope, and what repeats an earlier one
-- inputs: scope, attempts
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope})
SELECT
    count(*) AS executed,
    count(*) FILTER (a.idempotency_key IS NOT NULL) / nullif(count(*), 0) AS key_coverage,
    count(*) FILTER (a.duplicate = 'unprotected') AS unprotected,
    count(*) FILTER (a.duplicate = 'unprotected') / nullif(count(*), 0) AS unprotected_share,
    count(*) FILTER (a.duplicate = 'unprotected' AND a.effect = 'proven') AS proven,
    count(*) FILTER (a.duplicate = 'unprotected' AND a.compensated) AS undone,
    count(*) FILTER (a.duplicate = 'protected') AS protected,
    count(*) FILTER (a.duplicate = 'no_op') AS no_op,
    count(*) FILTER (a.suspected) AS suspected,
    count(*) FILTER (a.outcome = 'unknown') AS uncertain
FROM attempts a
SEMI JOIN scope s USING (task_id)
WHERE a.action_id IS NOT NULL
