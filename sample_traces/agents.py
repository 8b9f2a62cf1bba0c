"""The agents of the sample company: their tools, and what changed with each release.

Nothing in the product may depend on these names; they are what a reader of the demo sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sample_traces.messages import Dialect


@dataclass(frozen=True)
class Tool:
    """A tool: what it does to the world and how long it takes (seconds, least and most)."""

    name: str
    effect: str  # read, write, idempotent_write, escalate
    seconds: tuple[float, float]
    about: str
    parameters: tuple[str, ...]
    entity: str = ""  # field of the result that names what a write made, such as refund_id
    limit: float = 10.0  # seconds after which the caller gives up

    @property
    def writes(self) -> bool:
        return self.effect in ("write", "idempotent_write")

    def definition(self) -> dict[str, Any]:
        properties = {p: {"type": "string"} for p in self.parameters}
        return {
            "type": "function",
            "name": self.name,
            "description": self.about,
            "parameters": {"type": "object", "properties": properties, "required": list(self.parameters)},
        }


@dataclass(frozen=True)
class Release:
    """What runs from ``day`` (of the sample period) on."""

    day: float
    version: str
    model: str
    dialect: Dialect = "latest"


@dataclass(frozen=True)
class Agent:
    """One agent and the service it runs in."""

    name: str
    service: str
    task_type: str
    provider: str
    scope: str
    share: int  # of the company's tasks, in percent
    releases: tuple[Release, ...]
    tools: Mapping[str, Tool]
    overhead: int  # tokens of instructions and tool definitions in each model call
    think: tuple[float, float] = (0.7, 2.6)  # seconds of one model call
    marker: bool = False  # sends a start marker
    states_type: bool = True  # says agent_slo.task.type
    states_outcome: bool = False  # says agent_slo.task.outcome on the root of a run
    claims_from: float | None = None  # day from which it says agent_slo.task.claimed
    deadline_s: int | None = None  # stated on the start marker and the root
    evaluated: float = 0.0  # share of its tasks whose result is checked
    instances: int = 2

    def release(self, day: float) -> Release:
        """The release that runs at ``day`` (days since the start of the sample period)."""
        return [r for r in self.releases if r.day <= max(day, 0.0)][-1]


def _named(*tools: Tool) -> dict[str, Tool]:
    return {t.name: t for t in tools}


def _read(name: str, about: str, *parameters: str, seconds: tuple[float, float] = (0.08, 0.6)) -> Tool:
    return Tool(name, "read", seconds, about, parameters)


def _write(
    name: str, about: str, entity: str, *parameters: str, seconds: tuple[float, float] = (0.4, 1.9)
) -> Tool:
    return Tool(name, "write", seconds, about, parameters, entity)


TO_HUMAN = Tool(
    "transfer_to_human", "escalate", (0.1, 0.4), "Hand the case to a colleague.", ("reason", "team"),
    "ticket_id",
)  # fmt: skip

REFUND_DESK = Agent(
    name="refund_desk", service="refund-desk", task_type="refund", provider="anthropic",
    scope="refund_desk.telemetry", share=36, overhead=1150, marker=True, claims_from=9.6,
    releases=(
        Release(0, "2.3.0", "claude-haiku-4-5"),
        Release(9.6, "2.4.0", "claude-haiku-4-5"),
        Release(18.4, "2.5.0", "claude-sonnet-4-5"),  # the dearer model: three times the price of a token
        Release(23.5, "2.5.1", "claude-sonnet-4-5"),
    ),
    tools=_named(
        _read("get_order", "Read one order.", "order_id"),
        _read("get_refund_policy", "Read the policy for a category.", "category"),
        _read("get_refund_status", "Read the refunds of an order.", "order_id"),
        _write("issue_refund", "Pay money back to the customer.", "refund_id", "order_id", "amount"),
        _write("cancel_refund", "Stop a refund that was not yet paid out.", "cancellation_id", "refund_id"),
        _write("send_confirmation", "Write to the customer.", "message_id", "order_id", "message",
               seconds=(0.2, 0.9)),
        TO_HUMAN,
    ),
)  # fmt: skip

SCHEDULING = Agent(
    name="scheduling_assistant", service="scheduling", task_type="scheduling", provider="openai",
    scope="scheduling.telemetry", share=22, overhead=820,
    releases=(
        Release(0, "1.8.2", "gpt-4.1-mini", "events"),
        Release(6.5, "1.9.0", "gpt-4.1-mini"),
        Release(20.5, "1.9.1", "gpt-4.1-mini"),
    ),
    tools=_named(
        _read("list_free_slots", "Free slots of a room.", "room", "day"),
        _read("get_room", "Read one room.", "room"),
        _write("book_room", "Book a room.", "booking_id", "room", "start", "minutes"),
        _write("cancel_room", "Give a room back.", "cancellation_id", "booking_id"),
        _write("book_catering", "Order catering.", "order_id", "start", "people"),
        _write("cancel_catering", "Cancel catering.", "cancellation_id", "order_id"),
        _write("send_invitation", "Invite the participants.", "invitation_id", "booking_id", "participants"),
        Tool("update_meeting_status", "idempotent_write", (0.2, 0.8), "Set the status of a meeting.",
             ("meeting", "status")),
    ),
)  # fmt: skip

RESEARCH = Agent(
    name="research_analyst", service="research", task_type="research", provider="openai",
    scope="research.tracing", share=15, overhead=640, think=(1.2, 4.5), states_type=False,
    releases=(
        Release(0, "0.14.0", "gpt-4o-mini", "flattened"),
        Release(14.5, "0.15.0", "gpt-4o-mini", "flattened"),
        Release(22.5, "0.16.0", "gpt-4o-mini"),
    ),
    tools=_named(
        _read("search_web", "Search the web.", "query", seconds=(0.5, 1.8)),
        _read("get_page", "Read one page.", "url", "page", seconds=(0.4, 2.2)),
        _read("get_export_status", "Progress of a data export.", "export_id"),
        _write("create_report", "File a report.", "report_id", "title", "summary"),
    ),
)  # fmt: skip

INVOICES = Agent(
    name="invoice_reminder", service="invoice-reminders", task_type="invoice_reminder", provider="openai",
    scope="invoice_worker.otel", share=18, overhead=540, marker=True, think=(0.5, 1.6),
    states_outcome=True, deadline_s=1800,
    releases=(
        Release(0, "3.1.0", "gpt-4o-mini"),
        Release(11.5, "3.2.0", "gpt-4o-mini"),
        Release(19.5, "3.2.1", "gpt-4o-mini"),
    ),
    tools=_named(
        _read("get_invoice", "Read one invoice.", "invoice_id"),
        _read("list_payments", "Payments for an invoice.", "invoice_id"),
        _write("send_reminder", "Send a reminder.", "message_id", "invoice_id", "level", seconds=(0.3, 1.2)),
        _write("create_late_fee", "Add a late fee to the account.", "fee_id", "invoice_id", "amount"),
        TO_HUMAN,
    ),
)  # fmt: skip

CODING = Agent(
    name="code_maintainer", service="code-maintainer", task_type="code_change", provider="anthropic",
    scope="code_maintainer.otel", share=9, overhead=2400, think=(2.0, 7.0), instances=1, evaluated=0.4,
    claims_from=0.0,
    releases=(
        Release(0, "0.7.1", "claude-sonnet-4-5"),
        Release(12.5, "0.8.0", "claude-sonnet-4-5"),
        Release(25.5, "0.8.2", "claude-sonnet-4-5"),
    ),
    tools=_named(
        _read("search_code", "Search the repository.", "pattern"),
        _read("read_file", "Read a file.", "path"),
        _read("get_test_results", "Results of the test run.", "branch", seconds=(1.5, 4.5)),
        _write("update_file", "Write a file.", "commit", "path", "patch"),
        _write("create_pull_request", "Open a pull request.", "pull_request", "branch", "title"),
    ),
)  # fmt: skip

COMPANY = (REFUND_DESK, SCHEDULING, RESEARCH, INVOICES, CODING)
