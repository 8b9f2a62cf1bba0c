"""Writes `docs/command-line.md` out of the commands themselves: `python -m agent_slo.reference > docs/command-line.md`.

A test holds the page against this, so an option cannot be added without its line.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from agent_slo.cli import cli

_HEAD = """# Command line

Answers go to stdout, words to stderr. Exit code 0: fine; 1: a finding or a failed gate; 2: wrong use, or something in
the environment that has to be mended first (the message says what, where and how). `NO_COLOR` and pipes are respected.

This page is written by `make docs` from the commands themselves.
"""


def page() -> str:
    """Return the whole page as Markdown."""
    context = click.Context(cli, info_name="agent-slo")
    return _HEAD + "".join(_section(context, cli))


def _section(context: click.Context, command: click.Command) -> Iterator[str]:
    depth = len(context.command_path.split())
    yield f"\n{'#' * (depth + 1)} `{context.command_path}`\n\n{_text(command.help or '')}\n"
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    if arguments:
        usage = " ".join(part for p in arguments if (part := p.make_metavar(context)))
        yield f"\n    {context.command_path} {usage}\n"
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    if options:
        yield "\n| option | meaning |\n|---|---|\n"
        for option in options:
            record = option.get_help_record(context)
            names, meaning = record if record else (", ".join(option.opts), "")
            yield f"| `{_cell(names)}` | {_cell(_text(meaning))} |\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _section(click.Context(inner, info_name=name, parent=context), inner)


def _text(text: str) -> str:
    paragraphs = text.replace("\b", "").strip().split("\n\n")
    return "\n\n".join(" ".join(line.strip() for line in p.splitlines()) for p in paragraphs)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    click.echo(page(), nl=False)
