"""`agent-slo label TASK --needed yes|no|unknown`."""

from __future__ import annotations

import click

from agent_slo.actions import account, act
from agent_slo.door import live_door
from agent_slo.label_actions import label_actions
from agent_slo.options import Place, common
from agent_slo.output import print_json, say

_WORDS = {True: "needed a human", False: "needed no human", None: "may have needed a human or not"}


@click.command()
@click.argument("task_ids", metavar="TASK...", nargs=-1, required=True)
@click.option(
    "--needed", required=True, type=click.Choice(["yes", "no", "unknown"]), help="Whether a human was needed."
)
@click.option("--note", help="Why, for those who wonder later.")
@click.option("--by", help="Who says so (default: the account that runs this).")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@common
def label(
    place: Place, task_ids: tuple[str, ...], needed: str, note: str | None, by: str | None, form: str
) -> None:
    """Say whether tasks needed a human.

    Precision and recall of escalations are counted over labelled tasks; the last word of a task counts. It is in
    the view human_labels at once, and in the objectives after the collector's next pass (`agent-slo rederive`
    without a collector).
    """
    said = {"needed": needed, "note": note, "by": by or account()}
    answers = [act(place.data, label_actions(), "tasks.label", {"task_id": t, **said}) for t in task_ids]
    if form == "json":
        print_json(answers)
        return
    for answer in answers:
        asked = "it asked one" if answer["asked"] else "it asked none"
        frozen = "; its spans are gone, so objectives keep what they counted" if answer["frozen"] else ""
        say(f"{answer['task_id']} {_WORDS[answer['needed']]} ({asked}){frozen}")
    if live_door(place.data) is None:
        say("objectives count it after `agent-slo rederive` or once a collector runs")
