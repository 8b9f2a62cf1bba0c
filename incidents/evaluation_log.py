"""Verdicts as OTLP log records `gen_ai.evaluation.result`, marked so that no objective counts them.

The resource says `deployment.environment.name=replay`, which `exclude.environments` leaves out by default. Records
carry the trace id that the agent was given as its parent, so they stand with what an instrumented agent sent itself.
Source: OpenTelemetry semantic conventions for generative AI, event `gen_ai.evaluation.result` (in development).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx

from incidents.command_agent import ENVIRONMENT, Played
from incidents.otlp import attribute_value

Json = dict[str, Any]
EVENT = "gen_ai.evaluation.result"
SERVICE = "agent-slo-replay"
_INFO, _WARN = 9, 13


def log_request(played: Sequence[Played], version: str, at_ns: int) -> Json:
    """One ExportLogsServiceRequest (OTLP/JSON): a record a check and, last, one for the whole verdict of each case."""
    return {
        "resourceLogs": [
            {
                "resource": {
                    "attributes": _attributes(
                        {
                            "service.name": SERVICE,
                            "service.version": version,
                            "deployment.environment.name": ENVIRONMENT,
                        }
                    )
                },
                "scopeLogs": [
                    {
                        "scope": {"name": "agent-slo.replay", "version": version},
                        "logRecords": [record for one in played for record in _records(one, at_ns)],
                    }
                ],
            }
        ]
    }


def _records(played: Played, at_ns: int) -> list[Json]:
    case = played.case
    shared = {
        "agent_slo.case.id": case["case_id"],
        "agent_slo.case.role": case["role"],
        "agent_slo.case.content_hash": case["content_hash"],
        "agent_slo.incident.id": case["origin"]["incident_id"],
        "agent_slo.incident.trace_id": case["origin"]["trace_id"],
    }
    told = [
        (f"{result['kind']}.{result['id']}", bool(result["pass"]), result["why"])
        for result in played.verdict.results
    ]
    whole = "; ".join(result["why"] for result in played.verdict.results if not result["pass"])
    if played.timed_out:
        whole = "the agent did not end in time" + (f"; {whole}" if whole else "")
    told.append(("agent_slo.replay", played.passed, whole or "every check holds"))
    inconclusive = played.verdict.inconclusive
    return [
        {
            # the whole verdict is the latest: where one evaluation of a task counts, it is this one
            "timeUnixNano": str(at_ns + number),
            "observedTimeUnixNano": str(at_ns + number),
            "severityNumber": _INFO if holds else _WARN,
            "eventName": EVENT,
            "body": {"stringValue": EVENT},
            "traceId": played.trace_id,
            "spanId": played.span_id,
            "attributes": _attributes(
                {
                    "gen_ai.evaluation.name": name,
                    "gen_ai.evaluation.score.value": 1.0 if holds else 0.0,
                    "gen_ai.evaluation.score.label": "pass"
                    if holds
                    else "inconclusive"
                    if inconclusive
                    else "fail",
                    "gen_ai.evaluation.explanation": why,
                    **shared,
                }
            ),
        }
        for number, (name, holds, why) in enumerate(told)
    ]


def _attributes(values: Mapping[str, Any]) -> list[Json]:
    return [{"key": key, "value": attribute_value(value)} for key, value in values.items()]


def send(endpoint: str, played: Sequence[Played], version: str, headers: str = "") -> None:
    """Post the verdicts to an OTLP/HTTP endpoint: the base address, or one that ends in `/v1/logs`.

    `headers`: as in `OTEL_EXPORTER_OTLP_HEADERS`, `name=value` with commas between. Raises `ValueError` for an address
    or a header that is none, `httpx.HTTPError` when the endpoint does not take them.
    """
    place = urlsplit(endpoint)
    if place.scheme not in ("http", "https") or not place.netloc:
        raise ValueError(f"{endpoint!r} is no address; write http://127.0.0.1:4318")
    address = endpoint.rstrip("/")
    address = address if address.endswith("/v1/logs") else address + "/v1/logs"
    answer = httpx.post(
        address,
        json=log_request(played, version, time.time_ns()),
        headers=dict(_header(pair) for pair in headers.split(",") if pair.strip()),
        timeout=30.0,
        trust_env=place.hostname not in ("127.0.0.1", "localhost", "::1"),
    )
    answer.raise_for_status()


def _header(pair: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"OTEL_EXPORTER_OTLP_HEADERS: {pair.strip()!r} is no header; write name=value")
    return name.strip().lower(), unquote(value.strip())
