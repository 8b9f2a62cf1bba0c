"""The verdict for machines: JUnit XML and SARIF 2.1.0."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from metrics.gate.judge import Case

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"high": "error", "medium": "warning", "low": "note"}
_NOT_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF))


def _clean(text: str) -> str:
    """Without the characters XML 1.0 cannot hold."""
    return text.translate(_NOT_XML)


def junit(cases: Sequence[Case]) -> str:
    """JUnit XML: a suite of objectives and one of findings; what is known counts as passed."""
    root = Element("testsuites", name="agent-slo check")
    for group in ("objective", "finding"):
        part = [c for c in cases if c.group == group]
        suite = SubElement(
            root,
            "testsuite",
            name=f"{group}s",
            tests=str(len(part)),
            failures=str(sum(c.failed for c in part)),
            skipped=str(sum(c.result == "skipped" for c in part)),
            errors="0",
        )
        for case in part:
            test = SubElement(suite, "testcase", classname=f"agent-slo.{group}", name=_clean(case.name))
            text = "\n".join((case.why, *(f"task {t}" for t in case.tasks)))
            if case.failed:
                SubElement(test, "failure", message=_clean(case.why), type=group).text = _clean(text)
            elif case.result == "skipped":
                SubElement(test, "skipped", message=_clean(case.why))
            else:
                SubElement(test, "system-out").text = _clean(text)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def sarif(cases: Sequence[Case], place: str, version: str, *, compared: bool = False) -> str:
    """SARIF with one result per case that failed or is known.

    `place` is the file or folder that was checked (`-`: standard input); `compared`: there was a baseline, so each
    result says whether it is new.
    """
    uri = "stdin" if place == "-" else quote(place)
    told = [c for c in cases if c.result in ("failed", "known")]
    rules = sorted({c.rule for c in told})
    value = {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "agent-slo",
                        "version": version,
                        "rules": [{"id": r, "shortDescription": {"text": _rule_words(r)}} for r in rules],
                    }
                },
                "results": [_result(c, rules.index(c.rule), uri, compared) for c in told],
            }
        ],
    }
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _rule_words(rule: str) -> str:
    kind, _, name = rule.partition("/")
    return f"The objective {name} is met" if kind == "objective" else f"No finding of the kind {name}"


def _result(case: Case, index: int, uri: str, compared: bool) -> dict[str, Any]:
    logical = [{"fullyQualifiedName": t, "kind": "task"} for t in case.tasks]
    return {
        "ruleId": case.rule,
        "ruleIndex": index,
        "level": _LEVELS.get(case.severity, "error") if case.failed else "note",
        "message": {"text": f"{case.title}: {case.why}"},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}},
                **({"logicalLocations": logical} if logical else {}),
            }
        ],
        "partialFingerprints": {
            "agentSlo/v1": hashlib.sha256(f"{case.group}\n{case.name}".encode()).hexdigest()[:32]
        },
        **({"baselineState": "new" if case.failed else "unchanged"} if compared else {}),
    }
