"""agent-slo.yaml: found, checked, and wrong keys named with their line."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from agent_slo.config import Config, load_config, parse_config, parse_size
from agent_slo.errors import CommandError
from agent_slo.options import Place
from metrics.slo.objective import UnknownPolicy

FILE = Path("agent-slo.yaml")


def test_an_empty_file_gives_the_defaults() -> None:
    assert parse_config("", FILE) == Config()
    assert parse_config("# nothing\n", FILE) == Config()


def test_every_section_of_the_documented_example_is_known() -> None:
    config = parse_config(
        """
collector: {http: 127.0.0.1:14318, grpc: 127.0.0.1:14317, redaction: keep, max_request_bytes: 64MiB}
dashboard: {port: 18501}
conventions:
  aliases: {task.id: agent_slo.task.id}
tools:
  issue_refund: {effect: write, key_fields: [order_id, amount], compensated_by: [cancel_refund], window: 24h,
                 key_ttl: 24h, timeout: 30s, on_failure: escalate, retry: {max_attempts: 3}}
  "get_*": {effect: read}
results: {refused: ["^Error"]}
tasks:
  default: {quiet: 10m, deadline: 1h, human_deadline: null, unknown: bad-after-24h,
            gate_is_intervention: true}
  refund: {match: {agent: refund_agent}, deadline: 2h}
policies:
  approvals: [{tool: issue_refund, above: {amount: 500}}]
