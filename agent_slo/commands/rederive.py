"""`agent-slo rederive`: everything again from the raw spans, or one SQL file shown at work."""

from __future__ import annotations

from datetime import datetime

import click

from agent_slo.derivation import derive_once, explain_once, now
from agent_slo.door import live_door
from agent_slo.errors import CommandError
from agent_slo.options import Place, as_of_option, common
from agent_slo.output import print_arrow_table, say, words_console
from collector.store import Store
from dashboard.format import count


@click.command()
@click.option(
    "--explain", "file", metavar="FILE", help="Show what one SQL file says of --task; keeps nothing."
)
@click.option("--task", "task_id", metavar="ID", help="The task that --explain is about.")
@as_of_option
@common
def rederive(place: Place, as_of: datetime | None, file: str | None, task_id: str | None) -> None:
    """Derive everything again from the raw spans.

    For when a mapping, a definition or the settings changed. With --explain FILE --task ID it derives that task
    alone and shows the rows that one file of the derivation gives for it.

    Needs the collector stopped, since it holds the old settings. --as-of decides as if it were then; a
    collector started later decides as of its own now.
    """
    if (file is None) != (task_id is None):
        raise CommandError("--explain and --task go together: name the SQL file and the task")
    door = live_door(place.data)
    if door is not None:
        raise CommandError(
            f"the collector of {place.data} runs (process {door.pid}) with its own settings; "
            "stop it, then rederive"
        )
    if not (place.data / "format.json").is_file():
        raise CommandError(f"{place.data}: there is no data to derive from; name the folder with --data")
    config = place.config().config
    objectives = place.objectives()
    store = Store.open(place.data)
    try:
        if file is not None and task_id is not None:
            print_arrow_table(explain_once(store, config, file, task_id, as_of or now()), "table")
            return
        with words_console().status("deriving everything again"):
            done = derive_once(store, config, objectives, as_of or now(), again=True)
    finally:
        store.close()
    say(f"{count(done.spans)} spans gave {count(done.tasks)} tasks in {done.seconds:.1f} s")
