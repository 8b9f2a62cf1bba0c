-- one row per tool whose class nobody stated, the most called first
-- inputs: attempts
-- remembered: until the next pass
SELECT tool, effect_class, count(*) AS calls, max(started_at) AS last_called
FROM attempts
WHERE class_source = 'guessed' OR effect_class = 'unknown'
GROUP BY tool, effect_class
ORDER BY (effect_class = 'unknown') DESC, calls DESC, tool
LIMIT 50
