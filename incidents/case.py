"""From evidence to a group of cases: incident, twin, control; redacted, proven, hashed."""

from __future__ import annotations

import copy
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from incidents import expectations
from incidents.evidence import Evidence
from incidents.expectations import Expectation, Situation
from incidents.notes import Notes
from incidents.redaction import ENGINE, Redactor, is_withheld
from incidents.repairs import marked
from incidents.replay.proof import Proof, prove
from incidents.replayed import Scene, stage
from incidents.toolbox import Tool, build
from metrics.conventions import BASE, content_setting
from metrics.settings import MetricsSettings

Json = dict[str, Any]
SCHEMA = "agent-slo/eval-case"
SCHEMA_VERSION = "1.0.0"
FINGERPRINT = "fp-1"
HASHED = ("role", "task", "tools", "world", "faults", "resume", "expect")
SEVERITIES = {"high": "critical", "medium": "major", "low": "minor"}
_CAPTURE = "switch on content capture in the agent's instrumentation"
_NO_CONTROL = (
    "no control could be made: it needs a limit in policies.approvals, and the amount in the request "
    "or in an answer the agent read"
)
# What is never redacted: ids, hashes and words of ours.
_EXEMPT = frozenset(
    {"schema", "schema_version", "case_id", "revision", "content_hash", "set", "role", "split", "split_group", "review",
     "privacy"}
)  # fmt: skip

_KEPT_ORIGIN = (
    "incident_id", "trace_id", "root_span_id", "evidence_span_ids", "other_trace_ids", "seen_count", "first_seen",
    "last_seen", "exported_at", "exporter",
)  # fmt: skip


@dataclass(frozen=True)
class Group:
    """The cases of one incident, the incident first. `secrets` are the values taken out of them, to search for."""

    cases: list[Json]
    proof: Proof
    secrets: frozenset[str]
    redactor: Redactor

    @property
    def incident(self) -> Json:
        return self.cases[0]

    @property
    def draft(self) -> bool:
        """Whether it does not prove itself, whatever people said of it."""
        return not self.proof.holds

    @property
    def reason(self) -> str | None:
        """Why it is a draft, redacted like the case; None when it proves itself."""
        return self.redactor.text("; ".join(self.proof.reasons)) if self.draft else None


@cache
def taxonomy() -> dict[str, dict[str, Any]]:
    """What each kind means elsewhere."""
    return dict(yaml.safe_load((files("incidents") / "taxonomy.yaml").read_text(encoding="utf-8")))


@cache
def schema() -> Json:
    """The published JSON Schema of a case."""
    return dict(json.loads(schema_text()))


def schema_text() -> str:
    """The schema as it is published."""
    return (files("incidents") / "case.schema.json").read_text(encoding="utf-8")


