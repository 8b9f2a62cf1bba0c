-- What the deriver keeps besides the rows of metrics/sql/_order. Names that begin with `_` are private.
CREATE TABLE IF NOT EXISTS core.pipeline (derived_seq BIGINT, as_of TIMESTAMP, last_pass_at TIMESTAMP);
-- spans that came for tasks which retention had frozen
ALTER TABLE core.pipeline ADD COLUMN IF NOT EXISTS late_after_retention BIGINT DEFAULT 0;
-- spans and log records that were delivered again, and up to which row they are counted
ALTER TABLE core.pipeline ADD COLUMN IF NOT EXISTS redelivered BIGINT DEFAULT 0;
ALTER TABLE core.pipeline ADD COLUMN IF NOT EXISTS counted_seq BIGINT;
UPDATE core.pipeline SET counted_seq = derived_seq WHERE counted_seq IS NULL;
CREATE TABLE IF NOT EXISTS core._frozen_traces (trace_id VARCHAR);
CREATE TABLE IF NOT EXISTS core._layout (name VARCHAR, signature VARCHAR);
-- `trace`: a number made of the trace id. Millions of rows are looked through in every pass, six times faster than by text;
-- two traces of one number are only decided together.
CREATE TABLE IF NOT EXISTS core._join_keys (key UBIGINT, trace UBIGINT);
-- the key that another must hold before this one leads anywhere (see join_keys.sql); in folders made before there were gates, none
ALTER TABLE core._join_keys ADD COLUMN IF NOT EXISTS gate UBIGINT;
CREATE TABLE IF NOT EXISTS core._traces (trace_id VARCHAR, first_ns BIGINT, last_ns BIGINT);
CREATE TABLE IF NOT EXISTS core._trace_tasks (trace_id VARCHAR, task_id VARCHAR, trace UBIGINT, task UBIGINT);
CREATE TABLE IF NOT EXISTS core._recheck (task_id VARCHAR);
CREATE TABLE IF NOT EXISTS core.baselines (series VARCHAR, day DATE, n BIGINT, value DOUBLE, stale BOOLEAN);
CREATE TABLE IF NOT EXISTS core.task_aliases (alias VARCHAR, task_id VARCHAR);
CREATE TABLE IF NOT EXISTS core.model_prices (
  provider VARCHAR, model VARCHAR, valid_from TIMESTAMP, valid_to TIMESTAMP,
  input DOUBLE, output DOUBLE, cache_read DOUBLE, cache_write DOUBLE, tiers VARCHAR, source VARCHAR, service VARCHAR
);
-- folders made before prices could differ by service
ALTER TABLE core.model_prices ADD COLUMN IF NOT EXISTS service VARCHAR;
CREATE TABLE IF NOT EXISTS core.revisions (
  task_id VARCHAR, sli VARCHAR, subject_id VARCHAR, from_verdict VARCHAR, to_verdict VARCHAR,
  changed_at TIMESTAMP, cause VARCHAR
);
CREATE TABLE IF NOT EXISTS core.sli_hourly (
  sli VARCHAR, agent VARCHAR, task_type VARCHAR, service VARCHAR, environment VARCHAR, hour TIMESTAMP,
  good BIGINT, bad BIGINT, unknown BIGINT, excluded BIGINT, sum_value DOUBLE, histogram VARCHAR
);
CREATE TABLE IF NOT EXISTS core.incidents (
  incident_id VARCHAR, fingerprint VARCHAR, kind VARCHAR, severity VARCHAR, state VARCHAR, agent VARCHAR, tool VARCHAR,
  seen_count BIGINT, first_seen TIMESTAMP, last_seen TIMESTAMP, representative_task_id VARCHAR
);
INSERT INTO core.pipeline (derived_seq, late_after_retention, redelivered, counted_seq)
SELECT 0, 0, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM core.pipeline);
-- traces that no file of the derivation can take: set aside, so that they cost no other trace its tasks
CREATE TABLE IF NOT EXISTS core.parked_traces (trace_id VARCHAR, error VARCHAR, parked_at TIMESTAMP);
