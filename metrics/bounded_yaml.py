"""Bounds on YAML that people write by hand: a small file must not become a huge value, nor a deep one end the process.

Aliases are allowed, but every use counts as if it had been written out.
"""

from __future__ import annotations

import yaml

MOST_BYTES = 1 << 20
"""Largest file. PyYAML reads about 100 KB a second."""
MOST_VALUES = 100_000
MOST_DEPTH = 100


class TooMuch(ValueError):
    """A file is beyond a bound: `problem` says which, `remedy` what to do, `line` (from 1) where."""

    def __init__(self, problem: str, remedy: str, line: int | None = None) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem, self.remedy, self.line = problem, remedy, line


def check_size(count: int) -> None:
    """Refuse a text of so many bytes (or characters). Raises TooMuch."""
    if count > MOST_BYTES:
        raise TooMuch(f"larger than {MOST_BYTES >> 10} KiB", "split the file")


def too_deep(line: int | None = None) -> TooMuch:
    """The refusal of what is nested too deeply, also when the parser itself gave up on it."""
    return TooMuch(f"nested deeper than {MOST_DEPTH}, or an alias that holds itself", "flatten it", line)


def check_node(root: yaml.Node | None) -> None:
    """Refuse what would be too many values or too deep once its aliases are written out. Raises TooMuch.

    Constructing a node that passes takes time and memory in proportion to MOST_VALUES, merge keys included.
    """
    waiting: list[tuple[yaml.Node, int]] = [] if root is None else [(root, 1)]
    seen = 0
    while waiting:
        node, depth = waiting.pop()
        seen += 1
        line = node.start_mark.line + 1
        if seen > MOST_VALUES:
            raise TooMuch("too many values (or aliases that multiply them)", "split the file", line)
        if depth > MOST_DEPTH:
            raise too_deep(line)
        if isinstance(node, yaml.MappingNode):
            waiting += [(part, depth + 1) for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(item, depth + 1) for item in node.value]