objectives: [slo/*.yaml]
prices: [{model: house-model, input: 1, output: 2}]
maintenance: []
exclude: {environments: [test, eval, replay]}
service_hours: {refund_agent: {days: [mon], start: "08:00", end: 18:00, zone: Europe/Berlin, slice: 30m, quiet: bad}}
""",
        FILE,
    )
    assert config.collector.http == "127.0.0.1:14318"
    assert config.collector.max_request_bytes == 64 << 20
    assert config.tasks["default"].quiet == timedelta(minutes=10)
    assert config.price_overrides()[0].model == "house-model"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("colector: {}\n", "agent-slo.yaml:1: unknown key 'colector'; did you mean 'collector'?"),
        ("collector:\n  htpp: x\n", "agent-slo.yaml:2: unknown key 'collector.htpp'; did you mean 'http'?"),
        (
            "tools:\n  a:\n    efect: read\n",
            "agent-slo.yaml:3: unknown key 'tools.a.efect'; did you mean 'effect'?",
        ),
        (
            "tools:\n  a:\n    zzz: 1\n",
            "agent-slo.yaml:3: unknown key 'tools.a.zzz'; known keys: effect, key_fields",
        ),
        (
            "policies:\n  approvals:\n    - {tol: x, tool: y}\n",
            "agent-slo.yaml:3: unknown key 'policies.approvals.0.tol'",
        ),
        ("tasks:\n  default: {quiet: 0}\n", "agent-slo.yaml:2: tasks.default.quiet: 0 is no duration"),
        ("collector: {http: nowhere}\n", "agent-slo.yaml:1: collector.http: 'nowhere' is no address"),
        (
            "collector: {redaction: hide}\n",
            "agent-slo.yaml:1: collector.redaction: 'hide' is no policy; write one of keep, redact, drop-content",
        ),
        ("prices: [{modle: x}]\n", "agent-slo.yaml:1: prices: entry 1, "),
        ("a: [\n", "agent-slo.yaml:2: not valid YAML"),
        ("- 1\n", "agent-slo.yaml:1: expected `key: value` sections"),
        ("tools: {}\ntools: {}\n", "agent-slo.yaml:2: 'tools' is written twice"),
    ],
)
def test_a_fault_names_file_line_and_remedy(text: str, line: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_config(text, FILE)
    assert line in str(caught.value)


def doubling(levels: int, one: str) -> str:
    """A few lines that are ten to the power of `levels` values once their aliases are written out."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{i}: &a{i} {one.format(', '.join([f'*a{i - 1}'] * 10))}" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (doubling(12, "[{}]"), "too many values (or aliases that multiply them); split the file"),
        (doubling(12, "{{<<: [{}]}}"), "too many values (or aliases that multiply them); split the file"),
        (
            "a: " + "[" * 50_000 + "]" * 50_000,
            "nested deeper than 100, or an alias that holds itself; flatten it",
        ),
        ("{a: " * 150 + "1" + "}" * 150, "nested deeper than 100, or an alias that holds itself; flatten it"),
        ("a: &a [*a]", "nested deeper than 100, or an alias that holds itself; flatten it"),
        ("a: \0", "not valid YAML: unacceptable character #x0000"),
        ("a: 2026-13-45", "not valid YAML: month must be in 1..12"),
        ("dashboard: {port: " + "9" * 5000 + "}", "not valid YAML: Exceeds the limit"),
        ("1: 2", "keys should be strings"),
    ],
    ids=[
        "aliases",
        "merge keys",
        "deep list",
        "deep mapping",
        "circle",
        "nul",
        "no date",
        "no number",
        "no text",
    ],
)
def test_what_would_break_a_reader_is_one_clear_line(text: str, line: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_config(text, FILE)
    assert line in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).startswith("agent-slo.yaml:")


def test_aliases_that_repeat_a_little_are_fine() -> None:
    config = parse_config("tools:\n  a: &pay {effect: write, timeout: 30s}\n  b: *pay\n", FILE)
    assert config.tools["a"] == config.tools["b"]


def test_a_file_of_megabytes_is_not_even_read(tmp_path: Path) -> None:
    (tmp_path / "agent-slo.yaml").write_text("# " + "x" * (1 << 20) + "\n")
    with pytest.raises(CommandError, match="larger than 1024 KiB; split the file"):
        load_config(None, tmp_path)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "tasks: {default: {deadline: 9999999999999d}}",
            "tasks.default.deadline: '9999999999999d' is too long",
        ),
        ("tasks: {default: {deadline: .inf}}", "tasks.default.deadline: inf is too long"),
        ("tasks: {default: {deadline: .nan}}", "tasks.default.deadline: nan is no duration"),
        ("tasks: {default: {deadline: 'x9'}}", "tasks.default.deadline: 'x9' is no duration"),
        (
            "tools: {a: {retry: {max_attempts: 99999999999999999999}}}",
            "tools.a.retry.max_attempts: input should be",
        ),
        (
            "detectors: {dead_letter_after: 99999999999999999999}",
            "detectors.dead_letter_after: input should be",
        ),
        ("detectors: {hung_multiple: .inf}", "detectors.hung_multiple: input should be a finite number"),
        (
            "storage: {keep_days: 99999999999}",
            "storage.keep_days: input should be less than or equal to 36500",
        ),
        (
            "maintenance: [{start: 2026-01-02T00:00Z, end: 2026-01-01}]",
            "maintenance.0: it ends before it starts; mend start or end",
        ),
        (
            "maintenance: [{start: 0001-01-01T00:00:00+14:00, end: 2026-01-01}]",
            "maintenance.0.start: 0001-01-01 00:00:00+14:00 is no time in UTC",
        ),
        (
            "alerts: {events: [{name: a, finding: duplicate_acton}]}",
            "alerts: events, a, finding: 'duplicate_acton' is no kind of finding; did you mean 'duplicate_action'?",
        ),
        ("collector: 5", "collector: expected `key: value` lines below it"),
        ("tools: [a]", "tools: expected `name: value` lines below it"),
        ("collector: {cors_origins: x}", "collector.cors_origins: expected a list, as [one, two]"),
        (
            "collector: {cors_origins: [https://a.example, '*']}",
            "collector.cors_origins.1: origin '*': write each like https://app.example.com, without a path; there is",
        ),
        ("collector: {threads: x}", "collector.threads: expected a whole number"),
        (
            "alerts: {targets: [{type: x, name: a}]}",
            "alerts.targets.0.type: 'x' is none; write one of alertmanager,",
        ),
        ("alerts: {targets: [{name: a}]}", "alerts.targets.0.type: it is missing; write one of"),
        (
            "alerts: {silences: [{start: 2026-01-02T00:00Z, end: 2026-01-01, reason: x}]}",
            "alerts.silences.0: it ends before it starts",
        ),
    ],
)
def test_numbers_and_times_out_of_all_bounds_are_one_clear_line(text: str, line: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_config(text, FILE)
    assert f"agent-slo.yaml:1: {line}" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("", UnknownPolicy("bad-after", 86400)),
        ("tasks: {default: {deadline: 1h}}", UnknownPolicy("bad-after", 86400)),
        ("tasks: {default: {unknown: exclude}}", UnknownPolicy("exclude")),
        ("tasks: {default: {unknown: bad}}", UnknownPolicy("bad")),
        ("tasks: {default: {unknown: bad-after-2h}}", UnknownPolicy("bad-after", 7200)),
    ],
)
def test_what_unknown_outcomes_count_as_where_an_objective_says_nothing(
    tmp_path: Path, text: str, policy: UnknownPolicy
) -> None:
    (tmp_path / "agent-slo.yaml").write_text(text)
    objectives = {o.sli_name: o for o in Place(tmp_path, None, stated=True).objectives()}
    assert objectives["task_completion"].unknown == policy
    # what stays open by nature, or is said in the file, stays as it is
    for name in ("latency", "escalation_precision", "availability"):
        assert objectives[name].unknown == UnknownPolicy("exclude")


def test_a_policy_for_one_task_type_belongs_to_an_objective() -> None:
    with pytest.raises(CommandError, match="tasks: refund: unknown: stands under default only"):
        parse_config("tasks: {refund: {unknown: exclude}}", FILE)


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(CommandError) as caught:
        parse_config("tols: {}\ntaks: {}\n", FILE)
    assert len(str(caught.value).splitlines()) == 2


def test_the_file_is_looked_for_in_three_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, data = tmp_path / "work", tmp_path / "data"
    work.mkdir()
    data.mkdir()
    monkeypatch.chdir(work)
    assert load_config(None, data).path is None
    (work / "agent-slo.yaml").write_text("dashboard: {port: 1111}\n")
    assert load_config(None, data).config.dashboard.port == 1111
    (data / "agent-slo.yaml").write_text("dashboard: {port: 2222}\n")
    assert load_config(None, data).config.dashboard.port == 2222
    named = tmp_path / "named.yaml"
    named.write_text("dashboard: {port: 3333}\n")
    assert load_config(named, data).config.dashboard.port == 3333
    with pytest.raises(CommandError, match="no such configuration file"):
        load_config(tmp_path / "missing.yaml", data)


def test_objective_patterns_are_relative_to_the_file_and_must_match(tmp_path: Path) -> None:
    (tmp_path / "slo").mkdir()
    (tmp_path / "slo" / "a.yaml").write_text("")
    config = tmp_path / "agent-slo.yaml"
    config.write_text("objectives: [slo/*.yaml]\n")
    assert load_config(config, tmp_path).objective_files() == [tmp_path / "slo" / "a.yaml"]
    config.write_text(f"objectives: ['{tmp_path}/slo/*.yaml']\n")
    assert load_config(config, tmp_path).objective_files() == [tmp_path / "slo" / "a.yaml"]
    config.write_text("objectives: [slos/*.yaml]\n")
    with pytest.raises(CommandError, match="no file matches 'slos/"):
        load_config(config, tmp_path).objective_files()


@pytest.mark.parametrize(("text", "size"), [(1024, 1024), ("64MiB", 64 << 20), ("5 KB", 5000), ("7", 7)])
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1.5MiB", "64 parsecs", True, 0])
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is no size"):
        parse_size(text)
