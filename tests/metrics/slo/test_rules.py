"""The Prometheus rules of `agent-slo slo rules`: real PromQL, and Sloth's numbers where promtool evaluates them."""

from __future__ import annotations

import shutil
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from metrics.openslo import default_objectives
from metrics.slo.objective import SloWindow
from metrics.slo.rules import rule_file
from metrics.slo.windows import parse_duration
from tests.metrics.slo.conftest import objective

OBJECTIVES = [
    *default_objectives(),
    objective(slo='odd "name"\\', service="a\nb", target=Decimal("0.999")),
    objective(slo="slices", method="Timeslices", slice_target=Decimal("0.9"), slice_s=3600),
    objective(slo="week", window=SloWindow(parse_duration("7d"))),
]


def rules(text: str) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def test_every_expression_is_promql() -> None:
    found = rules(rule_file(OBJECTIVES))
    assert len(found) > 200
    for rule in found:
        assert promql_parser.parse(rule["expr"]) is not None, rule


def test_the_parser_would_notice() -> None:
    with pytest.raises(ValueError, match="unclosed"):
        promql_parser.parse('sum(rate(agent_slo_events_total{outcome="bad"}[5m])')


LABELS = "sloth_id, sloth_service, sloth_slo, sloth_window"

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool (Debian: prometheus) is not installed"
)


def promtool(*arguments: str | Path, folder: Path) -> str:
    command = ["promtool", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_promtool
def test_promtool_finds_no_fault(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(rule_file(OBJECTIVES))
    said = promtool("check", "rules", "rules.yaml", folder=tmp_path)
    assert f"{len(rules(rule_file(OBJECTIVES)))} rules found" in said


@needs_promtool
def test_the_rules_give_the_numbers_dashboards_made_for_sloth_expect(tmp_path: Path) -> None:
    """1,000 events an hour of which 2 % are bad, against a budget of 1 %: an error rate of 0.02 is a burn rate of 2."""
    (tmp_path / "rules.yaml").write_text(
        rule_file([objective(slo="done", service="refunds", target=Decimal("0.99"))])
    )
    where = 'slo="done",objective="o",agent="",task_type=""'
    series = [
        {"series": f'agent_slo_events_total{{{where},outcome="good"}}', "values": "0+980x200"},
        {"series": f'agent_slo_events_total{{{where},outcome="bad"}}', "values": "0+20x200"},
        # what other outcomes and single agents count belongs to no error rate
        {"series": f'agent_slo_events_total{{{where},outcome="unknown"}}', "values": "0+500x200"},
        {
            "series": 'agent_slo_events_total{slo="done",objective="o",agent="a",task_type="",outcome="bad"}',
            "values": "0+20x200",
        },
        *(
            {"series": f'agent_slo_burn_rate{{{where},window="{window}"}}', "values": f"{burn}x200"}
            for window, burn in (("1h", 2), ("6h", 3), ("1d", 4), ("3d", 5), ("period", "0.5"))
        ),
        {"series": f"agent_slo_error_budget_remaining_ratio{{{where}}}", "values": "0.5x200"},
    ]
    identity = 'sloth_id="refunds-done", sloth_service="refunds", sloth_slo="done"'

    def sample(name: str, value: float, more: str = "") -> dict[str, Any]:
        rest = f', sloth_window="{more}"' if more else ""
        return {
            "expr": f"sum by (__name__, {LABELS}) ({name}{{sloth_id='refunds-done'}})",
            "eval_time": "2h",
            "exp_samples": [{"labels": f"{name}{{{identity}{rest}}}", "value": value}],
        }

    expected = [
        *(sample(f"slo:sli_error:ratio_rate{w}", 0.02, w) for w in ("5m", "30m", "2h")),
        *(
            sample(f"slo:sli_error:ratio_rate{w}", value, w)
            for w, value in (("1h", 0.02), ("6h", 0.03), ("1d", 0.04), ("3d", 0.05), ("28d", 0.005))
        ),
        sample("slo:objective:ratio", 0.99),
        sample("slo:error_budget:ratio", 0.01),
        sample("slo:time_period:days", 28),
        sample("slo:current_burn_rate:ratio", 2, "5m"),
        sample("slo:period_burn_rate:ratio", 0.5, "28d"),
        sample("slo:period_error_budget_remaining:ratio", 0.5),
    ]
    tests = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": expected}],
    }
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(tests, sort_keys=False))
    assert "SUCCESS" in promtool("test", "rules", "tests.yaml", folder=tmp_path)
