"""`python -m dashboard OPTIONS`: `streamlit run` of the pages, warmed up while the server starts."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from pathlib import Path
from typing import TextIO

from streamlit.web import cli

from dashboard.door import data_folder
from dashboard.warm import warm


class _Heard(io.TextIOBase):
    """A stream whose reader may be gone: Streamlit says that it stops before it does, and without one never would."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._encoding = stream.encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str, /) -> int:
        with contextlib.suppress(BrokenPipeError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._stream.flush()


def main() -> None:
    """Serve the pages; the arguments are those of `streamlit run` behind the script."""
    sys.stdout, sys.stderr = _Heard(sys.stdout), _Heard(sys.stderr)
    threading.Thread(target=warm, args=(data_folder(),), name="warm", daemon=True).start()
    sys.argv = ["streamlit", "run", str(Path(__file__).with_name("app.py")), *sys.argv[1:]]
    cli.main(prog_name="streamlit")


if __name__ == "__main__":
    main()
