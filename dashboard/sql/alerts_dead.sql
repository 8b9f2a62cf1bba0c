-- one row per message that was given up, the newest first
-- inputs: alert_outbox, alerts
SELECT o.message_id, o.alert_id, o.target, o.event, o.created_at, o.dead_at, o.attempts, o.error, a.summary
FROM alert_outbox o
LEFT JOIN alerts a USING (alert_id)
WHERE o.dead_at IS NOT NULL
ORDER BY o.dead_at DESC, o.message_id
LIMIT 100
