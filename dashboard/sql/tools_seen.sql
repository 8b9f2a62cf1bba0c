-- one row per tool that was ever called, the ones whose class is least certain first
-- inputs: attempts
WITH seen AS (
    SELECT
        tool,
        arg_max(effect_class, started_at) AS last_class,
        arg_max(class_source, started_at) AS last_source,
        count(*) AS calls,
        count(*) FILTER (WHERE disposition = 'executed') AS executed,
        count(*) FILTER (WHERE duplicate = 'unprotected') AS duplicates,
        count(*) FILTER (WHERE idempotency_key IS NOT NULL) AS keyed,
        max(started_at) AS last_called
    FROM attempts
    GROUP BY tool
)
SELECT
    tool, last_class AS effect_class, last_source AS class_source, calls, executed, duplicates, keyed, last_called
FROM seen
ORDER BY list_position(['unknown', 'guessed', 'hinted', 'stated', 'configured'], last_source), tool
