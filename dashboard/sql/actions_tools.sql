-- one row per side-effecting tool of the tasks in scope, the ones to fix first on top; the first row is of all (whole)
-- inputs: attempts
-- parameters: those of scope
-- A repeat that carried a key, and whose action was tried under another key as well: no receiver can tell these two.
WITH key_changed AS (
    SELECT a.action_id
    FROM attempts a
    SEMI JOIN (
        SELECT action_id
        FROM attempts
        WHERE duplicate = 'unprotected' AND idempotency_key IS NOT NULL
            AND rule IN ('duplicate.same_arguments', 'duplicate.same_but_for_prose')
    ) r USING (action_id)
    WHERE a.disposition = 'executed'
    GROUP BY a.action_id
    HAVING min(a.idempotency_key) <> max(a.idempotency_key)
),
-- Counted by what a row says, so that a million attempts are looked at once and a few dozen rows many times.
alike AS (
    SELECT
        tool, effect_class, class_source, duplicate, effect, compensated, suspected, outcome, rule,
        idempotency_key IS NOT NULL AS keyed,
        count(*) AS n
    FROM ({scope of attempts})
    -- What has an action: reading the ids themselves takes longer.
    WHERE disposition = 'executed' AND effect_class IN ('write', 'idempotent_write')
    GROUP BY ALL
    UNION ALL BY NAME
    -- The few of them that are repeats under another key, once more: not a million are joined for these.
    SELECT tool, count(*) AS differing
    FROM ({scope of attempts})
    SEMI JOIN key_changed USING (action_id)
    WHERE duplicate = 'unprotected' AND idempotency_key IS NOT NULL
    GROUP BY tool
),
tools AS (
    SELECT
        tool,
        grouping(tool) = 1 AS whole,
        min_by(effect_class, list_position(['write', 'idempotent_write'], effect_class)) AS effect_class,
        bool_or(class_source = 'guessed') AS guessed,
        coalesce(sum(n), 0)::BIGINT AS executed,
        coalesce(sum(n) FILTER (keyed), 0)::BIGINT AS with_key,
        with_key / nullif(executed, 0) AS key_coverage,
        coalesce(sum(n) FILTER (duplicate = 'unprotected'), 0)::BIGINT AS unprotected,
        unprotected / nullif(executed, 0) AS unprotected_share,
        coalesce(sum(n) FILTER (duplicate = 'unprotected' AND NOT keyed), 0)::BIGINT AS repeats_without_key,
        coalesce(sum(n) FILTER (duplicate = 'unprotected' AND effect = 'proven'), 0)::BIGINT AS proven,
        coalesce(sum(n) FILTER (duplicate = 'unprotected' AND compensated), 0)::BIGINT AS undone,
        coalesce(sum(n) FILTER (duplicate = 'protected'), 0)::BIGINT AS protected,
        coalesce(sum(n) FILTER (duplicate = 'no_op'), 0)::BIGINT AS no_op,
        coalesce(sum(n) FILTER (suspected), 0)::BIGINT AS suspected,
        coalesce(sum(n) FILTER (outcome = 'unknown'), 0)::BIGINT AS uncertain,
        coalesce(sum(n) FILTER (rule = 'duplicate.key_not_honoured'), 0)::BIGINT AS key_not_honoured,
        coalesce(sum(differing), 0)::BIGINT AS keys_differ
    FROM alike
    GROUP BY GROUPING SETS ((tool), ())
)
SELECT
    *,
    CASE
        WHEN key_not_honoured > 0 THEN 'key_not_honoured'
        WHEN keys_differ > 0 THEN 'keys_differ'
        WHEN effect_class = 'write' AND with_key = 0 AND unprotected > 0 THEN 'needs_key_now'
        WHEN effect_class = 'write' AND with_key = 0 THEN 'needs_key'
        WHEN effect_class = 'write' AND with_key < executed THEN 'key_missing_sometimes'
        WHEN unprotected > 0 THEN 'repeats'
        WHEN guessed THEN 'state_class'
        ELSE 'nothing'
    END AS advice
FROM tools
ORDER BY whole DESC, unprotected DESC, (effect_class = 'write' AND with_key < executed) DESC, uncertain DESC, executed DESC, tool
