"""The generator: the same bytes everywhere, clear refusals, and memory that stays small."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from sample_traces import company
from sample_traces.generate import main
from sample_traces.replay import NAMES, TRUTHS, load
from sample_traces.spans import spans_of, to_json


def _run(out: Path, name: str, hashes: str, zone: str, *options: str) -> dict[str, bytes]:
    hostile = {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "3", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other"}
    subprocess.run(
        [sys.executable, "-m", "sample_traces.generate", "--set", name, "--out", str(out), *options],
        check=True,
        capture_output=True,
        env={**os.environ, **hostile, "PYTHONHASHSEED": hashes, "TZ": zone},
    )
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


@pytest.mark.parametrize(
    ("name", "options"), [("first_light", ()), ("company", ("--tasks", "300", "--days", "4"))]
)
def test_same_bytes_in_another_process_zone_and_hash_order(
    tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    one = _run(tmp_path / "one", name, "1", "UTC", *options)
    two = _run(tmp_path / "two", name, "4242", "Pacific/Auckland", *options)
    assert one == two
    assert set(one) == {f"{name}.jsonl.gz", TRUTHS[name]}


@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_files_are_what_the_generator_writes(tmp_path: Path, name: str) -> None:
    made = _run(tmp_path, name, "0", "UTC")
    shipped = Path(company.__file__).parent
    assert made[TRUTHS[name]] == (shipped / TRUTHS[name]).read_bytes()
    # Not the packed bytes: another zlib may pack the same text otherwise.
    packed = (shipped / f"{name}.jsonl.gz").read_bytes()
    assert gzip.decompress(made[f"{name}.jsonl.gz"]) == gzip.decompress(packed)


def test_another_seed_gives_another_company() -> None:
    end = datetime(2026, 3, 6, 15, tzinfo=UTC)
    first, second = (next(company.generate(seed, 3, 150, end))[0] for seed in (1, 2))
    assert to_json(first) != to_json(second)


def test_a_larger_company_keeps_the_shares() -> None:
    stories: dict[str, int] = {}
    for _, truths in company.generate(3, 28, 1500):
        for truth in truths:
            stories[truth.story] = stories.get(truth.story, 0) + 1
    for mix in company.MIX.values():
        for story in mix:
            assert stories.get(story.__name__, 0) >= 1, story.__name__
    assert stories["success"] > 1000
    assert stories["synchronised"] == company.STORM_SIZE


def test_tasks_are_told_no_later_than_their_last_span() -> None:
    known: set[str] = set()
    last = 0
    for request, truths in company.generate(5, 4, 300):
        known |= {trace for truth in truths for trace in truth.traces}
        spans = spans_of(to_json(request))
        last = max([last, *(int(s["endTimeUnixNano"]) for s in spans)])
        assert {s["traceId"] for s in spans} <= known
    assert last == int(company.END.timestamp()) * 10**9


def test_spans_wait_only_until_they_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    most: dict[int, int] = {}
    for tasks in (300, 1200):
        waiting: list[int] = []
        original = company.Delivery.push

        def counted(
            self: company.Delivery, span: object, delay_ns: int = 0, kept: list[int] = waiting
        ) -> None:
            original(self, span, delay_ns)  # type: ignore[arg-type]  # noqa: B023
            kept.append(len(self._heap))

        monkeypatch.setattr(company.Delivery, "push", counted)
        requests = sum(1 for _ in company.generate(5, tasks // 100, tasks))
        monkeypatch.undo()
        assert requests > tasks / 2
        most[tasks] = max(waiting)
    # Four times the tasks at the same rate: the queue may not grow with them.
    assert most[1200] < 2.5 * most[300]


def test_generate_refuses_what_it_cannot_make() -> None:
    with pytest.raises(ValueError, match="time zone"):
        next(company.generate(end=datetime(2026, 1, 1)))
    with pytest.raises(ValueError, match="at least 100 tasks"):
        next(company.generate(tasks=5))


def test_command_names_the_sets_it_knows() -> None:
    result = CliRunner().invoke(main, ["--set", "elsewhere", "--out", "unused"])
    assert result.exit_code == 2
    assert "first_light" in result.output


def test_command_writes_a_company_that_ends_when_asked(tmp_path: Path) -> None:
    options = ["--set", "company", "--out", str(tmp_path), "--tasks", "150", "--days", "2"]
    result = CliRunner().invoke(main, [*options, "--end", "2026-05-08T12:00:00Z"])
    assert result.exit_code == 0, result.output
    text = (tmp_path / TRUTHS["company"]).read_text()
    assert f'"end_ns":{int(datetime(2026, 5, 8, 12, tzinfo=UTC).timestamp()) * 10**9}' in text


def test_load_refuses_an_unknown_set() -> None:
    from sample_traces.replay import SampleError

    with pytest.raises(SampleError, match="first_light and company"):
        load("second_light")
