"""The shipped sets again: load them, move them in time, send them through the real OTLP/HTTP path.

**Sending a set twice.** A shift changes no id. What happens then depends on the time it is moved to:

* the same shift again: the collector sees each span a second time, the same in every byte. Steps are unique
  by (trace id, span id), so no task, attempt or number changes; only raw `spans` holds both deliveries.
* another shift: the same ids with other times. Of several deliveries of a span the one with the latest end
  counts, so a later shift *moves* the company in time instead of doubling it; an earlier one changes nothing.

`demo_end` therefore gives one end for all of an hour: two demos within an hour are re-deliveries of each
other. It moves by whole hours, which keeps minutes and seconds of the recorded set (its batch starts sharp
at nine stay sharp at some hour), and the data is never older than an hour.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.resources import files
from typing import Any

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from sample_traces.spans import from_json, spans_of, with_spans

NAMES = ("first_light", "company")
TRUTHS = {"first_light": "first_light.truth.json", "company": "GROUND_TRUTH.json"}
TIMES = ("startTimeUnixNano", "endTimeUnixNano", "timeUnixNano")
SECOND = 1_000_000_000
SPANS_A_REQUEST = 512  # as the SDK's batch processor sends at most
TRIES = 6
LONGEST_WAIT = 10.0  # seconds
RETRYABLE = (429, 502, 503, 504)  # the OTLP specification's list

Request = dict[str, Any]


class SampleError(Exception):
    """A set could not be read or sent; the message says what, where and how to mend it."""


def _resource(name: str, file: str) -> Any:
    if name not in NAMES:
        raise SampleError(f"no sample set is called {name!r}: there are {' and '.join(NAMES)}")
    found = files("sample_traces").joinpath(file)
    if not found.is_file():
        raise SampleError(
            f"the sample set {name!r} is not installed ({file} is missing): write it with "
            f"`python -m sample_traces.generate --set {name} --out DIR`"
        )
    return found


def load(name: str) -> list[Request]:
    """The requests of a shipped set as OTLP/JSON objects, in the order of their arrival."""
    return list(read(_resource(name, f"{name}.jsonl.gz").read_bytes()))


def read(packed: bytes) -> Iterator[Request]:
    """The requests of a generated ``.jsonl.gz`` file, given as bytes."""
    for line in gzip.decompress(packed).splitlines():
        yield json.loads(line)


def truth(name: str) -> dict[str, Any]:
    """The ground truth of a shipped set (see `sample_traces.truth.document`)."""
    found: dict[str, Any] = json.loads(_resource(name, TRUTHS[name]).read_text(encoding="utf-8"))
    return found


def recorded_end(name: str) -> datetime:
    """When the last span of a shipped set ends as recorded (UTC)."""
    return datetime.fromtimestamp(truth(name)["end_ns"] / SECOND, UTC)


def last_end(requests: Iterable[Mapping[str, Any]]) -> int:
    """The latest end of all spans in nanoseconds. Raises `SampleError` when there is none."""
    ends = [int(span["endTimeUnixNano"]) for body in requests for span in spans_of(body)]
    if not ends:
        raise SampleError("there is no span in these requests, so nothing to shift")
    return max(ends)


def shifted(requests: Iterable[Request], end: datetime) -> list[Request]:
    """Copies of ``requests``, all times moved by one amount, so that the last span ends at ``end``.

    Durations, order and all else stay as they are. ``end`` must carry a time zone (ValueError); it is exact
    to the microsecond.
    """
    if end.tzinfo is None:
        raise ValueError("end has no time zone: pass an aware datetime, such as datetime.now(UTC)")
    bodies = list(requests)
    since = end - datetime(1970, 1, 1, tzinfo=UTC)
    wanted = ((since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds) * 1000
    delta = wanted - last_end(bodies)

    def moved(carrier: dict[str, Any]) -> dict[str, Any]:
        times = {key: str(int(carrier[key]) + delta) for key in TIMES if key in carrier}
        events = {"events": [moved(event) for event in carrier["events"]]} if "events" in carrier else {}
        return {**carrier, **times, **events}

    return [with_spans(body, moved) for body in bodies]


def demo_end(now: datetime, recorded: datetime) -> datetime:
    """The latest end not after ``now`` that lies whole hours away from ``recorded``."""
    hours = (now - recorded).total_seconds() // 3600
    return datetime.fromtimestamp(recorded.timestamp() + hours * 3600, UTC)


@dataclass
class Sent:
    """What became of a set on its way. ``rejected`` counts spans the collector refused one by one."""

    requests: int = 0
    spans: int = 0
    rejected: int = 0
    retries: int = 0
    seconds: float = 0.0
    messages: list[str] = field(default_factory=list)


def send(
    endpoint: str, requests: Iterable[Mapping[str, Any]], progress: Callable[[int, int], None] | None = None,
    *, token: str | None = None, timeout: float = 30.0, transport: httpx.BaseTransport | None = None,
) -> Sent:  # fmt: skip
    """Send requests to ``<endpoint>/v1/traces`` as gzipped protobuf, one after the other.

    Small requests are joined up to `SPANS_A_REQUEST` spans, in order. 429, 502, 503, 504 and connection
    errors are tried again, at most `TRIES` times in all, after the `Retry-After` the collector names or a
    doubling wait. ``progress`` is called with (spans sent, spans in all). Raises `SampleError` when the
    collector cannot be reached or refuses a request for good.
    """
    bodies = list(requests)
    total = sum(len(spans_of(b)) for b in bodies)
    url = endpoint.rstrip("/")
    url = url if url.endswith("/v1/traces") else url + "/v1/traces"
    headers = {"content-type": "application/x-protobuf", "content-encoding": "gzip"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    sent, begun = Sent(), time.monotonic()
    with httpx.Client(timeout=timeout, headers=headers, transport=transport) as client:
        for request, count in joined(bodies):
            response = _post(client, url, gzip.compress(request.SerializeToString(), 1, mtime=0), sent)
            answer = ExportTraceServiceResponse()
            answer.ParseFromString(response.content)
            sent.requests += 1
            sent.spans += count
            sent.rejected += answer.partial_success.rejected_spans
            if answer.partial_success.error_message:
                sent.messages.append(answer.partial_success.error_message)
            if progress is not None:
                progress(sent.spans, total)
    sent.seconds = time.monotonic() - begun
    return sent


def joined(requests: Iterable[Mapping[str, Any]]) -> Iterator[tuple[ExportTraceServiceRequest, int]]:
    """Protobuf requests of at most `SPANS_A_REQUEST` spans (or one larger request alone), with their size."""
    batch, held = ExportTraceServiceRequest(), 0
    for body in requests:
        count = len(spans_of(body))
        if held and held + count > SPANS_A_REQUEST:
            yield batch, held
            batch, held = ExportTraceServiceRequest(), 0
        batch.MergeFrom(from_json(body))
        held += count
    if held:
        yield batch, held


def _post(client: httpx.Client, url: str, content: bytes, sent: Sent) -> httpx.Response:
    wait = 0.5
    for number in range(1, TRIES + 1):
        asked = None
        try:
            response = client.post(url, content=content)
        except httpx.TransportError as error:
            problem = f"{type(error).__name__}: {error}"
        except httpx.InvalidURL as error:
            raise SampleError(f"{url} is no address: {error}") from error
        else:
            if response.is_success:
                return response
            problem = f"HTTP {response.status_code} {response.text[:200]}".strip()
            if response.status_code not in RETRYABLE:
                raise SampleError(f"the collector at {url} refused the traces: {problem}")
            asked = retry_after(response.headers.get("retry-after"))
        if number < TRIES:
            sent.retries += 1
            time.sleep(min(asked if asked is not None else wait, LONGEST_WAIT))
            wait *= 2
    raise SampleError(
        f"the collector at {url} did not take the traces in {TRIES} tries ({problem}): is it running there? "
        "`agent-slo collect` starts it"
    )


def retry_after(value: str | None) -> float | None:
    """Seconds a `Retry-After` header (seconds or an HTTP date) asks to wait; None when it says nothing."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass  # not a number: it may be a date
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, at.timestamp() - time.time())
