"""What people and systems ask the sample company for: believable words, orders, rooms and invoices.

No real person appears: customers are numbers, addresses are on example.com.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sample_traces.agents import CODING, INVOICES, REFUND_DESK, RESEARCH, SCHEDULING, Tool
from sample_traces.tasks import Job, Scene, Step

GOODS = (
    ("desk lamp", "lighting"), ("rain jacket", "clothing"), ("espresso grinder", "kitchen"),
    ("hiking boots", "clothing"), ("wireless keyboard", "electronics"), ("wool blanket", "home"),
    ("bike helmet", "sports"), ("office chair", "furniture"), ("phone case", "electronics"),
    ("set of pans", "kitchen"), ("garden hose", "garden"), ("backpack", "travel"),
)  # fmt: skip
COMPLAINTS = (
    "My {good} arrived broken, order {order}. I would like my money back.",
    "Hello, the {good} from order {order} never came. Please refund the {amount} euros.",
    "Order {order}: the {good} is the wrong colour and I sent it back last week. Where is my refund?",
    "I returned the {good} ({order}). Could you please refund {amount}?",
    "The {good} stopped working after two days. Order number {order}, please pay back {amount}.",
    "You charged me twice for the {good} in {order}. I want {amount} back, thanks.",
)
ROOMS = ("Baltic", "Danube", "Elbe", "Rhine", "Tagus", "Vistula", "Loire", "Thames")
MEETINGS = (
    "quarterly review", "onboarding day", "supplier talk", "design workshop", "budget round",
    "customer visit", "interview day", "release planning",
)  # fmt: skip
TOPICS = (
    "heat pump subsidies in the Nordics", "cold-chain packaging suppliers", "e-bike battery recycling rules",
    "return rates in online fashion", "parcel locker density by city", "standby power limits for displays",
    "recycled aluminium prices", "import duties on textile machines", "tax treatment of gift cards",
)  # fmt: skip
MODULES = ("billing", "checkout", "catalogue", "search", "accounts", "shipping", "notifications")
CHORES = (
    "The {module} service logs a warning for each request since the last upgrade, please fix it.",
    "Bump the date library in {module} and repair what breaks.",
    "Add a retry limit to the {module} client; it hammers the gateway when that is down.",
    "The rounding in {module} is off by one cent for three-for-two offers.",
    "Remove the old feature flag from {module}.",
)


def _step(tool: Tool, result: dict[str, Any], **arguments: Any) -> Step:
    return Step(tool, arguments, result)


def refund(scene: Scene, *, large: bool = False, confirmed: bool = False) -> Job:
    """A customer wants money back; ``large`` amounts need a person's approval by policy (above 500).

    Some refunds are ``confirmed`` by a message; when True, this one is.
    """
    tools, rng = REFUND_DESK.tools, scene.random
    good, category = rng.choice(GOODS)
    order, customer = f"A-{20000 + scene.number}", f"c-{1000 + rng.randrange(9000)}"
    amount = 520 + 10 * rng.randrange(120) if large else 15 + rng.randrange(420)
    words = rng.choice(COMPLAINTS).format(good=good, order=order, amount=amount)
    reads = [
        _step(
            tools["get_order"], {"order_id": order, "item": good, "amount": amount, "status": "delivered"},
            order_id=order,
        )
    ]  # fmt: skip
    if rng.random() < 0.4:
        policy = {"category": category, "days": 30, "return_needed": category != "kitchen"}
        reads.append(_step(tools["get_refund_policy"], policy, category=category))
    issue = _step(
        tools["issue_refund"], {"order_id": order, "amount": amount, "status": "issued"},
        order_id=order, amount=amount,
    )  # fmt: skip
    writes = [issue]
    if rng.random() < 0.25 or confirmed:
        note = f"We have refunded {amount} EUR for your {good}."
        writes.append(_step(tools["send_confirmation"], {"status": "sent"}, order_id=order, message=note))
    return Job(
        ask=words, reads=tuple(reads), writes=tuple(writes),
        answer=f"Your refund of {amount} EUR for order {order} is on its way.",
        conversation=f"chat-{customer}-{scene.number}", attributes={"user.id": customer},
        again=f"One more thing: a second {good} of order {order} is broken too, please refund it as well.",
    )  # fmt: skip


def meeting(scene: Scene, *, catered: bool = False) -> Job:
    """A colleague wants a meeting booked: room, sometimes catering, and an invitation."""
    tools, rng = SCHEDULING.tools, scene.random
    room, topic = rng.choice(ROOMS), rng.choice(MEETINGS)
    label = f"M-{7000 + scene.number}"
    hour, people = 9 + rng.randrange(8), 4 + rng.randrange(14)
    start = f"week {1 + scene.number % 50}, day {1 + rng.randrange(5)}, {hour}:00"
    minutes = rng.choice((30, 45, 60, 90))
    reads = (
        _step(tools["list_free_slots"], {"room": room, "free": [f"{hour}:00", f"{hour + 2}:00"]},
              room=room, day=start.rsplit(",", 1)[0]),
    )  # fmt: skip
    writes = [
        _step(tools["book_room"], {"room": room, "start": start, "status": "booked"},
              room=room, start=f"{start} {label}", minutes=minutes),
    ]  # fmt: skip
    if catered:
        writes.append(
            _step(tools["book_catering"], {"people": people, "status": "ordered"},
                  start=f"{start} {label}", people=people)
        )  # fmt: skip
    guests = [f"team-{1 + rng.randrange(30)}@example.com", f"guests-{scene.number}@example.com"]
    writes.append(
        _step(tools["send_invitation"], {"status": "sent", "count": people},
              booking_id=f"{room}/{label}", participants=guests)
    )  # fmt: skip
    food = " with lunch" if catered else ""
    return Job(
        ask=f"Please set up the {topic} ({label}) for {people} people{food}, {start}, room {room} if free.",
        reads=reads, writes=tuple(writes), answer=f"Done: {room} is booked for the {topic}, {start}.",
        conversation=f"calendar-{label}",
        again=f"Please book another hour for the same group after {label}.",
    )  # fmt: skip


def meeting_status(scene: Scene) -> tuple[Job, Callable[[str], Step]]:
    """A colleague wants the status of a meeting set; the second value makes the write for a status."""
    tool, label = SCHEDULING.tools["update_meeting_status"], f"M-{7000 + scene.number}"

    def set_to(status: str) -> Step:
        return _step(tool, {"meeting": label, "status": status}, meeting=label, status=status)

    room = scene.random.choice(ROOMS)
    read = _step(SCHEDULING.tools["get_room"], {"room": room, "seats": 12, "screen": True}, room=room)
    job = Job(
        ask=f"Mark meeting {label} as confirmed.", reads=(read,), writes=(set_to("confirmed"),),
        answer=f"Meeting {label} is confirmed.", conversation=f"calendar-{label}",
    )  # fmt: skip
    return job, set_to


def research(scene: Scene) -> Job:
    """An analyst's question: some searches and pages, now and then a filed report."""
    tools, rng = RESEARCH.tools, scene.random
    topic = rng.choice(TOPICS)
    number = f"R-{scene.number}"
    reads = [_step(tools["search_web"], {"hits": 3 + rng.randrange(7), "best": "example.com"}, query=topic)]
    for page in range(1, 1 + rng.randrange(1, 4)):
        units, growth = rng.randrange(100, 999), rng.randrange(1, 19)
        text = f"{topic}: figures of part {page}, {units} units, up {growth} %."
        url = f"https://example.com/{topic.split()[0].lower()}/{number}"
        reads.append(_step(tools["get_page"], {"text": text}, url=url, page=page))
    writes: tuple[Step, ...] = ()
    if rng.random() < 0.3:
        report = _step(
            tools["create_report"], {"status": "filed"}, title=f"{number} {topic}", summary=f"About {topic}."
        )
        writes = (report,)
    return Job(
        ask=f"{number}: what do we know about {topic}? Two short paragraphs with sources.",
        reads=tuple(reads), writes=writes,
        answer=f"On {topic}: demand grew by {rng.randrange(2, 18)} % and prices were stable. "
        "Sources: example.com, example.org.",
        conversation=f"research-{number}",
    )  # fmt: skip


