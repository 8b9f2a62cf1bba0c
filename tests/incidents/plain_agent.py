"""A command-line agent without any library: pays as it is told, over MCP's own HTTP messages.

`plain_agent.py careless` repeats after a timeout without a key, `careful` with one, `silent` says nothing and does
nothing, `broken` ends with an error, `endless` never ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from typing import Any


def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
    }
    with urllib.request.urlopen(
        urllib.request.Request(os.environ["AGENT_SLO_REPLAY_URL"], body, headers)
    ) as answer:
        return dict(json.loads(answer.read())["result"])


def pay(key: str | None) -> bool:
    args = {"to": "Ada", "amount": 40} | ({"idempotency_key": key} if key else {})
    return not ask("tools/call", {"name": "pay", "arguments": args}).get("isError", False)


def main(kind: str) -> int:
    task = sys.stdin.read()
    if kind == "broken":
        print("no model is configured", file=sys.stderr)
        return 3
    if kind == "endless":
        time.sleep(600)
    if kind == "silent":
        return 0
    assert task == os.environ["AGENT_SLO_REPLAY_TASK"]
    key = "pay-ada-40" if kind == "careful" else None
    for wait in (0, 2, 4):
        if wait and kind == "careful":
            ask("tools/call", {"name": "replay_wait", "arguments": {"seconds": wait}})
        if pay(key):
            print("Paid.")
            return 0
    print("I could not pay; it is not done.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
