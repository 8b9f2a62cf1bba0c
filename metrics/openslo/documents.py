"""YAML and JSON text as plain values, with the line each part stands on. No tags, no surprises.

Numbers with a point stay exact (`Decimal` of the text: a target of 0.999 leaves a budget of 0.001), a time
stays the text that was written, and a key written twice is an error instead of the last one winning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import yaml

from metrics.bounded_yaml import TooMuch, check_node, check_size, too_deep
from metrics.openslo.errors import OpenSLOError


class _Loader(yaml.SafeLoader):
    """SafeLoader with exact numbers and without timestamps."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _decimal(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    try:
        value = Decimal(text)
    except InvalidOperation:
        return loader.construct_yaml_float(node)
    return value


_Loader.add_constructor("tag:yaml.org,2002:float", _decimal)


@dataclass(frozen=True)
class Document:
    """One OpenSLO object as written; `node` knows the lines."""

    value: Any
    node: yaml.Node

    def written(self, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
        """`path` in the words of the file."""
        return path

    def has(self, path: tuple[str | int, ...]) -> bool:
        """Whether the file has something at this path of its own words."""
        return self._deepest(path)[1] == len(path)

    def line(self, path: tuple[str | int, ...]) -> int:
        """Line (from 1) of the deepest part of `path` that exists."""
        return int(self._deepest(self.written(path))[0].start_mark.line) + 1

    def _deepest(self, path: tuple[str | int, ...]) -> tuple[yaml.Node, int]:
        node = self.node
        for depth, step in enumerate(path):
            child: yaml.Node | None = None
            if isinstance(node, yaml.MappingNode):
                child = next((v for k, v in node.value if k.value == step), None)
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                child = node.value[step]
            if child is None:
                return node, depth
            node = child
        return node, len(path)


def _check_keys(node: yaml.Node, file: str) -> None:
    """Refuse keys written twice."""
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in keys:
                raise OpenSLOError(
                    f"key {name} is written twice",
                    file=file,
                    remedy="keep one of them",
                    line=int(key.start_mark.line) + 1,
                )
            keys.add(name)
            _check_keys(value, file)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _check_keys(value, file)


def documents(text: str, file: str) -> Iterator[Document]:
    """Every object of a YAML stream or JSON text: several documents, lists, or both. Raises OpenSLOError."""
    # JSON is YAML except for tabs, which only ever are white space outside its strings.
    source = text.replace("\t", " ") if text.lstrip()[:1] in ("{", "[") else text
    loader: _Loader | None = None
    try:
        check_size(len(source))
        loader = _Loader(source)
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                continue
            check_node(node)
            _check_keys(node, file)
            if isinstance(node, yaml.SequenceNode):
                for item in node.value:
                    yield Document(loader.construct_document(item), item)
            elif not (isinstance(node, yaml.ScalarNode) and not node.value):
                yield Document(loader.construct_document(node), node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise OpenSLOError(
            f"not readable as YAML: {error.problem or error.context}",
            file=file,
            remedy="check the indentation and quotes there",
            line=mark.line + 1 if mark else None,
        ) from None
    except (TooMuch, RecursionError) as error:
        refused = error if isinstance(error, TooMuch) else too_deep()
        raise OpenSLOError(refused.problem, file=file, remedy=refused.remedy, line=refused.line) from None
    except (yaml.YAMLError, ValueError) as error:
        raise OpenSLOError(f"not readable as YAML: {error}", file=file, remedy="check the file") from None
    finally:
        if loader is not None:
            loader.dispose()
