"""`python -m dashboard OPTIONS`: `streamlit run` of the pages, warmed up while the server starts."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from streamlit.web import cli

from dashboard.door import data_folder
from dashboard.warm import warm


def main() -> None:
    """Serve the pages; the arguments are those of `streamlit run` behind the script."""
    threading.Thread(target=warm, args=(data_folder(),), name="warm", daemon=True).start()
    sys.argv = ["streamlit", "run", str(Path(__file__).with_name("app.py")), *sys.argv[1:]]
    cli.main(prog_name="streamlit")


if __name__ == "__main__":
    main()
