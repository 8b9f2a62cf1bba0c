-- one row per service, provider and model with usage that has no price, the most tokens first
-- inputs: unpriced_usage
-- remembered: until the next pass
SELECT service, provider, model, calls, tasks, input_tokens, output_tokens, first_seen, last_seen
FROM unpriced_usage
ORDER BY input_tokens + output_tokens DESC NULLS LAST, model
LIMIT 50
