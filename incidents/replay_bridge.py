"""`python -m incidents.replay_bridge URL`: a running replay server on standard input and output."""

from __future__ import annotations

import sys

from incidents.replay_server import bridge

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m incidents.replay_bridge URL")
    bridge(sys.argv[1])
