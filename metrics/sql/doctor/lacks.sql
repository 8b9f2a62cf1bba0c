-- Grain: one row per sender and thing its spans lack.
-- Inputs: senders (see senders.sql).
-- A tenth may lack what the rest has: a failed call has no tokens, a call that waits for a person no result.
-- `slo`: which SLIs suffer; `supply`: what would mend it, in words; `{setting}` is the family's own switch for content.
WITH found AS (
  SELECT *, 'nothing of it is an agent, model or tool span' AS lack, 'all' AS slo,
    'send `gen_ai.operation.name` (invoke_agent, chat, execute_tool), or say in agent-slo.yaml what its own kinds mean: `conventions: {roles: {their.kind: {their_value: tool}}}`' AS supply,
    1 AS place
  FROM senders WHERE agent_spans + model_calls + tool_calls = 0 AND start_markers = 0
  UNION ALL
  SELECT *, 'values that are none of their attribute''s words: ' || array_to_string(list_sort(misstated)[:5], ', '), 'what they state',
    'docs/definitions.md lists the words of each attribute; any other is left unread', 1
  FROM senders WHERE len(misstated) > 0
  UNION ALL
  SELECT *, 'model or tool calls, but the span around them never arrived', 'task_completion, latency, lost_task',
    'a killed process sends no root: add agent-slo-emit (`agent_slo_emit.instrument(provider)`), whose start marker names the agent and the task at once', 2
  FROM senders WHERE agent_spans = 0 AND model_calls + tool_calls > 0 AND orphaned_calls = model_calls + tool_calls
  UNION ALL
  SELECT *, 'model or tool calls, but no agent around them', 'task_completion, latency, autonomous_completion',
    'wrap the work in one span with `gen_ai.operation.name=invoke_agent` and `gen_ai.agent.name`, or add the framework''s own instrumentation', 2
  FROM senders WHERE agent_spans = 0 AND model_calls + tool_calls > orphaned_calls
  UNION ALL
  SELECT *, 'agent spans, but no model calls', 'task_completion, cost',
    'instrument the model client as well: nothing shows an answer, so clean ends stay unknown; or state `agent_slo.task.outcome` on the root', 3
  FROM senders WHERE agent_spans > 0 AND model_calls = 0
  UNION ALL
  SELECT *, 'no tool spans', 'duplicate_action, retry_discipline, uncertain_outcome',
    'instrument the tools, or wrap each call in a span with `gen_ai.operation.name=execute_tool`, `gen_ai.tool.name` and `gen_ai.tool.call.arguments`', 4
  FROM senders WHERE model_calls + agent_spans > 0 AND tool_calls + calls_from_messages = 0
  UNION ALL
  SELECT *, format('no tool spans: {} calls are read from the messages around the model', calls_from_messages), 'uncertain_outcome, time_limits',
    'instrument the tools: so far a call that crashed leaves nothing, and none has times of its own', 4
  FROM senders WHERE tool_calls = 0 AND calls_from_messages > 0
  UNION ALL
  SELECT *, 'tool spans that name no tool', 'duplicate_action, retry_discipline, uncertain_outcome',
    'send `gen_ai.tool.name`, or say which key of yours holds it: `conventions: {aliases: {their.key: gen_ai.tool.name}}`', 4
  FROM senders WHERE tool_calls > 0 AND named_tools = 0
  UNION ALL
  SELECT *, format('{} of {} tool calls without arguments', tool_calls - tools_with_arguments, tool_calls), 'duplicate_action, retry_discipline',
    'switch content on ({setting}), or send `agent_slo.action.idempotency_key`', 5
  FROM senders WHERE tools_with_arguments < 0.9 * tool_calls
  UNION ALL
  SELECT *, format('{} of {} tool calls without a result', tool_calls - tools_with_result, tool_calls), 'uncertain_outcome, human_intervention',
    'switch content on ({setting}); without results a call that waits for a person looks like one that was done', 6
  FROM senders WHERE tools_with_result < 0.9 * tool_calls
  UNION ALL
  SELECT *, 'model calls without content', 'human_intervention, task_completion',
    'switch content on ({setting}): calls asked for and never run, rejections and answers stand in messages', 7
  FROM senders WHERE model_calls > 0 AND calls_with_content = 0
  UNION ALL
  SELECT *, format('{} of {} model calls without tokens', model_calls - calls_with_tokens, model_calls), 'cost',
    'let the client report usage (for streams of OpenAI-shaped APIs: `stream_options: {"include_usage": true}`)', 8
  FROM senders WHERE model_calls > 0 AND calls_with_tokens < 0.9 * model_calls
  UNION ALL
  SELECT *, format('{} of {} model calls with tokens have no price', calls_with_tokens - calls_with_cost, calls_with_tokens), 'cost',
    'add the model under `prices:` in agent-slo.yaml', 9
  FROM senders WHERE calls_with_cost < calls_with_tokens
  UNION ALL
  SELECT *, format('{} of {} runs without a conversation', runs_without_conversation, runs), 'task_completion, human_intervention, lost_task',
    'set `gen_ai.conversation.id` or `session.id` (or `agent_slo.task.id`) on every span: joins an approval''s second trace and a run after a crash to their task', 10
  FROM senders WHERE runs > 0 AND runs_without_conversation > 0
  UNION ALL
  SELECT *, 'no start marker', 'lost_task',
    'add agent-slo-emit (`agent_slo_emit.instrument(provider)`): a killed run otherwise leaves only what the exporter had sent', 11
  FROM senders WHERE agent_spans > 0 AND start_markers = 0
  UNION ALL
  SELECT *, 'tools of unknown effect: ' || array_to_string(unclassed_tools, ', '), 'duplicate_action',
    'class them under `tools:` in agent-slo.yaml, for example `' || unclassed_tools[1] || ': {effect: write}`, or send `agent_slo.tool.effect`', 12
  FROM senders WHERE len(unclassed_tools) > 0
  UNION ALL
  SELECT *, 'tools guessed to have side effects: ' || array_to_string(guessed_writes, ', '), 'duplicate_action',
    'confirm them under `tools:` in agent-slo.yaml, for example `' || guessed_writes[1] || ': {effect: write}`', 13
  FROM senders WHERE len(guessed_writes) > 0
  UNION ALL
  SELECT *, 'no idempotency key on any side effect', 'duplicate_action',
    'send `agent_slo.action.idempotency_key` on the tool span: repeats under one key count as protected', 14
  FROM senders WHERE side_effects > 0 AND side_effects_without_key = side_effects
  UNION ALL
  SELECT *, 'no outcome is stated or evaluated', 'verified task_completion, false_success',
    'state `agent_slo.task.outcome` on the root, or send a `gen_ai.evaluation.result` event', 15
  FROM senders WHERE tasks > 0 AND verified_tasks = 0
  UNION ALL
  SELECT *, 'only a part of its traces is sent (sampling)', 'duplicate_action, lost_task',
    'export every trace of agents (no sampler, no `OTEL_TRACES_SAMPLER`): what was done twice or lost may be in a trace that was not kept', 16
  FROM senders WHERE sampled_spans > 0
  UNION ALL
  SELECT *, 'no application version', 'marks of deploys',
    'set the resource attribute `agent_slo.app.version`', 17
  FROM senders WHERE agent_spans > 0 AND spans_with_app_version = 0
)
SELECT service, scope, version, family, lack, slo, supply FROM found ORDER BY service, scope, version, place
