"""The bounded way from the receivers to the writer: a byte and request budget, and group commit.

No timer: the writer takes everything that waits, commits it, answers all of it. Under load the groups
grow by themselves; idle, one request is one commit. Large requests are decoded in a thread of their own, one at a
time, so that small ones need not wait for them.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from dataclasses import dataclass, field
from typing import Literal

from collector.batch import Batch, Rejected, log_table, span_table
from collector.counters import Counters
from collector.decode import BadRequest, Encoding, Rows, Signal, decode_rows, tables
from collector.policy import TooManyItems
from collector.precedence import give_way
from collector.request_size import LARGE
from collector.seldom import Seldom
from collector.store import Store, StoreBusyError

log = logging.getLogger("agent_slo.intake")

_GROUP_REQUESTS = 64
_GROUP_BYTES = 16 << 20
_BROKEN = "a %s request of %d bytes broke the decoder"


@dataclass(frozen=True)
class Outcome:
    """What became of one request. `stored` only after the commit returned."""

    kind: Literal["stored", "bad", "large", "busy", "failed"]
    message: str = ""
    rejected: Rejected | None = None


@dataclass
class _Item:
    signal: Signal
    encoding: Encoding
    body: bytes
    answer: asyncio.Future[Outcome]
    loop: asyncio.AbstractEventLoop
    rows: Rows | None = None
    """What is in it, when it was decoded before the writer had it."""
    written: threading.Event = field(default_factory=threading.Event)


class Budget:
    """Bytes and requests that may be in the house at once. Used from the event loop only."""

    def __init__(self, max_bytes: int, max_requests: int) -> None:
        self.max_bytes, self.max_requests = max_bytes, max_requests
        self.bytes = 0
        self.requests = 0
        self.reading = 0
        """Requests of which only the beginning is here. They take bytes as these come, but no place: who never ends one
        must not keep those out who do."""

    def enter(self) -> bool:
        if self.requests >= self.max_requests:
            return False
        self.requests += 1
        return True

    def take(self, number: int) -> bool:
        """Reserve bytes; False when the house is full."""
        if self.bytes + number > self.max_bytes:
            return False
        self.bytes += number
        return True

    def give(self, number: int) -> None:
        self.bytes -= number

    def leave(self) -> None:
        self.requests -= 1


class Intake:
    """Queue, writer thread, and one for large requests. `submit` from the event loop, `close` from anywhere."""

    def __init__(self, store: Store, counters: Counters, budget: Budget) -> None:
        self.budget = budget
        self.counters = counters
        self._store = store
        self._seldom = Seldom(log)
        self._waiting: set[asyncio.Future[Outcome]] = set()
        self._given_up = False
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._large: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._large_thread = threading.Thread(target=self._run_large, name="large", daemon=True)
        counters.gauge(
            "queue_requests",
            "Requests being read, waiting or written.",
            lambda: budget.requests + budget.reading,
        )
        counters.gauge("queue_bytes", "Bytes of those requests.", lambda: budget.bytes)

    def start(self) -> None:
        # The first Arrow array imports pandas, over a second of CPU that no sender should wait for.
        log_table([]), span_table([])
        self._thread.start()
        self._large_thread.start()

    def close(self, timeout: float) -> bool:
        """Write what waits, then stop. False when that took longer than `timeout` seconds."""
        self._large.put(None)  # handed on to the writer after what waits there
        self._thread.join(timeout)
        if self._thread.is_alive():
            return False
        self._large_thread.join()  # it ended the writer with its last step
        return True

    async def submit(self, signal: Signal, encoding: Encoding, body: bytes) -> Outcome:
        """Wait until the request is committed or refused."""
        if self._given_up:
            return _STOPPING
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Outcome] = loop.create_future()
        (self._queue if len(body) <= LARGE else self._large).put(_Item(signal, encoding, body, answer, loop))
        self._waiting.add(answer)
        try:
            return await answer
        finally:
            self._waiting.discard(answer)

    def give_up(self) -> None:
        """Tell all who still wait to send again: the stop has no more time for their commit. From the event loop."""
        self._given_up = True
        if self._waiting:
            log.warning(
                "stopping: %d requests are not committed yet; their senders are told to send again",
                len(self._waiting),
            )
        for answer in self._waiting:
            if not answer.done():
                answer.set_result(_STOPPING)

    def _run_large(self) -> None:
        give_way()
        while (item := self._large.get()) is not None:
            try:
                read = _decode(item)
            except MemoryError as e:
                self._seldom.tell(
                    logging.ERROR, "memory", f"no memory for a request of {len(item.body)} bytes", e
                )
                read = _NO_MEMORY
            if isinstance(read, Outcome):
                self._count_refused(read)
                item.loop.call_soon_threadsafe(_answer, [item], [read])
                continue
            item.rows = read
            del read
            self._queue.put(item)
            # Not the next one before this one is out of the memory.
            item.written.wait()
            item.rows = None
        self._queue.put(None)

    def _run(self) -> None:
        open_ = True
        while open_:
            first = self._queue.get()
            if first is None:
                return
            group, size = [first], len(first.body)
            while len(group) < _GROUP_REQUESTS and size < _GROUP_BYTES:
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
                if item is None:
                    open_ = False
                    break
                group.append(item)
                size += len(item.body)
            try:
                outcomes = self._write(group)
            except MemoryError as e:
                self._seldom.tell(logging.ERROR, "memory", f"no memory for {len(group)} requests", e)
                outcomes = [_NO_MEMORY] * len(group)
            for item in group:
                item.written.set()
            first.loop.call_soon_threadsafe(_answer, group, outcomes)

    def _write(self, group: list[_Item]) -> list[Outcome]:
        outcomes: list[Outcome | None] = [None] * len(group)
        read: dict[int, Rows] = {}
        for i, item in enumerate(group):
            found = item.rows or _decode(item)
            if isinstance(found, Outcome):
                outcomes[i] = found
                self._count_refused(found)
            else:
                read[i] = found
                item.rows = None
        batch = self._tables(group, read, outcomes)
        rejected = {i: rows.rejected for i, rows in read.items()}
        for i, rows in read.items():
            self._count(group[i].signal, rows)
        read.clear()  # the texts are in the tables now
        failure = self._commit(batch)
        for i, left_out in rejected.items():
            outcomes[i] = failure or Outcome("stored", rejected=left_out)
        return [o for o in outcomes if o is not None]

    def _tables(self, group: list[_Item], read: dict[int, Rows], outcomes: list[Outcome | None]) -> Batch:
        """What was read as tables. A request that no table can hold is taken out: it must not cost the others."""
        try:
            return tables(list(read.values()))
        except MemoryError:
            raise
        except Exception:
            log.exception("%d requests do not make a table; each is tried alone", len(read))
        for i, rows in list(read.items()):
            try:
                tables([rows])
            except MemoryError:
                raise
            except Exception as e:
                log.exception(_BROKEN, group[i].encoding, len(group[i].body))
                outcomes[i] = _failed(e)
                del read[i]
        return tables(list(read.values()))

    def _count_refused(self, outcome: Outcome) -> None:
        if outcome.kind == "large":
            self.counters.add("too_large", reason="items")

    def _count(self, signal: Signal, rows: Rows) -> None:
        self.counters.add("received", rows.number + rows.rejected.number, signal=signal)
        for reason, number in rows.rejected.reasons.items():
            self.counters.add("rejected", number, reason=reason)
        for flag, number in rows.rejected.repairs.items():
            self.counters.add("repaired", number, flag=flag)

    def _commit(self, batch: Batch) -> Outcome | None:
        if not batch.rows:
            return None
        started = time.monotonic()
        try:
            self._store.append(batch)
        except StoreBusyError as e:
            self._seldom.tell(logging.ERROR, type(e.__cause__ or e).__name__, f"nothing is stored: {e}")
            return Outcome("busy", str(e))
        except Exception as e:  # noqa: BLE001 - logged, and told to the sender
            self._seldom.tell(logging.ERROR, type(e).__name__, "commit failed", e)
            return Outcome("busy", f"commit failed ({type(e).__name__}), send again")
        self.counters.commit(time.monotonic() - started)
        self._count_redacted()
        for signal, table in (("traces", batch.spans), ("logs", batch.logs)):
            if table is not None:
                self.counters.add("stored", table.num_rows, signal=signal)
        return None

    def _count_redacted(self) -> None:
        redactor = self._store.options.redactor
        if redactor is not None:
            for kind, number in redactor.counts.items():
                self.counters.set("redacted", number, type=kind)


_STOPPING = Outcome("busy", "the collector is stopping, send again")
_NO_MEMORY = Outcome("busy", "no memory for this request, send again")


def _decode(item: _Item) -> Rows | Outcome:
    """What the request holds, or why it cannot be taken. Raises MemoryError: then nothing is wrong with it."""
    try:
        return decode_rows(item.signal, item.encoding, item.body)
    except TooManyItems as e:
        return Outcome("large", str(e))
    except BadRequest as e:
        return Outcome("bad", str(e))
    except MemoryError:
        raise
    except Exception as e:
        log.exception(_BROKEN, item.encoding, len(item.body))
        return _failed(e)


def _failed(error: Exception) -> Outcome:
    return Outcome("failed", f"this request cannot be decoded ({type(error).__name__})")


def _answer(group: list[_Item], outcomes: list[Outcome]) -> None:
    for item, outcome in zip(group, outcomes, strict=True):
        if not item.answer.done():  # its sender may have gone
            item.answer.set_result(outcome)
