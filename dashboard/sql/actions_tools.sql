-- one row per side-effecting tool of the tasks in scope, the ones to fix first on top; the first row is of all (whole)
-- inputs: scope, attempts
-- parameters: those of scope
WITH scope AS NOT MATERIALIZED ({scope}),
tools AS (
    SELECT
        a.tool,
        grouping(a.tool) = 1 AS whole,
        min_by(a.effect_class, list_position(['write', 'idempotent_write'], a.effect_class))
            AS effect_class,
        bool_or(a.class_source = 'guessed') AS guessed,
        count(*) AS executed,
        count(a.idempotency_key) AS with_key,
        count(a.idempotency_key) / count(*) AS key_coverage,
        count(*) FILTER (a.duplicate = 'unprotected') AS unprotected,
        count(*) FILTER (a.duplicate = 'unprotected') / count(*) AS unprotected_share,
        count(*) FILTER (a.duplicate = 'unprotected' AND a.effect = 'proven') AS proven,
        count(*) FILTER (a.duplicate = 'unprotected' AND a.compensated) AS undone,
        count(*) FILTER (a.duplicate = 'protected') AS protected,
        count(*) FILTER (a.duplicate = 'no_op') AS no_op,
        count(*) FILTER (a.suspected) AS suspected,
        count(*) FILTER (a.outcome = 'unknown') AS uncertain,
        count(*) FILTER (a.duplicate = 'unprotected' AND a.idempotency_key IS NOT NULL) AS key_not_honoured
    FROM attempts a
    SEMI JOIN scope s USING (task_id)
    WHERE a.action_id IS NOT NULL
    GROUP BY GROUPING SETS ((a.tool), ())
)
SELECT
    *,
    CASE
        WHEN key_not_honoured > 0 THEN 'key_not_honoured'
        WHEN effect_class = 'write' AND with_key = 0 AND unprotected > 0 THEN 'needs_key_now'
        WHEN effect_class = 'write' AND with_key = 0 THEN 'needs_key'
        WHEN effect_class = 'write' AND with_key < executed THEN 'key_missing_sometimes'
        WHEN unprotected > 0 THEN 'repeats'
        WHEN guessed THEN 'state_class'
        ELSE 'nothing'
    END AS advice
FROM tools
ORDER BY whole DESC, unprotected DESC, (effect_class = 'write' AND with_key < executed) DESC, uncertain DESC, executed DESC, tool
