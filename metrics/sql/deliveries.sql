-- Grain: one row per (trace_id, span_id): of several deliveries the one that counts.
-- Inputs: touched_spans (the raw rows of every trace that has a new span); the emitter is compiled from metrics/conventions/*.yaml.
-- The one with an end, then the latest end, then the most attributes, then the smallest content hash: never arrival
-- order, so that a re-delivery in any order changes nothing. Hashing costs, so it is done only where there is a choice.
WITH counted AS (
  SELECT *, count(*) OVER (PARTITION BY trace_id, span_id) AS deliveries
  FROM touched_spans
),
ranked AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY trace_id, span_id
      ORDER BY
        end_ns IS NULL,
        end_ns DESC,
        CASE WHEN deliveries > 1 THEN len(json_keys(attributes)) END DESC,
        CASE WHEN deliveries > 1 THEN md5(concat_ws('|', name, status, status_message, parent_span_id, start_ns::VARCHAR, attributes, events)) END
    ) AS choice
  FROM counted
)
SELECT * EXCLUDE (choice), {{emitter}} AS emitter FROM ranked WHERE choice = 1
