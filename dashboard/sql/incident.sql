-- one row: an incident
-- inputs: incidents
-- parameters: id
SELECT *
FROM incidents
WHERE incident_id = $id