def canonical_text(value: Any) -> str:
    """Deterministic JSON: sorted keys, ASCII escapes, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def content_hash(case: Mapping[str, Any]) -> str:
    """Hash over what decides a replay; ids, counts and reviews do not change it."""
    body = {name: case[name] for name in HASHED if name in case}
    return "sha256:" + hashlib.sha256(canonical_text(body).encode()).hexdigest()


def make_group(evidence: Evidence, settings: MetricsSettings, exporter: str) -> Group:
    """Derive, redact and prove the cases of one incident.

    The result is always schema-valid; a group that does not prove itself, or whose input was not captured, is a draft
    that says why.
    """
    notes = Notes()
    reasons = _missing(evidence, notes)
    tools = build(evidence, settings, notes)
    evidence = replace(evidence, calls=marked(evidence, tools))
    for name in dict.fromkeys(call.tool for call in evidence.calls if call.repairs):
        notes.infer(f"{name}: undoes what the fault did; neither demanded nor forbidden where there is none")
    scene = stage(evidence, tools, notes)
    subject = tools.get(evidence.incident["tool"] or "") or _repeated(evidence, tools)
    situation = Situation(evidence, scene, tools, settings, notes, subject)
    expectation = expectations.expect(situation)
    if expectation.reason:
        reasons.append(expectation.reason)
    base = _case(evidence, tools, scene, expectation, notes, exporter)
    redactor = Redactor()
    _redacted(base, redactor)  # the first pass learns what is secret, the second finds it wherever it stands
    base = _redacted(base, redactor)
    base["privacy"] = {"redacted": True, "engine": ENGINE, "counts": redactor.counts, "reviewed": False}
    cases, proof = _proven(base, expectation, situation)
    if expectation.checks and not any(case["role"] == "control" for case in cases):
        reasons.append(_NO_CONTROL)
    reasons += [
        reason for reason in proof.reasons if not (expectation.reason and reason == "it has no checks")
    ]
    state = "draft" if reasons else "in_review"
    proof = Proof(proof.recorded_fails, tuple(dict.fromkeys(reasons)))
    group = Group(cases, proof, redactor.found, redactor)
    for case in cases:
        case["review"] = {"state": state, "by": None, "at": None, "note": group.reason}
        case["content_hash"] = content_hash(case)
    return group


def _repeated(evidence: Evidence, tools: Mapping[str, Tool]) -> Tool | None:
    """The tool a loop went round, when only its limit of steps is evidence."""
    if evidence.incident["kind"] != "loop":
        return None
    counts = Counter(call.tool for call in evidence.calls if call.executed)
    most = counts.most_common(1)
    return tools[most[0][0]] if most and most[0][1] >= 3 else None


def _missing(evidence: Evidence, notes: Notes) -> list[str]:
    reasons = []
    if not any(message["role"] == "user" for message in evidence.told.messages):
        reasons.append(f"no input captured: {_capture(evidence)}")
        notes.ask("task.messages: not captured")
    else:
        notes.sure("task.messages")
        if evidence.told.dropped:
            notes.infer(f"task.messages: {evidence.told.dropped} messages without text left out")
    users = [m["content"] for m in evidence.told.messages if m["role"] == "user"]
    if any(map(is_withheld, users)) or any(is_withheld(v) for c in evidence.calls for v in c.args.values()):
        reasons.append(
            "content was dropped when the trace was stored; set collector.redaction to redact, "
            f"instead of drop-content, for the service {evidence.task['service'] or '*'}"
        )
        notes.ask("task.messages, arguments: dropped by the collector's policy drop-content")
    if any(not call.captured for call in evidence.calls):
        reasons.append(f"arguments of tool calls not captured: {_capture(evidence)}")
    return reasons


def _capture(evidence: Evidence) -> str:
    """What would have captured the content, in the words of the emitter that sent the task."""
    emitters = Counter(str(turn["emitter"]) for turn in evidence.turns if turn["emitter"])
    family = emitters.most_common(1)[0][0] if emitters else BASE
    return f"{_CAPTURE}: {content_setting(family)}"


def _case(
    evidence: Evidence,
    tools: Mapping[str, Tool],
    scene: Scene,
    expectation: Expectation,
    notes: Notes,
    exporter: str,
) -> Json:
    incident, task = evidence.incident, evidence.task
    mode = str(incident["mode"])
    known = taxonomy().get(mode) or taxonomy().get(incident["kind"]) or {}
    fingerprint = str(incident["fingerprint"])
    names = {"tool": incident["tool"] or "a tool", "agent": incident["agent"] or "an agent"}
    tokens = [task["input_tokens"], task["output_tokens"]]
    case: Json = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "case_id": f"inc-{fingerprint}",
        "revision": 1,
        "title": _title(str(known.get("title", mode)), names),
        "set": "regression",
        "role": "incident",
        "split": _split(fingerprint),
        "split_group": f"grp-{fingerprint[:8]}",
        "fingerprint": {
            "algorithm": FINGERPRINT,
            "value": fingerprint,
            "parts": {
                "agent": incident["agent"] or "",
                "mode": mode,
                "tool": incident["tool"] or "",
                "fault": incident["fault"],
                "error": incident["error"],
                "shape": list(incident["shape"] or []),
            },
        },
        "origin": {
            "incident_id": incident["incident_id"],
            "task_id": task["task_id"],
            "trace_id": evidence.runs[0]["trace_id"],
            "root_span_id": evidence.root["span_id"] if evidence.root else None,
            "evidence_span_ids": evidence.evidence_span_ids
            or [evidence.runs[0]["run_id"].rpartition("/")[2]],
            "seen_count": incident["seen_count"],
            "first_seen": _time(incident["first_seen"]),
            "last_seen": _time(incident["last_seen"]),
            "other_trace_ids": _others(evidence),
            "service": task["service"],
            "service_version": task["app_version"],
            "environment": task["environment"],
            "model": next((turn["model"] for turn in evidence.turns if turn["model"]), None),
            "exported_at": _time(incident["last_seen"]),
            "exporter": exporter,
            "semconv": "gen_ai",
        },
        "classification": {
            "slo": known.get("slo", incident["kind"]),
            "failure_mode": mode,
            "mast": list(known.get("mast", [])),
            "trail": list(known.get("trail", [])),
            "severity": SEVERITIES.get(incident["severity"], "minor"),
            "derived_by": f"sql:{_rule(evidence)}",
        },
        "task": {"messages": [*map(dict, evidence.told.messages), *expectation.messages], "context": {}},
        "tools": [tool.as_json() for tool in tools.values()],
        "world": {"rules": scene.rules, "on_unmatched": "error"},
        "faults": scene.faults,
        "expect": {"checks": expectation.checks},
        "observed": {
            "calls": scene.calls,
            "final": evidence.final,
            "outcome": task["outcome"],
            "failed_checks": [],
            "cost_usd": task["cost_usd"],
            "tokens": sum(t for t in tokens if t) if any(tokens) else None,
            "latency_s": task["wall_s"],
        },
        "derivation": notes.as_json(),
    }
    if scene.resume():
        case["resume"] = scene.resume()
    return case


def _title(pattern: str, names: Mapping[str, str]) -> str:
    if not pattern.startswith("{"):
        pattern = pattern[:1].upper() + pattern[1:]
    # not str.format: the name of a tool is data and may hold braces
    for name, value in names.items():
        pattern = pattern.replace("{" + name + "}", value)
    return pattern


def _rule(evidence: Evidence) -> str:
    return str(evidence.own_findings[0]["rule"]) if evidence.own_findings else str(evidence.incident["kind"])


def _others(evidence: Evidence) -> list[str]:
    own = {run["trace_id"] for run in evidence.runs}
    others = [t for f in evidence.findings for t in f["trace_ids"] if t not in own]
    return list(dict.fromkeys(others))[:20]


def _split(fingerprint: str) -> str:
    """By group and for ever the same: a case never moves from the holdout into tuning."""
    tenth = int(fingerprint, 16) % 10
    return "holdout" if tenth == 0 else "dev" if tenth <= 2 else "test"


def _time(moment: datetime) -> str:
    return moment.replace(microsecond=0).isoformat() + "Z"


def _redacted(case: Json, redactor: Redactor) -> Json:
    found = {name: value if name in _EXEMPT else redactor.redact(value) for name, value in case.items()}
    found["origin"].update({name: case["origin"][name] for name in _KEPT_ORIGIN})
    found["fingerprint"]["value"] = case["fingerprint"]["value"]
    return found


def _proven(base: Json, expectation: Expectation, situation: Situation) -> tuple[list[Json], Proof]:
    """Choose the hidden effect under which the recorded calls fail; the other one is the twin's."""
    best: tuple[list[Json], Proof] | None = None
    doubtful = _doubtful(base, situation)
    for effect in ("applied", "not_applied") if doubtful else (None,):
        incident = copy.deepcopy(base)
        if effect:
            _set_effect(incident, doubtful, effect)
        group = [incident]
        if expectation.checks:
            if expectation.twin:
                group.append(_twin(incident, doubtful, situation))
            group += _control(incident, situation)
        proof = prove(group)
        incident["observed"]["failed_checks"] = list(proof.recorded_fails)
        for case in group[1:]:
            case["observed"]["failed_checks"] = []
        if best is None or (proof.recorded_fails and len(proof.reasons) < len(best[1].reasons)):
            best = (group, proof)
        if proof.holds:
            break
    assert best is not None  # the loop ran at least once
    return best


