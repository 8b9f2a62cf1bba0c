"""`python -m collector`: the collector alone, without derivation; for benchmarks and tests."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import get_args

from collector.redaction.policy import Policy, RedactionRules
from collector.serve import Collector, CollectorError, CollectorSettings, StoreError


def main(arguments: list[str] | None = None) -> int:
    """Run a collector until SIGTERM or SIGINT; 2 when it cannot start."""
    parser = argparse.ArgumentParser(prog="python -m collector", description=__doc__)
    parser.add_argument("--data", type=Path, default=CollectorSettings.data)
    parser.add_argument("--http", default=CollectorSettings.http)
    parser.add_argument("--grpc", default=CollectorSettings.grpc)
    parser.add_argument("--rotate-spans", type=int, default=CollectorSettings.rotate_spans)
    parser.add_argument("--memory-limit")
    parser.add_argument("--redaction", choices=get_args(Policy), default="redact")
    parser.add_argument("--insecure", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO if given.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    settings = CollectorSettings(
        data=given.data,
        http=given.http,
        grpc=given.grpc,
        rotate_spans=given.rotate_spans,
        memory_limit=given.memory_limit,
        insecure=given.insecure,
        redaction=RedactionRules(policies=(("*", given.redaction),)),
        token=os.environ.get("AGENT_SLO_TOKEN") or None,
    )
    try:
        return Collector(settings).run(_say_ready)
    except (CollectorError, StoreError) as e:
        print(f"agent-slo: {e}", file=sys.stderr)
        return 2


def _say_ready(collector: Collector) -> None:
    print(f"ready http={collector.http} grpc={collector.grpc} door={collector.door}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
