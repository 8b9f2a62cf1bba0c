"""The trace of a case as OTLP/JSON, redacted like the case itself, for a tool that wants to look at it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from incidents.redaction import Redactor

Json = dict[str, Any]
_KINDS = {"unspecified": 0, "internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_STATUS = {"unset": 0, "ok": 1, "error": 2}


def export_request(spans: Sequence[Mapping[str, Any]], redactor: Redactor) -> Json:
    """One ExportTraceServiceRequest with all spans, grouped by resource and scope in the order of their first span.

    `spans`: rows of the public view `spans`. Ids are kept; names, values and messages are redacted.
    """
    resources: dict[str, tuple[Json, dict[str, tuple[Json, list[Json]]]]] = {}
    for row in spans:
        resource = row["resource"] or "{}"
        if resource not in resources:
            resources[resource] = ({"attributes": _attributes(resource, redactor)}, {})
        scopes = resources[resource][1]
        scope = f"{row['scope']}\n{row['scope_version']}"
        if scope not in scopes:
            named = {"name": redactor.text(row["scope"] or ""), "version": row["scope_version"] or ""}
            scopes[scope] = (named, [])
        scopes[scope][1].append(_span(row, redactor))
    return {
        "resourceSpans": [
            {
                "resource": resource,
                "scopeSpans": [{"scope": scope, "spans": listed} for scope, listed in scopes.values()],
            }
            for resource, scopes in resources.values()
        ]
    }


def _span(row: Mapping[str, Any], redactor: Redactor) -> Json:
    found: Json = {
        "traceId": row["trace_id"],
        "spanId": row["span_id"],
        "parentSpanId": row["parent_span_id"] or "",
        "name": redactor.text(row["name"] or ""),
        "kind": _KINDS.get(row["kind"], 0),
        "startTimeUnixNano": str(row["start_ns"]),
        "attributes": _attributes(row["attributes"], redactor),
        "status": {"code": _STATUS.get(row["status"], 0)},
    }
    if row["end_ns"] is not None:
        found["endTimeUnixNano"] = str(row["end_ns"])
    if row["status_message"]:
        found["status"]["message"] = redactor.text(row["status_message"])
    events = json.loads(row["events"]) if row["events"] else []
    if events:
        found["events"] = [
            {
                "name": redactor.text(str(event.get("name", ""))),
                "timeUnixNano": str(event.get("time_ns", 0)),
                "attributes": _listed(event.get("attributes") or {}, redactor),
            }
            for event in events
        ]
    links = json.loads(row["links"]) if row["links"] else []
    if links:
        found["links"] = [
            {
                "traceId": link.get("trace_id", ""),
                "spanId": link.get("span_id", ""),
                "attributes": _listed(link.get("attributes") or {}, redactor),
            }
            for link in links
        ]
    return found


def _attributes(text: str | None, redactor: Redactor) -> list[Json]:
    return _listed(json.loads(text) if text else {}, redactor)


def _listed(attributes: Mapping[str, Any], redactor: Redactor) -> list[Json]:
    clean = redactor.redact({key: _opened(value) for key, value in attributes.items()})
    return [
        {
            "key": new,
            "value": attribute_value(
                json.dumps(clean[new], ensure_ascii=False) if _is_json(attributes[old]) else clean[new]
            ),
        }
        for old, new in zip(attributes, clean, strict=False)
    ]


def _is_json(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(_opened(value), str)


def _opened(value: Any) -> Any:
    """JSON inside a string is redacted as the object it is: a secret is known by the name of its key."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            found = json.loads(value)
        except ValueError:
            return value  # prose that begins with a bracket
        return found if isinstance(found, (dict, list)) else value
    return value


def attribute_value(value: Any) -> Json:
    """A plain JSON value as OTLP/JSON writes it (`AnyValue`)."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [attribute_value(item) for item in value]}}
    if isinstance(value, Mapping):
        return {
            "kvlistValue": {
                "values": [{"key": str(k), "value": attribute_value(v)} for k, v in value.items()]
            }
        }
    return {"stringValue": "" if value is None else str(value)}
