"""The shipped sets: valid OTLP, small, of no real domain, and in agreement with their truth.

The counts here are made from the spans by plain Python, apart from both the generator and the product.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml
from genai_prices import Usage, calc_price

import sample_traces
from metrics.settings import MetricsSettings
from sample_traces.agents import COMPANY
from sample_traces.replay import NAMES, TRUTHS, load, truth
from sample_traces.spans import from_json, spans_of, to_json

FOLDER = Path(sample_traces.__file__).parent
DAY = 86_400 * 10**9
WRITES = {t.name for agent in COMPANY for t in agent.tools.values() if t.writes}


@cache
def requests(name: str) -> list[dict[str, Any]]:
    return load(name)


@cache
def facts(name: str) -> dict[str, Any]:
    return truth(name)


def value(attribute: dict[str, Any]) -> Any:
    ((kind, found),) = attribute["value"].items()
    return int(found) if kind == "intValue" else found


@cache
def spans(name: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Trace id -> span id -> span with plain attributes and its resource; re-deliveries fall together."""
    found: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for body in requests(name):
        for group in body["resourceSpans"]:
            resource = {a["key"]: value(a) for a in group["resource"]["attributes"]}
            for scope in group["scopeSpans"]:
                for span in scope["spans"]:
                    plain = {a["key"]: value(a) for a in span.get("attributes", [])}
                    found[span["traceId"]][span["spanId"]] = {**span, "plain": plain, "resource": resource}
    return found


def steps(name: str, task: dict[str, Any], operation: str) -> list[dict[str, Any]]:
    rows = [
        span
        for trace in task["traces"]
        for span in spans(name)[trace].values()
        if span["plain"].get("gen_ai.operation.name") == operation
    ]
    return sorted(rows, key=lambda span: int(span["startTimeUnixNano"]))


def tasks(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    return iter(facts(name)["tasks"].items())


@pytest.mark.parametrize("name", NAMES)
def test_every_request_is_valid_otlp(name: str) -> None:
    for body in requests(name):
        assert to_json(from_json(body)) == body


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_hex_and_counts_are_as_stated(name: str) -> None:
    rows = [span for body in requests(name) for span in spans_of(body)]
    assert len(rows) == facts(name)["spans"]
    assert len(requests(name)) == facts(name)["requests"]
    for span in rows:
        assert re.fullmatch(r"[0-9a-f]{32}", span["traceId"])
        assert re.fullmatch(r"[0-9a-f]{16}", span["spanId"])
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])


def test_the_sets_are_small() -> None:
    assert (FOLDER / "company.jsonl.gz").stat().st_size < 3_000_000
    assert (FOLDER / "first_light.jsonl.gz").stat().st_size < 60_000


@pytest.mark.parametrize("name", NAMES)
def test_only_reserved_domains(name: str) -> None:
    pattern = re.compile(r"(?:@|https?://)([\w.-]+)|\b([\w-]+\.(?:com|org|net|io|eu|de|dev|ai))\b")
    hosts = {a or b for body in requests(name) for a, b in pattern.findall(json.dumps(body))}
    assert hosts
    assert hosts <= {"example.com", "example.org"}


@pytest.mark.parametrize("name", NAMES)
def test_each_trace_belongs_to_exactly_one_task(name: str) -> None:
    claimed = [trace for _, task in tasks(name) for trace in task["traces"]]
    assert len(claimed) == len(set(claimed))
    assert set(claimed) == set(spans(name))
    for key, task in tasks(name):
        assert key == task["traces"][0]


@pytest.mark.parametrize("name", NAMES)
def test_times_agents_and_environments_are_those_of_the_spans(name: str) -> None:
    for key, task in tasks(name):
        own = [span for trace in task["traces"] for span in spans(name)[trace].values()]
        assert task["started_ns"] <= min(int(s["startTimeUnixNano"]) for s in own), key
        assert task["ended_ns"] == max(int(s["endTimeUnixNano"]) for s in own), key
        assert {s["resource"]["deployment.environment.name"] for s in own} == {task["environment"]}
        assert {s["resource"]["agent_slo.app.version"] for s in own} == {task["app_version"]}
        assert {s["plain"]["gen_ai.agent.name"] for s in own if "gen_ai.agent.name" in s["plain"]} == {
            task["agent"]
        }


@pytest.mark.parametrize("name", NAMES)
def test_the_last_span_ends_at_the_end(name: str) -> None:
    ends = [int(s["endTimeUnixNano"]) for own in spans(name).values() for s in own.values()]
    assert max(ends) == facts(name)["end_ns"]


@pytest.mark.parametrize("name", NAMES)
def test_tokens_are_the_sums_of_the_model_spans(name: str) -> None:
    keys = {
        "input": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        "output": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        "cache_read": ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
        "cache_write": ("gen_ai.usage.cache_write.input_tokens",),
    }
    for key, task in tasks(name):
        sums: dict[str, dict[str, int]] = {}
        chats = steps(name, task, "chat")
        for chat in chats:
            plain = chat["plain"]
            if not any(k in plain for k in keys["input"]):
                continue
            row = sums.setdefault(plain["gen_ai.request.model"], dict.fromkeys(keys, 0))
            for field, names in keys.items():
                row[field] += sum(plain.get(n, 0) for n in names)
            used = [sum(plain.get(n, 0) for n in keys[f]) for f in ("input", "cache_read", "cache_write")]
            assert used[0] >= used[1] + used[2], key
        assert sums == task.get("tokens", {}), key
        assert len(chats) == task.get("model_calls", 0), key


