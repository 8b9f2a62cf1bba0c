"""The collector's own counters and their Prometheus text."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

_UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_COMMIT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

_HELP = {
    "received": "Spans and log records in requests that could be read.",
    "stored": "Spans and log records committed.",
    "rejected": "Spans and log records left out of an accepted request, by reason.",
    "repaired": "Repairs of stored spans and log records, by what was repaired.",
    "redacted": "Values replaced by a placeholder before they were stored, by type.",
    "requests": "Export requests by transport, signal and answer.",
    "refused": "Requests refused for now (503 or UNAVAILABLE), by reason.",
    "too_large": "Requests refused for good (413 or RESOURCE_EXHAUSTED), by reason: bytes or items.",
    "dropped_metrics": "Metric export requests answered and dropped.",
    "background_failures": "Failures of the derivation thread.",
}


class Counters:
    """Monotonic counters with labels, a commit-time histogram, and gauges read when asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self._buckets = [0] * (len(_COMMIT_BUCKETS) + 1)
        self._commit_sum = 0.0
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._read: dict[str, tuple[str, Callable[[], int]]] = {}
        self.extra: list[Callable[[], str]] = []
        """Further Prometheus text, each whole lines with names of its own."""

    def add(self, name: str, number: int = 1, **labels: str) -> None:
        key = (name, tuple(sorted(labels.items())))
        with self._lock:
            self._values[key] = self._values.get(key, 0) + number

    def set(self, name: str, number: int, **labels: str) -> None:
        """A counter that is counted elsewhere."""
        with self._lock:
            self._values[(name, tuple(sorted(labels.items())))] = number

    def value(self, name: str, **labels: str) -> int:
        """Sum over all label sets that contain `labels`."""
        wanted = set(labels.items())
        with self._lock:
            return sum(v for (n, have), v in self._values.items() if n == name and wanted <= set(have))

    def commit(self, seconds: float) -> None:
        with self._lock:
            self._commit_sum += seconds
            for i, bound in enumerate(_COMMIT_BUCKETS):
                if seconds <= bound:
                    self._buckets[i] += 1
                    return
            self._buckets[-1] += 1

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        self._gauges[name] = (text, read)

    def counter(self, name: str, text: str, read: Callable[[], int]) -> None:
        """A counter that somebody else keeps, read when asked."""
        self._read[name] = (text, read)

    def prometheus(self) -> str:
        """Prometheus text exposition, version 0.0.4."""
        with self._lock:
            values, buckets, total = dict(self._values), list(self._buckets), self._commit_sum
        lines: list[str] = []
        for name, text in _HELP.items():
            full = f"agent_slo_collector_{name}_total"
            lines += [f"# HELP {full} {text}", f"# TYPE {full} counter"]
            found = sorted((labels, v) for (n, labels), v in values.items() if n == name)
            lines += [f"{full}{_labels(labels)} {v}" for labels, v in found] or [f"{full} 0"]
        for name, (text, count) in self._read.items():
            full = f"agent_slo_collector_{name}_total"
            lines += [f"# HELP {full} {text}", f"# TYPE {full} counter", f"{full} {count()}"]
        full = "agent_slo_collector_commit_seconds"
        lines += [f"# HELP {full} Time of one group commit.", f"# TYPE {full} histogram"]
        running = 0
        for bound, n in zip((*map(str, _COMMIT_BUCKETS), "+Inf"), buckets, strict=True):
            running += n
            lines.append(f'{full}_bucket{{le="{bound}"}} {running}')
        lines += [f"{full}_sum {total:.6f}", f"{full}_count {running}"]
        for name, (text, read) in self._gauges.items():
            full = f"agent_slo_collector_{name}"
            lines += [f"# HELP {full} {text}", f"# TYPE {full} gauge", f"{full} {read():g}"]
        return "\n".join(lines) + "\n" + "".join(text() for text in self.extra)


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    escaped = ((k, label_value(v)) for k, v in labels)
    return "{" + ",".join(f'{k}="{v}"' for k, v in escaped) + "}"


def label_value(text: str) -> str:
    """A label value as the text exposition writes it; what it cannot hold (control characters but line feeds, lone
    surrogates) becomes U+FFFD."""
    clean = _UNPRINTABLE.sub("\ufffd", text)
    return clean.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
