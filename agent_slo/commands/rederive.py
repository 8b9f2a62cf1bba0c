"""`agent-slo rederive`: everything again from the raw spans."""

from __future__ import annotations

from datetime import datetime

import click

from agent_slo.derivation import derive_once, now
from agent_slo.door import live_door
from agent_slo.errors import CommandError
from agent_slo.options import Place, as_of_option, common
from agent_slo.output import say, words_console
from collector.store import Store
from dashboard.format import count


@click.command()
@as_of_option
@common
def rederive(place: Place, as_of: datetime | None) -> None:
    """Derive everything again from the raw spans.

    For when a mapping, a definition or the settings changed.

    Needs the collector stopped, since it holds the old settings. --as-of decides as if it were then; a
    collector started later decides as of its own now.
    """
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
        with words_console().status("deriving everything again"):
            done = derive_once(store, config, objectives, as_of or now(), again=True)
    finally:
        store.close()
    say(f"{count(done.spans)} spans gave {count(done.tasks)} tasks in {done.seconds:.1f} s")