@pytest.mark.parametrize("name", NAMES)
def test_attempts_are_the_executed_tool_spans_that_write(name: str) -> None:
    for key, task in tasks(name):
        tools = steps(name, task, "execute_tool")
        executed = [
            s for s in tools
            if s["plain"]["gen_ai.tool.name"] in WRITES
            and s["plain"].get("agent_slo.action.disposition", "executed") == "executed"
        ]  # fmt: skip
        twice = task.get("double_instrumented", 0)
        assert len(executed) - twice == task.get("side_effect_attempts", 0), key
        assert len(tools) - twice == task.get("tool_calls", 0), key


@pytest.mark.parametrize("name", NAMES)
def test_each_duplicate_repeats_an_earlier_attempt_of_its_task(name: str) -> None:
    seen = 0
    for key, task in tasks(name):
        by_call: dict[tuple[str, str], int] = defaultdict(int)
        for span in steps(name, task, "execute_tool"):
            plain = span["plain"]
            if (
                plain.get("agent_slo.action.disposition", "executed") == "executed"
                and "error.type" not in plain
            ):
                by_call[plain["gen_ai.tool.name"], plain["gen_ai.tool.call.arguments"]] += 1
        repeats = task.get("duplicates", [])
        if task["story"] in ("model_repeat", "crash_replay", "orchestrator_retry", "resume_reexecution"):
            tool = repeats[0]["tool"]
            assert max(n for (t, _), n in by_call.items() if t == tool) == 2, key
        if not repeats and task["story"] in (
            "success",
            "second_request",
            "saga_compensated",
            "durable_resume",
        ):
            assert all(n == 1 for (t, _), n in by_call.items() if t in WRITES), key
        seen += len(repeats)
    totals = facts(name)["totals"]
    assert seen == sum(totals["duplicate_causes"].values()) > 0


@pytest.mark.parametrize("name", NAMES)
def test_lost_and_running_tasks_have_no_root_and_finished_ones_have(name: str) -> None:
    for key, task in tasks(name):
        last = spans(name)[task["traces"][-1]].values()
        root = any("parentSpanId" not in span for span in last)
        assert root == (task["outcome"] not in ("lost", "running")), key
        if task["outcome"] == "lost":
            # Past its deadline of an hour when the period ends.
            assert facts(name)["end_ns"] - task["ended_ns"] > 3600 * 10**9


def test_stated_outcomes_stand_on_a_root() -> None:
    for key, task in tasks("company"):
        said = {
            span["plain"]["agent_slo.task.outcome"]
            for trace in task["traces"]
            for span in spans("company")[trace].values()
            if "agent_slo.task.outcome" in span["plain"]
        }
        assert said == ({task["outcome"]} if task["outcome_evidence"] == "stated" else set()), key


def test_every_kind_is_there_and_more_than_once() -> None:
    totals = facts("company")["totals"]
    assert totals["tasks"] >= 3000
    findings = {
        "amplification", "approved_not_executed", "approved_other_args", "blind_retry", "dead_letter",
        "duplicate_action", "executed_without_approval", "false_success", "hung_call", "key_not_honoured",
        "key_reused", "loop", "lost", "missed_retry", "no_backoff", "non_retryable", "not_compensated",
        "plan_not_kept", "runaway_cost", "same_args_after_rejection", "synchronised", "unbounded",
        "uncertain_outcome", "vanished_failure",
    }  # fmt: skip
    assert {k: n for k, n in totals["findings"].items() if n >= 4}.keys() >= findings
    outcomes = {
        "cancelled_system", "cancelled_user", "completed", "dead_letter", "failed", "handed_over", "lost",
        "running", "unknown", "waiting_human",
    }  # fmt: skip
    assert {k for k, n in totals["outcomes"].items() if n >= 3} == outcomes
    causes = {
        "unprotected/model_repeat", "unprotected/retry_after_timeout", "unprotected/resume_reexecution",
        "unprotected/crash_replay", "unprotected/redelivery", "unprotected/orchestrator_retry",
        "protected/retry_after_timeout", "protected/crash_replay", "no_op/model_repeat",
    }  # fmt: skip
    assert {k for k, n in totals["duplicate_causes"].items() if n >= 4} == causes
    for field in ("late_spans", "redelivered_spans", "double_instrumented", "suspected_duplicates"):
        assert totals[field] >= 4


def test_totals_are_the_sums_of_the_tasks() -> None:
    totals, rows = facts("company")["totals"], facts("company")["tasks"].values()
    assert totals["tasks"] == len(rows)
    assert totals["eligible"] == sum(r["eligible"] for r in rows)
    assert totals["traces"] == sum(len(r["traces"]) for r in rows)
    assert totals["duplicates_unprotected"] == sum(
        d["protection"] == "unprotected" for r in rows for d in r.get("duplicates", [])
    )
    for kind, keys in facts("company")["by_finding"].items():
        assert keys == [k for k, r in tasks("company") if kind in r.get("findings", [])]


