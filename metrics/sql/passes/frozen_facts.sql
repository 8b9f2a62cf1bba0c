-- What frozen tasks are, in tables that did not say it when their rows were kept: nothing derives these again.
-- Inputs: core.tasks, core.interventions, core.task_costs, core.task_times, core.waste, core._escalations.
UPDATE core.interventions p
SET agent = t.agent, task_type = t.task_type, service = t.service, environment = t.environment, app_version = t.app_version,
  task_started_at = t.started_at
FROM core.tasks t
WHERE t.task_id = p.task_id AND t.frozen AND p.task_started_at IS NULL;
UPDATE core.task_costs p
SET agent = t.agent, task_type = t.task_type, task_service = t.service, environment = t.environment, app_version = t.app_version,
  task_started_at = t.started_at
FROM core.tasks t
WHERE t.task_id = p.task_id AND t.frozen AND p.task_started_at IS NULL;
UPDATE core.task_times p
SET agent = t.agent, task_type = t.task_type, service = t.service, environment = t.environment, app_version = t.app_version,
  task_started_at = t.started_at
FROM core.tasks t
WHERE t.task_id = p.task_id AND t.frozen AND p.task_started_at IS NULL;
UPDATE core.waste p
SET agent = t.agent, task_type = t.task_type, service = t.service, environment = t.environment, app_version = t.app_version,
  task_started_at = t.started_at, decided_at = t.decided_at, excluded_reason = t.excluded_reason
FROM core.tasks t
WHERE t.task_id = p.task_id AND t.frozen AND p.task_started_at IS NULL;
UPDATE core._escalations p
SET agent = t.agent, task_type = t.task_type, service = t.service, environment = t.environment, app_version = t.app_version,
  task_started_at = t.started_at, outcome = t.outcome, eligible = t.eligible, decided_at = t.decided_at
FROM core.tasks t
WHERE t.task_id = p.task_id AND t.frozen AND p.task_started_at IS NULL;