def export(scene: Scene, states: tuple[str, ...]) -> Job:
    """A question that waits for a data export: one status read for each of ``states``."""
    tool, number = RESEARCH.tools["get_export_status"], f"X-{scene.number}"
    reads = tuple(_step(tool, {"export_id": number, "state": s}, export_id=number) for s in states)
    return Job(
        ask=f"Tell me when export {number} is finished and how many rows it has.", reads=reads, writes=(),
        answer=f"Export {number} is finished with {scene.random.randrange(2000, 90000)} rows.",
        conversation=f"research-{number}",
    )  # fmt: skip


def invoice(scene: Scene) -> Job:
    """A queue message: remind a customer of an open invoice. The delivery has an id of its own."""
    tools, rng = INVOICES.tools, scene.random
    number = f"INV-{40000 + scene.number}"
    amount, level, days = 80 + rng.randrange(1900), 1 + rng.randrange(3), 8 + rng.randrange(40)
    reads = [
        _step(tools["get_invoice"], {"invoice_id": number, "amount": amount, "open": True},
              invoice_id=number)
    ]  # fmt: skip
    if rng.random() < 0.5:
        reads.append(_step(tools["list_payments"], {"payments": []}, invoice_id=number))
    writes = [
        _step(tools["send_reminder"], {"invoice_id": number, "status": "sent"},
              invoice_id=number, level=level)
    ]  # fmt: skip
    if level == 3:
        fee = _step(tools["create_late_fee"], {"status": "added"}, invoice_id=number, amount=15)
        writes.append(fee)
    return Job(
        ask=f"Invoice {number} over {amount} EUR is {days} days late. Send reminder level {level}.",
        reads=tuple(reads), writes=tuple(writes), answer=f"Reminder level {level} for {number} was sent.",
        conversation=f"invoice-{number}",
        attributes={"agent_slo.task.input_id": f"delivery-{number}-{level}"},
    )  # fmt: skip


