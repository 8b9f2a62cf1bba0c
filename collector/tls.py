"""Whether the TLS files can be used, said before anything listens: gRPC would blame the port."""

from __future__ import annotations

import ssl
from pathlib import Path

_EXPIRED, _NOT_YET = 10, 9  # X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID


class TlsError(ValueError):
    """A file that cannot be used; the message names it and says how to mend."""


def check_files(certificate: Path, key: Path, client_ca: Path | None) -> str | None:
    """Load the files as the receivers will. Returns a warning about the certificate's dates, None when they are fine.

    Raises TlsError: no PEM, a key with a password, a key that is not the certificate's.
    """
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # An encrypted key would ask on the terminal; an empty password makes it an error.
        server.load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, OSError, ValueError) as e:
        raise TlsError(
            f"TLS certificate {certificate} and key {key}: cannot be used ({_reason(e)}); give PEM files, the chain "
            "with the server's certificate first, and the key of that certificate without a password"
        ) from e
    if client_ca is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(client_ca)
        except (ssl.SSLError, OSError) as e:
            raise TlsError(
                f"TLS authorities {client_ca}: cannot be used ({_reason(e)}); give PEM certificates"
            ) from e
    code = _verified(server, certificate)
    if code == _EXPIRED:
        return f"TLS certificate {certificate} has expired: senders will refuse it until it is replaced"
    if code == _NOT_YET:
        return f"TLS certificate {certificate} is not valid yet: senders will refuse it; is the clock right?"
    return None


def _verified(server: ssl.SSLContext, certificate: Path) -> int:
    """What a client that trusts exactly this certificate says of it: an OpenSSL verify code, 0 for nothing."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(certificate)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True))
    for _ in range(4):  # hello, certificate, finished
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLCertVerificationError as e:
                return int(e.verify_code)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return 0  # refused for some other reason, which a sender will be told
    return 0


def _reason(error: Exception) -> str:
    return (
        getattr(error, "reason", None)
        or getattr(error, "strerror", None)
        or str(error)
        or type(error).__name__
    )
