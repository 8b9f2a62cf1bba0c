"""The records of each tool, made of canonical cases. Only proven groups become records."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

from incidents.case import Group, canonical_text

Json = dict[str, Any]


def proven(groups: Sequence[Group]) -> Iterator[Json]:
    """Every case of every group that is no draft and was neither rejected nor retired."""
    for group in groups:
        if group.incident["review"]["state"] in ("in_review", "approved"):
            yield from group.cases


def musts(case: Json) -> list[Json]:
    """The checks that decide."""
    return [check for check in case["expect"]["checks"] if check.get("level", "must") == "must"]


def described(case: Json) -> list[str]:
    """The deciding checks in a line each, for people."""
    return [
        f"{check['id']}: {check['kind']} {canonical_text(check.get('params', {}))}" for check in musts(case)
    ]


def metadata(case: Json) -> Json:
    """What a tool filters and groups by."""
    return {
        "case_id": case["case_id"],
        "split_group": case["split_group"],
        "role": case["role"],
        "set": case["set"],
        "split": case["split"],
        "severity": case["classification"]["severity"],
        "failure_mode": case["classification"]["failure_mode"],
        "slo": case["classification"]["slo"],
        "trace_id": case["origin"]["trace_id"],
        "content_hash": case["content_hash"],
        "revision": case["revision"],
    }


def lines(records: Iterator[Json]) -> str:
    """One JSON text a line."""
    return "".join(canonical_text(record) + "\n" for record in records)


def inspect(case: Json) -> Json:
    """A sample of Inspect AI: unknown keys are dropped there, so everything stands in the metadata."""
    return {
        "id": case["case_id"],
        "input": [{"role": m["role"], "content": m["content"]} for m in case["task"]["messages"]],
        "target": "; ".join(described(case)),
        "metadata": {"case": case, **metadata(case)},
    }


def promptfoo(case: Json) -> Json:
    """A test of promptfoo: the case is one base64 text, since variables are templates there and lists multiply."""
    return {
        "description": f"{case['case_id']} {case['classification']['failure_mode']}",
        "vars": {
            "case_id": case["case_id"],
            "case_b64": base64.b64encode(canonical_text(case).encode()).decode(),
        },
        "metadata": metadata(case),
        "assert": [
            {
                "type": "python",
                "value": "file://check.py",
                "metric": check["kind"],
                "config": {"check": check["id"]},
                "weight": 1 if check.get("level", "must") == "must" else 0,
            }
            for check in case["expect"]["checks"]
            if check.get("level", "must") == "must"
        ],
    }


def pydantic_evals(cases: Iterator[Json]) -> str:
    """The whole dataset of pydantic-evals, which refuses every key it does not know."""
    document = {
        "name": "incidents",
        "cases": [
            {
                "name": case["case_id"],
                "inputs": {"case": case},
                "metadata": metadata(case),
                "evaluators": [{"Invariant": {"check": check["id"]}} for check in musts(case)],
            }
            for case in cases
        ],
    }
    return canonical_text(document) + "\n"


def row(case: Json) -> Json:
    """The generic row of which the loaders make records for other tools."""
    users = [m["content"] for m in case["task"]["messages"] if m["role"] == "user"]
    return {
        "id": case["case_id"],
        "input": {"text": users[-1] if users else "", "messages": case["task"]["messages"], "case": case},
        "expected": {"checks": described(case)},
        "metadata": metadata(case),
    }
