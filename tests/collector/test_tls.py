from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import grpc
import httpx
import pytest

from collector.settings import CollectorError
from collector.tls import check_files
from tests.collector.conftest import StartCollector, rows
from tests.collector.requests import body
from tests.collector.test_otlp_grpc import TRACES
from tests.collector.test_serve import HEADERS


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem, server.pem/.key for 127.0.0.1 and client.pem/.key, all signed by the authority."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed, so there is nothing to make certificates with")
    folder = tmp_path_factory.mktemp("keys")

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    new = ("req", "-newkey", "rsa:2048", "-nodes", "-keyout")
    run(*new, "ca.key", "-x509", "-days", "2", "-subj", "/CN=test authority", "-out", "ca.pem")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("server", "client"):
        run(*new, f"{name}.key", "-subj", f"/CN={name}", "-out", f"{name}.csr")
        sign = ("x509", "-req", "-days", "2", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        run(*sign, "-in", f"{name}.csr", "-extfile", "names", "-out", f"{name}.pem")
    return folder


def test_both_receivers_speak_tls(start_collector: StartCollector, keys: Path) -> None:
    collector = start_collector(
        grpc="127.0.0.1:0", tls_certificate=keys / "server.pem", tls_key=keys / "server.key"
    )
    context = ssl.create_default_context(cafile=keys / "ca.pem")
    url = f"https://{collector.http}/v1/traces"
    with httpx.Client(verify=context, trust_env=False) as client:
        assert client.post(url, content=body(), headers=HEADERS).status_code == 200
    with httpx.Client(trust_env=False) as client, pytest.raises(httpx.HTTPError):
        client.post(url, content=body(), headers=HEADERS)
    credentials = grpc.ssl_channel_credentials((keys / "ca.pem").read_bytes())
    with grpc.secure_channel(str(collector.grpc), credentials) as channel:
        assert channel.unary_unary(TRACES)(body(), timeout=20) == b""
    assert rows(collector, "SELECT count(*) AS n FROM spans") == [{"n": 2}]


def test_mutual_tls_refuses_a_sender_without_certificate(start_collector: StartCollector, keys: Path) -> None:
    collector = start_collector(
        grpc="127.0.0.1:0",
        tls_certificate=keys / "server.pem",
        tls_key=keys / "server.key",
        tls_client_ca=keys / "ca.pem",
    )
    url = f"https://{collector.http}/v1/traces"
    known, unknown = (ssl.create_default_context(cafile=keys / "ca.pem") for _ in range(2))
    known.load_cert_chain(keys / "client.pem", keys / "client.key")
    with httpx.Client(verify=known, trust_env=False) as client:
        assert client.post(url, content=body(), headers=HEADERS).status_code == 200
    with httpx.Client(verify=unknown, trust_env=False) as client, pytest.raises(httpx.HTTPError):
        client.post(url, content=body(), headers=HEADERS)
    authority = (keys / "ca.pem").read_bytes()
    stranger = grpc.ssl_channel_credentials(authority)
    with grpc.secure_channel(str(collector.grpc), stranger) as channel, pytest.raises(grpc.RpcError):
        channel.unary_unary(TRACES)(body(), timeout=5)
    own = grpc.ssl_channel_credentials(
        authority, (keys / "client.key").read_bytes(), (keys / "client.pem").read_bytes()
    )
    with grpc.secure_channel(str(collector.grpc), own) as channel:
        assert channel.unary_unary(TRACES)(body(), timeout=20) == b""
    assert rows(collector, "SELECT count(*) AS n FROM spans") == [{"n": 2}]


def test_files_that_cannot_be_used_are_named(
    start_collector: StartCollector, keys: Path, tmp_path: Path
) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("no certificate")
    server, key = keys / "server.pem", keys / "server.key"
    for certificate, own, authority, named in (
        (nonsense, key, None, nonsense),
        (server, nonsense, None, nonsense),
        (server, keys / "client.key", None, keys / "client.key"),
        (server, key, nonsense, nonsense),
    ):
        with pytest.raises(CollectorError, match=f"TLS .*{named.name}.*cannot be used"):
            start_collector(
                grpc="127.0.0.1:0", tls_certificate=certificate, tls_key=own, tls_client_ca=authority
            )


def test_a_certificate_out_of_date_is_said(keys: Path, tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    assert openssl is not None
    server, key = keys / "server.pem", keys / "server.key"
    assert check_files(server, key, keys / "ca.pem") is None
    old = tmp_path / "old.pem"
    sign = [openssl, "x509", "-req", "-in", str(keys / "server.csr"), "-days", "-1", "-signkey", str(key)]
    made = subprocess.run([*sign, "-out", str(old)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("this openssl makes no certificate of the past")
    assert (
        check_files(old, key, None)
        == f"TLS certificate {old} has expired: senders will refuse it until it is replaced"
    )