def code_change(scene: Scene) -> Job:
    """A chore in a repository: read, change a file, look at the tests, open a pull request."""
    tools, rng = CODING.tools, scene.random
    module = rng.choice(MODULES)
    branch = f"chore/{module}-{scene.number}"
    path = f"services/{module}/client.py"
    reads = (
        _step(tools["search_code"], {"matches": 2 + rng.randrange(9), "first": path}, pattern=f"{module}."),
        _step(tools["read_file"], {"lines": 120 + rng.randrange(300), "sha": f"{rng.getrandbits(40):010x}"},
              path=path),
    )  # fmt: skip
    patch = f"@@ -{rng.randrange(10, 90)},6 +{rng.randrange(10, 90)},7 @@ {module} {branch}"
    writes = (
        _step(tools["update_file"], {"path": path, "status": "committed"}, path=path, patch=patch),
        _step(tools["create_pull_request"], {"status": "open"}, branch=branch, title=f"{module}: repair"),
    )
    return Job(
        ask=rng.choice(CHORES).format(module=module) + f" Use branch {branch}.",
        reads=reads, writes=writes, answer=f"The change is on {branch}; a pull request is open.",
        conversation=f"repo-{branch}",
    )  # fmt: skip


JOBS: dict[str, Callable[[Scene], Job]] = {
    REFUND_DESK.name: refund,
    SCHEDULING.name: meeting,
    RESEARCH.name: research,
    INVOICES.name: invoice,
    CODING.name: code_change,
}


def job_for(scene: Scene) -> Job:
    """The usual work of the scene's agent."""
    return JOBS[scene.agent.name](scene)
