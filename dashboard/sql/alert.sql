-- one row: an alert
-- inputs: alerts
-- parameters: id
SELECT *
FROM alerts
WHERE alert_id = $id
