-- one row: how much there is to look through, for what looks through all of it
-- inputs: steps
SELECT count(*) AS steps, count(*) > 2000000 AS slow FROM steps
