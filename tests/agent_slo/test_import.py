"""Files into a data folder, with and without a collector."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.agent_slo.conftest import AS_OF, Run
from tests.agent_slo.waiting import until

Started = Callable[..., subprocess.Popen[str]]


def lines_of(samples: Path) -> list[bytes]:
    return gzip.decompress(samples.read_bytes()).splitlines()


def spans_in(run: Run, data: Path) -> int:
    answer = run("query", "SELECT count(*) AS n FROM spans", "--data", data, "--format", "json")
    return int(json.loads(answer.stdout)[0]["n"])


def test_a_bad_line_is_named_and_the_rest_goes_in(run: Run, tmp_path: Path, samples: Path) -> None:
    lines = lines_of(samples)
    lines[3:3] = [b"{not json", b'{"something": 1}']
    file = tmp_path / "mixed.jsonl"
    file.write_bytes(b"\n".join(lines))
    result = run("import", file, "--data", tmp_path / "data", "--as-of", AS_OF)
    assert result.exit_code == 1
    said = " ".join(result.stderr.split())
    assert f"{file}, line 4: not JSON" in said
    assert f"{file}, line 5: not an export request" in said
    assert "2 rejected" in said
    assert spans_in(run, tmp_path / "data") == 211


def test_one_bad_span_costs_only_itself(run: Run, tmp_path: Path, samples: Path) -> None:
    body = json.loads(lines_of(samples)[0])
    spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans.append({**spans[0], "spanId": "0000000000000000"})
    file = tmp_path / "one.json"
    file.write_text(json.dumps(body))
    result = run("import", file, "--data", tmp_path / "data", "--as-of", AS_OF)
    assert result.exit_code == 1
    assert f"{file}, line 1: 1 x span_id is all zeros" in " ".join(result.stderr.split())
    assert spans_in(run, tmp_path / "data") == len(spans) - 1


def test_what_is_not_recognised_is_not_passed_over(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    file.write_text('[]\n{"resourceSpans": [{"instrumentationLibrarySpans": [{"spans": []}]}]}\n')
    result = run("import", file, "--data", tmp_path / "data", "--as-of", AS_OF)
    assert result.exit_code == 1
    said = " ".join(result.stderr.split())
    assert f"{file}, line 1: not an export request: an array with nothing in it" in said
    assert f"{file}, line 2: no spans were found: keys not known here: 'instrumentationLibrarySpans'" in said


def test_a_folder_and_stdin(run: Run, tmp_path: Path, samples: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    lines = lines_of(samples)
    (folder / "a.jsonl").write_bytes(b"\n".join(lines[:10]))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(b"\n".join(lines[10:])))
    assert run("import", folder, "--data", tmp_path / "one", "--as-of", AS_OF).exit_code == 0
    assert spans_in(run, tmp_path / "one") == 211
    assert (
        run("import", "-", "--data", tmp_path / "two", "--as-of", AS_OF, stdin=b"\n".join(lines)).exit_code
        == 0
    )
    assert spans_in(run, tmp_path / "two") == 211


def test_objectives_count_what_earlier_imports_brought(run: Run, tmp_path: Path, samples: Path) -> None:
    lines = lines_of(samples)
    for number, part in enumerate((lines[:20], lines[20:])):
        file = tmp_path / f"part{number}.jsonl"
        file.write_bytes(b"\n".join(part))
        assert run("import", file, "--data", tmp_path / "parts", "--as-of", AS_OF).exit_code == 0
    assert run("import", samples, "--data", tmp_path / "whole", "--as-of", AS_OF).exit_code == 0
    counts = "SELECT slo, n, good, bad, unknown, excluded FROM slo_status ORDER BY slo, objective"
    answers = [
        run("query", counts, "--data", tmp_path / name, "--format", "csv").stdout
        for name in ("parts", "whole")
    ]
    assert answers[0] == answers[1]
    assert ",22," in answers[0]


def test_a_missing_file_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    result = run("import", tmp_path / "none.jsonl", "--data", tmp_path / "data")
    assert result.exit_code == 2
    assert "none.jsonl" in result.stderr


def test_through_a_running_collector(
    run: Run, started: Started, tmp_path: Path, samples: Path, sample_settings: Path
) -> None:
    data = tmp_path / "data"
    collector = started(
        "collect",
        "--data",
        data,
        "--config",
        sample_settings,
        "--http",
        "127.0.0.1:0",
        "--grpc",
        "127.0.0.1:0",
    )
    until(lambda: (data / "door.json").exists(), collector)
    result = run("import", samples, "--data", data)
    assert result.exit_code == 0, result.output
    # It returns when everything is derived, so there is nothing to wait for.
    tasks = json.loads(run("query", "SELECT task_id FROM tasks", "--data", data, "--format", "json").stdout)
    assert len(tasks) == 23
    report = json.loads(run("report", "--data", data, "--format", "json").stdout)
    assert report["slos"]

    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "00", "spanId": "11"}]}]}]}\n')
    refused = run("import", bad, "--data", data)
    assert refused.exit_code == 1
    assert f"{bad}, line 1: " in " ".join(refused.stderr.split())

    for arguments in (("import", samples, "--as-of", AS_OF), ("rederive",)):
        busy = run(*arguments, "--data", data)
        assert busy.exit_code == 2
        assert f"process {collector.pid}" in busy.stderr
