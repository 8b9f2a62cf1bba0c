-- Grain: one row per series (a tool, a model, a task type) and UTC day met in this pass: what is usual, by the days before.
-- Inputs: known_baselines (see passes/baselines.sql).
-- Calls: the p99 of their seconds. Tasks: the median of their cost in USD. NULL where too few were seen to say.
SELECT series, day, n, value FROM known_baselines
