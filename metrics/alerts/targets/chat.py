"""Chats, mails and pagers through Apprise."""

from __future__ import annotations

import logging

from metrics.alerts.message import Message


class _Words(logging.Handler):
    """Keeps what Apprise says while it sends: it answers with no more than yes or no."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def notify(url: str, message: Message) -> str | None:
    """Send to an Apprise address; None when it was taken, else why not (without the address: it is a secret)."""
    # Loading it takes a second, which nobody without such a target should wait for.
    import apprise

    kind = apprise.NotifyType.FAILURE if message.severity == "page" else apprise.NotifyType.WARNING
    if message.is_over:
        kind = apprise.NotifyType.SUCCESS
    if message.event == "test":
        kind = apprise.NotifyType.INFO
    service = apprise.Apprise()
    if not service.add(url):
        return "Apprise does not know this kind of address; see its list of services"
    words = _Words()
    logger = logging.getLogger("apprise")
    logger.addHandler(words)
    try:
        taken = service.notify(
            title=message.title(),
            body=message.body(),
            notify_type=kind,
            body_format=apprise.NotifyFormat.TEXT,
        )
    finally:
        logger.removeHandler(words)
    if taken:
        return None
    said = "; ".join(words.said).replace(url, "...")[:300]
    return said or "not taken"
