"""A real HTTP receiver in a thread, which keeps what it was sent and answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """`answers` are the status codes to come, 200 when they are used up."""

    url: str = ""
    got: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def bodies(self) -> list[Any]:
        with self.lock:
            return [body for _, _, body in self.got]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Listen on a free port of this machine."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            with receiver.lock:
                status = receiver.answers.pop(0) if receiver.answers else 200
                if status < 300:
                    headers = {k.lower(): v for k, v in self.headers.items()}
                    receiver.got.append((self.path, headers, json.loads(body)))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"said")

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
