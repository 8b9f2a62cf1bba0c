-- one row per mark of repair or doubt on raw spans, the most frequent first
-- inputs: spans
SELECT flag, count(*) AS spans
FROM (SELECT unnest(string_split(flags, ',')) AS flag FROM spans WHERE flags IS NOT NULL)
GROUP BY flag
ORDER BY spans DESC, flag
