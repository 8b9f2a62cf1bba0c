-- one row: the moment of the last pass
-- inputs: pipeline
-- remembered: until the next pass
SELECT max(as_of) AS as_of
FROM pipeline
