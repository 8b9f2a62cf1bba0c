from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from collector.decode import decode
from collector.files import FileRequest, Problem, read_requests
from tests.collector.requests import body, log_request
from tests.collector.test_decode_json import json_span, request

LINE = json.dumps(request(json_span())).encode()


def read(path: Path | str) -> tuple[list[FileRequest], list[str]]:
    found = list(read_requests([path]))
    return (
        [f for f in found if isinstance(f, FileRequest)],
        [str(f).removeprefix(f"{path}") for f in found if isinstance(f, Problem)],
    )


def spans_in(requests: list[FileRequest]) -> int:
    return sum(decode(r.signal, r.encoding, r.body).batch.rows for r in requests)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def delimited(*bodies: bytes) -> bytes:
    return b"".join(varint(len(b)) + b for b in bodies)


def file_exporter(*bodies: bytes) -> bytes:
    return b"".join(len(b).to_bytes(4, "big") + b for b in bodies)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize(
    ("content", "requests", "spans"),
    [
        (LINE + b"\n" + LINE + b"\n\n" + LINE, 3, 3),
        (b"\xef\xbb\xbf" + LINE, 1, 1),
        (json.dumps(request(json_span(), json_span()), indent=2).encode(), 1, 2),
        (json.dumps([request(json_span()), request(json_span())]).encode(), 2, 2),
        (json.dumps(request(json_span())["resourceSpans"][0]).encode(), 1, 1),
        (body(3), 1, 3),
        (delimited(body(1), body(2), log_request()), 3, 4),
        (file_exporter(body(1), body(2)), 2, 3),
        (log_request(), 1, 1),
    ],
    ids=["lines", "mark", "pretty", "array", "resource", "protobuf", "varint", "exporter", "logs"],
)
def test_formats(tmp_path: Path, content: bytes, requests: int, spans: int, compress: bool) -> None:
    path = tmp_path / ("x.jsonl.gz" if compress else "x.jsonl")
    path.write_bytes(gzip.compress(content) if compress else content)
    found, problems = read(path)
    assert (len(found), spans_in(found), problems) == (requests, spans, [])


def test_bad_lines_are_named_and_the_others_live(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = [LINE, b"{broken", b'{"a": 1}', b"[1]", b'"text"', b'{"resourceMetrics": []}', b"{}", LINE, b"[]"]
    path.write_bytes(b"\n".join(lines))
    found, problems = read(path)
    assert [r.place for r in found] == [1, 8]
    assert [p.split(":")[0] for p in problems] == [f", line {n}" for n in (2, 3, 4, 5, 9)]
    assert "no resourceSpans or resourceLogs (keys: a)" in problems[1]


@pytest.mark.parametrize("first", [b"{broken", b"# a comment"])
def test_a_bad_first_line_does_not_hide_the_others(tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(first + b"\n" + LINE + b"\n" + LINE)
    found, problems = read(path)
    assert [r.place for r in found] == [2, 3]
    assert problems[0].startswith(", line 1: not JSON")


def test_cut_off_files(tmp_path: Path) -> None:
    path = tmp_path / "x.pb"
    path.write_bytes(delimited(body(1), body(2))[:-3])
    found, [problem] = read(path)
    assert (spans_in(found), "cut off" in problem) == (1, True)
    path.write_bytes(gzip.compress(b"\n".join([LINE] * 3))[:-12])
    _, problems = read(path)
    assert "broken gzip" in problems[-1]


def test_lines_with_bad_text_are_left_to_the_decoder(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(LINE.replace(b'"op"', b'"\\ud800"') + b"\n" + LINE.replace(b'"op"', b'"\xff"'))
    found, problems = read(path)
    assert (spans_in(found), problems) == (2, [])


@pytest.mark.parametrize("indent", [None, 1])
def test_bare_nan_as_other_programs_write_it(tmp_path: Path, indent: int | None) -> None:
    document = json.loads(LINE)
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] = [
        {"key": "k", "value": {"doubleValue": float("nan")}}
    ]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document, indent=indent))
    found, problems = read(path)
    assert (spans_in(found) > 0, problems) == (True, [])
    assert json.loads(found[0].body)


def test_lines_with_deep_values_are_left_to_the_decoder(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(LINE.replace(b'"op"', b'"op", "future": ' + b"[" * 2000 + b"]" * 2000) + b"\n" + LINE)
    found, problems = read(path)
    assert (spans_in(found), problems) == (2, [])


@pytest.mark.parametrize("content", [b"", b"hello world", bytes(range(256))])
def test_what_is_no_trace_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(content)
    assert [type(f) for f in read_requests([path])] == [Problem]


def test_folders_missing_files_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.jsonl").write_bytes(LINE)
    (tmp_path / "a.json").write_bytes(LINE)
    (tmp_path / "notes.txt").write_text("not looked at")
    found, problems = read(tmp_path)
    assert ([Path(r.source).name for r in found], problems) == (["a.json", "b.jsonl"], [])
    assert "no such file" in str(next(iter(read_requests([tmp_path / "missing"])))).lower()
    (tmp_path / "empty").mkdir()
    assert "no trace files in this folder" in str(next(iter(read_requests([tmp_path / "empty"]))))

    class Stdin:
        buffer: Any = io.BufferedReader(io.BytesIO(LINE))

    monkeypatch.setattr(sys, "stdin", Stdin)
    found, _ = read("-")
    assert [(r.source, r.place) for r in found] == [("standard input", 1)]
