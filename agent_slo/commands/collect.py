"""`agent-slo collect`: receive traces and derive from them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from agent_slo.actions import routes
from agent_slo.config import Config
from agent_slo.derivation import Derivation
from agent_slo.errors import CommandError
from agent_slo.logs import set_up_logs
from agent_slo.operator_actions import operator_actions
from agent_slo.options import Place, common
from agent_slo.output import say
from agent_slo.redaction import redaction_rules
from collector.access import Role, Token, TokenError, read_tokens
from collector.serve import Collector, CollectorSettings

TOKEN_VARIABLE = "AGENT_SLO_TOKEN"
TOKEN_VARIABLES: dict[Role, str] = {
    "ingest": TOKEN_VARIABLE,
    "read": "AGENT_SLO_READ_TOKEN",
    "admin": "AGENT_SLO_ADMIN_TOKEN",
}


@click.command()
@click.option("--http", metavar="HOST:PORT", help="Where to take OTLP/HTTP (default 127.0.0.1:4318).")
@click.option("--grpc", metavar="HOST:PORT", help="Where to take OTLP/gRPC (default 127.0.0.1:4317).")
@click.option("--no-grpc", is_flag=True, help="Do not listen for gRPC.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help=f"File with tokens, `ROLE TOKEN` a line: ingest, read, admin (or {TOKEN_VARIABLE} for senders).",
)
@click.option("--tls-certificate", type=click.Path(path_type=Path), help="PEM certificate chain.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="PEM key of the certificate.")
@click.option(
    "--tls-client-ca", type=click.Path(path_type=Path), help="Authorities of client certificates (mTLS)."
)
@click.option("--insecure", is_flag=True, help="Allow other machines to send without a token.")
@click.option("--verbose", is_flag=True, help="Log more to stderr.")
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", help="Log as text or as JSON lines."
)
@common
def collect(
    place: Place,
    http: str | None,
    grpc: str | None,
    no_grpc: bool,
    token_file: Path | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    insecure: bool,
    verbose: bool,
    log_format: str,
) -> None:
    """Receive traces and derive from them, without pages."""
    set_up_logs(log_format, verbose=verbose)
    config = place.config().config
    given = {
        "http": http,
        "grpc": grpc,
        "tls_certificate": tls_certificate,
        "tls_key": tls_key,
        "tls_client_ca": tls_client_ca,
        "tokens": _tokens(token_file),
        "insecure": insecure or None,
    }
    settings = collector_settings(place.data, config, given, no_grpc=no_grpc)
    derivation = Derivation(config, place.objectives())
    evaluation = derivation.evaluation
    assert evaluation.engine is not None  # a collector keeps alerts
    actions = operator_actions(evaluation.engine)
    collector = Collector(settings, background=derivation, door_routes=routes(actions, evaluation.lock))
    collector.counters.gauge(
        "derive_lag_rows",
        "Rows stored and not yet derived.",
        lambda: derivation.lag(collector.store.last_seq),
    )
    collector.counters.counter(
        "duplicates",
        "Spans delivered again, counted when they are derived; since the data folder was made.",
        lambda: derivation.redelivered,
    )
    collector.counters.extra.append(evaluation.prometheus)
    sys.exit(collector.run(_ready))


def collector_settings(
    data: Path, config: Config, given: Mapping[str, Any], *, no_grpc: bool = False
) -> CollectorSettings:
    """Settings from options (first), the configuration (second) and the collector's defaults."""
    stated = config.collector.model_dump(
        exclude={"redaction", "redaction_key_file", "redaction_names", "cors_origins"}
    )
    values = {key: value for key, value in stated.items() if value is not None}
    values |= {key: value for key, value in given.items() if value is not None}
    if no_grpc:
        values["grpc"] = None
    return CollectorSettings(
        data=data,
        redaction=redaction_rules(config),
        origins=tuple(config.collector.cors_origins),
        merge_days=config.storage.keep_days is None,
        **values,
    )


def _tokens(file: Path | None) -> tuple[Token, ...]:
    """Tokens of the file and of the variables, one a role."""
    try:
        found = read_tokens(file) if file is not None else ()
        for role, variable in TOKEN_VARIABLES.items():
            if value := os.environ.get(variable):
                found = (*found, Token(role, value))
    except (TokenError, UnicodeDecodeError) as error:
        raise CommandError(str(error)) from error
    return found


def _ready(collector: Collector) -> None:
    grpc = collector.grpc or "off"
    say(f"collecting into {collector.settings.data}: OTLP/HTTP {collector.http}, OTLP/gRPC {grpc}")
