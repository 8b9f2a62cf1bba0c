"""Ports of this machine: is one free, and who has it."""

from __future__ import annotations

import socket

import psutil

from agent_slo.errors import CommandError


def require_free_port(host: str, port: int, what: str, option: str) -> None:
    """Raise `CommandError` naming the holder when something listens on host:port already."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except PermissionError as error:
            raise CommandError(
                f"port {port} needs more rights; choose one above 1023 with {option}"
            ) from error
        except OSError as error:
            holder = _holder(port)
            taken = f" by process {holder}" if holder else ""
            raise CommandError(
                f"port {port} for {what} is taken{taken}; stop it, or choose another with {option} PORT"
            ) from error


def free_port(host: str = "127.0.0.1") -> int:
    """A port that is free now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _holder(port: int) -> str | None:
    """`PID (name)` of the listener, where the system lets us see it."""
    try:
        for connection in psutil.net_connections(kind="tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
                return f"{connection.pid} ({psutil.Process(connection.pid).name()})"
    except psutil.Error:
        return None
    return None