def _doubtful(case: Json, situation: Situation) -> list[str]:
    """Faults whose hidden effect can be the other way round: timeouts and crashes of writes."""
    writes = {tool["name"] for tool in case["tools"] if tool["effect"] == "write"}
    return [
        fault["id"]
        for fault in case["faults"]
        if fault["tool"] in writes and fault["kind"] in ("timeout", "crash")
    ]


def _set_effect(case: Json, faults: list[str], effect: str) -> None:
    for fault in case["faults"]:
        if fault["id"] in faults:
            fault["effect"] = effect


def _twin(incident: Json, doubtful: list[str], situation: Situation) -> Json:
    twin = copy.deepcopy(incident)
    twin.update(case_id=incident["case_id"] + "-twin", role="twin")
    if doubtful:
        for fault in twin["faults"]:
            if fault["id"] in doubtful:
                fault["effect"] = "not_applied" if fault["effect"] == "applied" else "applied"
        return twin
    # no hidden effect to turn round: the same task where the call fails once for certain and must be made again
    tool = _own_tool(situation)
    if tool is None:
        return twin
    error = {"type": "unavailable", "message": "temporarily unavailable, try again", "retryable": True}
    twin["faults"] = [
        {
            "id": "twin",
            "tool": tool.name,
            "from_call": 1,
            "times": 1,
            "kind": "error",
            "effect": "not_applied",
            "error": error,
        }
    ]
    twin.pop("resume", None)
    checks = [expectations.done(tool, situation.of(tool), "done")]
    checks.append(expectations.check("bounded", "attempts", tool=tool.name, max=5))
    checks += [check for check in incident["expect"]["checks"] if check["kind"] == "effect_exists"]
    twin["expect"] = {"checks": checks + _no_handover(situation)}
    return twin


