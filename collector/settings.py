"""Settings of the collector process, checked before anything is opened."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from collector.access import LEAST_LENGTH, Access, Token, TokenError, checked_origin
from collector.redaction.policy import REDACT, RedactionRules
from collector.tls import TlsError, check_files

MIB = 1 << 20


class CollectorError(Exception):
    """The collector cannot start; the message says what, where and how to mend it."""


@dataclass(frozen=True)
class Address:
    """A host and port to listen on; port 0 lets the system choose."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, option: str) -> Address:
        """From `host:port`, `[::1]:port` or a bare port. Raises CollectorError naming the option."""
        host, _, port = text.rpartition(":")
        host = host.strip("[]") or "127.0.0.1"
        if not port.isdigit() or int(port) > 65535:
            raise CollectorError(f"{option} {text!r}: not an address; write it like 127.0.0.1:4318")
        return cls(host, int(port))

    @property
    def loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class CollectorSettings:
    """Everything `agent-slo collect` can be told. Sizes in bytes, times in seconds."""

    data: Path = Path("agent-slo-data")
    http: str = "127.0.0.1:4318"
    grpc: str | None = "127.0.0.1:4317"
    """None: no gRPC receiver."""
    door: int = 0
    """Loopback port of the query door; 0: any free one."""
    token: str | None = field(default=None, repr=False)
    """Bearer token that senders must show on both transports; short for a Token of the role ingest."""
    tokens: tuple[Token, ...] = ()
    """Bearer tokens with roles; see collector.access."""
    origins: tuple[str, ...] = ()
    """Origins of web pages that may send from a browser, such as `https://app.example.com`; no others may."""
    insecure: bool = False
    """Allow an address other machines can reach without a token."""
    tls_certificate: Path | None = None
    """PEM certificate chain; with `tls_key` both receivers speak TLS."""
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    """PEM authorities; senders must show a certificate signed by one of them (mTLS)."""
    redaction: RedactionRules = REDACT
    """What is taken out of spans and log records before they are stored."""
    rotate_spans: int = 100_000
    rotate_seconds: float = 3600.0
    merge_days: bool = True
    """Whether small span files of several past days become one; no when days are to be removed one by one."""
    max_request_bytes: int = 64 * MIB
    """Largest request, after decompression too."""
    max_request_items: int | None = None
    """Most spans or log records of one request, 200,000 without; see collector.request_size.allow."""
    queue_bytes: int = 256 * MIB
    """Bytes of requests being read, waiting or written, before new ones are refused."""
    queue_requests: int = 2000
    memory_limit: str | None = None
    threads: int | None = None
    query_seconds: float = 30.0
    query_rows: int = 1_000_000
    query_bytes: int = 256 * MIB
    query_concurrency: int = 4
    stop_seconds: float = 8.0
    """Time a graceful stop may take before what is left is cut off."""

    def access(self) -> Access:
        """Who may do what. Raises CollectorError for a token that cannot be used."""
        try:
            return Access((*((Token("ingest", self.token),) if self.token else ()), *self.tokens))
        except TokenError as e:
            raise CollectorError(str(e)) from e

    def checked_origins(self) -> frozenset[str]:
        """The origins as browsers write them. Raises CollectorError for one that no browser sends."""
        try:
            return frozenset(checked_origin(origin).lower() for origin in self.origins)
        except ValueError as e:
            raise CollectorError(str(e)) from e

    def addresses(self) -> tuple[Address, Address | None]:
        """(HTTP, gRPC). Raises CollectorError: malformed, or open to others without a token that cannot be guessed and
        without `insecure`."""
        http = Address.parse(self.http, "--http")
        grpc = Address.parse(self.grpc, "--grpc") if self.grpc else None
        access = self.access()
        guarded = access.needed("ingest")
        for option, address in (("--http", http), ("--grpc", grpc)):
            if address and not address.loopback and not guarded and not self.insecure:
                raise CollectorError(
                    f"{option} {address}: other machines could send here without a token; set a token, "
                    f"listen on 127.0.0.1:{address.port}, or accept the risk with --insecure"
                )
            if address and not address.loopback and access.short and not self.insecure:
                raise CollectorError(
                    f"{option} {address}: the token of the role {min(access.short)} has fewer than {LEAST_LENGTH} "
                    "characters, and other machines could guess it; `openssl rand -hex 32` prints a good one"
                )
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise CollectorError("TLS needs both a certificate and a key; only one of them is set")
        if self.tls_client_ca is not None and self.tls_certificate is None:
            raise CollectorError("a client authority needs TLS: set the certificate and the key too")
        for file in (self.tls_certificate, self.tls_key, self.tls_client_ca):
            if file is not None and not file.is_file():
                raise CollectorError(f"TLS file {file}: not found; name an existing PEM file")
        return http, grpc

    def checked_tls(self) -> str | None:
        """A warning about the certificate's dates, if any. Raises CollectorError for files that cannot be used."""
        if self.tls_certificate is None or self.tls_key is None:
            return None
        try:
            return check_files(self.tls_certificate, self.tls_key, self.tls_client_ca)
        except TlsError as e:
            raise CollectorError(str(e)) from e
