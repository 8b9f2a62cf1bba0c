"""Moving a set in time and sending it."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from sample_traces import replay
from sample_traces.replay import SampleError, demo_end, last_end, load, recorded_end, send, shifted
from sample_traces.spans import spans_of

NOW = datetime(2027, 1, 3, 4, 5, 6, 789012, tzinfo=UTC)


def _times(requests: list[replay.Request]) -> list[int]:
    found = []
    for body in requests:
        for span in spans_of(body):
            found += [int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])]
            found += [int(event["timeUnixNano"]) for event in span.get("events", [])]
    return found


@pytest.mark.parametrize("name", replay.NAMES)
def test_shift_moves_every_time_by_one_amount(name: str) -> None:
    before = load(name)
    untouched = _times(before)
    after = _times(shifted(before, NOW))
    assert max(after) == 1798949106_789012_000
    assert len({b - a for a, b in zip(untouched, after, strict=True)}) == 1
    assert _times(before) == untouched


def test_shift_to_the_recorded_end_changes_nothing() -> None:
    assert shifted(load("first_light"), recorded_end("first_light")) == load("first_light")


def test_shift_leaves_everything_else() -> None:
    before, after = load("first_light"), shifted(load("first_light"), NOW)
    for old, new in zip(before, after, strict=True):
        for a, b in zip(spans_of(old), spans_of(new), strict=True):
            times = ("startTimeUnixNano", "endTimeUnixNano", "events")
            assert {k: v for k, v in a.items() if k not in times} == {
                k: v for k, v in b.items() if k not in times
            }


def test_shift_refuses_a_time_without_zone_and_an_empty_set() -> None:
    with pytest.raises(ValueError, match="time zone"):
        shifted(load("first_light"), datetime(2027, 1, 1))
    with pytest.raises(SampleError, match="no span"):
        shifted([], NOW)


def test_demo_end_is_the_same_for_an_hour_and_never_ahead() -> None:
    recorded = recorded_end("company")
    first = datetime(2027, 6, 1, 9, 2, tzinfo=timezone(timedelta(hours=2)))
    ends = {demo_end(first + timedelta(minutes=m), recorded) for m in range(0, 58)}
    assert len(ends) == 1
    (end,) = ends
    assert timedelta(0) <= first - end < timedelta(hours=1)
    assert (end - recorded) % timedelta(hours=1) == timedelta(0)


class Collector:
    """Answers requests from a list of responses, then with success."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.taken: list[ExportTraceServiceRequest] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/v1/traces"
        assert request.headers["content-type"] == "application/x-protobuf"
        assert request.headers["content-encoding"] == "gzip"
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        self.taken.append(ExportTraceServiceRequest.FromString(gzip.decompress(request.content)))
        return httpx.Response(200, content=ExportTraceServiceResponse().SerializeToString())

    def spans(self) -> list[bytes]:
        return [
            span.span_id for request in self.taken for resource in request.resource_spans
            for scope in resource.scope_spans for span in scope.spans
        ]  # fmt: skip


def _send(collector: Collector, **options: object) -> replay.Sent:
    transport = httpx.MockTransport(collector)
    return send("http://127.0.0.1:4318", load("first_light"), transport=transport, **options)  # type: ignore[arg-type]


def test_send_delivers_every_span_in_order() -> None:
    collector, seen = Collector(), list[tuple[int, int]]()
    sent = _send(collector, progress=lambda done, total: seen.append((done, total)))
    expected = [bytes.fromhex(s["spanId"]) for body in load("first_light") for s in spans_of(body)]
    assert sorted(collector.spans()) == sorted(expected)
    assert sent.spans == len(expected)
    assert sent.rejected == sent.retries == 0
    assert seen[-1] == (len(expected), len(expected))


def test_requests_are_joined_but_not_beyond_the_limit() -> None:
    sizes = [count for _, count in replay.joined(load("first_light"))]
    assert len(sizes) < len(load("first_light"))
    assert max(sizes) <= replay.SPANS_A_REQUEST


def test_send_waits_as_asked_and_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(replay.time, "sleep", waits.append)
    busy = httpx.Response(503, headers={"retry-after": "2"})
    collector = Collector(busy, httpx.ConnectError("refused"), httpx.Response(429))
    sent = _send(collector)
    assert sent.retries == 3
    assert waits == [2.0, 1.0, 2.0]
    assert len(collector.spans()) == sent.spans


def test_send_gives_up_after_a_bounded_number_of_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(replay.time, "sleep", waits.append)
    with pytest.raises(SampleError, match="agent-slo collect"):
        _send(Collector(*[httpx.ConnectError("refused")] * 50))
    assert len(waits) == replay.TRIES - 1
    assert max(waits) <= replay.LONGEST_WAIT


def test_send_does_not_retry_a_refusal() -> None:
    collector = Collector(httpx.Response(401, text="no token"), httpx.Response(200))
    with pytest.raises(SampleError, match="401 no token"):
        _send(collector)
    assert len(collector.answers) == 1


def test_send_counts_what_was_rejected() -> None:
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 3
    answer.partial_success.error_message = "3 spans had no trace id"
    sent = _send(Collector(httpx.Response(200, content=answer.SerializeToString())))
    assert sent.rejected == 3
    assert sent.messages == ["3 spans had no trace id"]


def test_retry_after_reads_seconds_dates_and_nonsense() -> None:
    assert replay.retry_after("1.5") == 1.5
    assert replay.retry_after(None) is None
    assert replay.retry_after("soon") is None
    later = replay.retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True))
    assert later is not None
    assert 60 < later <= 90
    assert replay.retry_after("Mon, 05 Jan 2015 10:00:00 GMT") == 0.0


def test_last_end_is_the_recorded_end() -> None:
    assert last_end(load("company")) == recorded_end("company").timestamp() * 1e9
