-- one row per target: its messages by what became of them, and the last thing it refused
-- inputs: alert_outbox
SELECT
    target,
    count(*) FILTER (delivered_at IS NULL AND dead_at IS NULL) AS waiting,
    min(created_at) FILTER (delivered_at IS NULL AND dead_at IS NULL) AS waiting_since,
    count(delivered_at) AS delivered,
    max(delivered_at) AS last_delivered,
    count(dead_at) AS dead,
    arg_max(error, coalesce(dead_at, next_at)) FILTER (error IS NOT NULL AND delivered_at IS NULL) AS error
FROM alert_outbox
GROUP BY target
ORDER BY dead DESC, waiting DESC, target