def _own_tool(situation: Situation) -> Tool | None:
    """The tool of the finding, or of the first call, that the task itself has use for."""
    subject, asked = situation.subject, situation.asked
    if subject is not None and not all(call.repairs for call in situation.of(subject) or asked[:1]):
        return subject
    return situation.tools[asked[0].tool] if asked else None


def _no_handover(situation: Situation) -> list[Json]:
    if not situation.escalations:
        return []
    return [expectations.check("noesc", "escalated", tools=situation.escalations, expected=False)]


def _control(incident: Json, situation: Situation) -> list[Json]:
    """The same task on a good day: everything works, so the work is done once and nobody is bothered."""
    control = copy.deepcopy(incident)
    control.update(case_id=incident["case_id"] + "-control", role="control", faults=[])
    control.pop("resume", None)
    if not _lowered(control, situation):
        return []
    named = [call.tool for call in situation.asked]
    undoing = {
        check["params"]["by"] for check in incident["expect"]["checks"] if check["kind"] == "compensated"
    }
    checks: list[Json] = []
    wanted = [situation.tools[name] for name in dict.fromkeys(named) if name not in undoing]
    for tool in wanted:
        if tool.writes and not tool.escalates:
            checks.append(expectations.done(tool, situation.of(tool), f"done{len(checks) + 1}"))
    if not checks and wanted:
        checks.append(expectations.done(wanted[-1], situation.of(wanted[-1]), "done1"))
    if not checks:
        return []
    control["expect"] = {"checks": checks + _no_handover(situation)}
    return [control]


def _lowered(control: Json, situation: Situation) -> bool:
    """For a policy fault the control lies below the limit: the amount is lowered wherever it stands."""
    if situation.evidence.incident["kind"] != "executed_without_approval" or situation.subject is None:
        return True
    limits = expectations.threshold(situation.settings, situation.subject.name)
    call = next((c for c in situation.calls if c.tool == situation.subject.name), None)
    if call is None or not limits:
        return False
    for name, limit in limits.items():
        value = call.args.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return False
        low = int(limit * 0.8) or 1
        pattern = expectations.spoken(float(value))
        asked = any(pattern.search(message["content"]) for message in control["task"]["messages"])
        if not asked and not any(_holds(rule.get("result"), value) for rule in control["world"]["rules"]):
            return False
        for message in control["task"]["messages"]:
            message["content"] = pattern.sub(str(low), message["content"])
        for place in ("world", "observed"):
            control[place] = _replaced(control[place], value, low)
    return True


def _holds(value: Any, wanted: float) -> bool:
    if isinstance(value, Mapping):
        return any(_holds(item, wanted) for item in value.values())
    if isinstance(value, list):
        return any(_holds(item, wanted) for item in value)
    return not isinstance(value, bool) and isinstance(value, (int, float)) and value == wanted


def _replaced(value: Any, old: float, new: float) -> Any:
    if isinstance(value, Mapping):
        return {key: _replaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, old, new) for item in value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return new if value == old else value
