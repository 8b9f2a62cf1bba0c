-- one row: raw spans stored
-- inputs: spans
SELECT count(*) AS spans FROM spans
