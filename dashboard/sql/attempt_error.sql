-- one row: what the span of a call says of its error; the newest of its deliveries
-- inputs: spans
-- parameters: trace, span (ids), at (UTC, when it began)
-- The bounds on start_ns let DuckDB skip row groups.
SELECT
    status,
    status_message,
    -- The first event that has one; most senders have one exception event.
    list_filter(
        json_extract_string(events, '$[*].attributes."exception.message"'), lambda message: message IS NOT NULL
    )[1] AS exception_message
FROM spans
WHERE start_ns BETWEEN epoch_ns($at::TIMESTAMP) - 3600000000000 AND epoch_ns($at::TIMESTAMP) + 3600000000000
  AND trace_id = $trace AND span_id = $span
ORDER BY seq DESC
LIMIT 1