def test_every_agent_loses_and_completes_tasks() -> None:
    by_agent: dict[str, set[str]] = defaultdict(set)
    for _, task in tasks("company"):
        by_agent[task["agent"]].add(task["outcome"])
    assert all({"completed", "failed"} <= found for found in by_agent.values())
    assert len(by_agent) == 5


def test_working_hours_weekdays_and_some_test_traffic() -> None:
    starts = [datetime.fromtimestamp(t["started_ns"] / 1e9, UTC) for _, t in tasks("company")]
    assert sum(8 <= s.hour < 18 for s in starts) / len(starts) > 0.75
    assert sum(s.weekday() >= 5 for s in starts) / len(starts) < 0.1
    shares = [t["environment"] == "test" for _, t in tasks("company")]
    assert 0.02 < sum(shares) / len(shares) < 0.06
    assert all(t["eligible"] is False for _, t in tasks("company") if t["environment"] == "test")


def test_spans_arrive_late_and_twice() -> None:
    seen: dict[tuple[str, str], int] = defaultdict(int)
    rooted: set[str] = set()
    late = 0
    for body in requests("company"):
        here = spans_of(body)
        inside = {(s["traceId"], s["spanId"]) for s in here}
        assert len(inside) == len(here)  # a re-delivery comes in another request
        for span in here:
            key = (span["traceId"], span["spanId"])
            late += span["traceId"] in rooted and key not in seen
            seen[key] += 1
        rooted |= {s["traceId"] for s in here if "parentSpanId" not in s}
    assert late >= 20
    assert sum(n > 1 for n in seen.values()) == facts("company")["totals"]["redelivered_spans"]


def test_three_generations_of_the_conventions() -> None:
    kinds = {"gen_ai.input.messages": 0, "gen_ai.prompt.0.role": 0, "event": 0}
    for own in spans("company").values():
        for span in own.values():
            kinds["event"] += any(e["name"] == "gen_ai.user.message" for e in span.get("events", []))
            for key in ("gen_ai.input.messages", "gen_ai.prompt.0.role"):
                kinds[key] += key in span["plain"] and span["plain"].get("gen_ai.operation.name") == "chat"
    total = sum(kinds.values())
    assert all(n > 0.01 * total for n in kinds.values()), kinds
    assert kinds["gen_ai.input.messages"] > 0.7 * total


def _cost(task: dict[str, Any]) -> float:
    provider = "anthropic" if next(iter(task["tokens"])).startswith("claude") else "openai"
    total = 0.0
    for model, used in task["tokens"].items():
        usage = Usage(
            input_tokens=used["input"], output_tokens=used["output"],
            cache_read_tokens=used["cache_read"], cache_write_tokens=used["cache_write"],
        )  # fmt: skip
        # Per task, not per call: no call comes near a price tier.
        total += float(calc_price(usage, model_ref=model, provider_id=provider).total_price)
    return total


def test_dear_tasks_are_dear_and_no_other_comes_near() -> None:
    earlier: dict[str, list[float]] = defaultdict(list)
    today: dict[str, list[float]] = defaultdict(list)
    day, dear = 0, 0
    for key, task in sorted(tasks("company"), key=lambda item: item[1]["started_ns"]):
        if not task.get("tokens"):
            continue
        if task["started_ns"] // DAY != day:
            day = task["started_ns"] // DAY
            for agent, costs in today.items():
                earlier[agent] += costs
            today.clear()
        cost, before = _cost(task), earlier[task["agent"]]
        today[task["agent"]].append(cost)
        if len(before) < 5:
            continue
        ratio = cost / median(before)
        if "runaway_cost" in task.get("findings", []):
            assert ratio > 15, (key, ratio)
            dear += 1
        elif "runaway_cost" not in task.get("findings_possible", []):
            assert ratio < 8, (key, task["story"], ratio)
    assert dear >= 6


def test_the_dearer_model_triples_the_cost_of_a_refund() -> None:
    costs: dict[str, list[float]] = defaultdict(list)
    for _, task in tasks("company"):
        if task["agent"] == "refund_desk" and task["story"] == "success":
            (model,) = task["tokens"]
            costs[model].append(_cost(task))
    assert 2.5 < median(costs["claude-sonnet-4-5"]) / median(costs["claude-haiku-4-5"]) < 3.6


def test_the_configuration_is_valid_and_names_every_write() -> None:
    settings = MetricsSettings.model_validate(yaml.safe_load((FOLDER / "agent-slo.yaml").read_text()))
    for agent in COMPANY:
        for tool in agent.tools.values():
            if tool.writes or tool.effect == "escalate":
                assert settings.tools[tool.name].effect == tool.effect


def test_truth_files_hold_no_word_of_the_machine_that_made_them() -> None:
    for file in TRUTHS.values():
        assert not re.search(r"/(home|root|tmp|work|Users)/", (FOLDER / file).read_text())
