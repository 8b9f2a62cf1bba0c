"""OpenSLO objects -> YAML that every OpenSLO tool reads, ours included (round trip)."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import yaml

from metrics.openslo.model import AnyObject


class _Dumper(yaml.SafeDumper):
    """SafeDumper that keeps decimals as they were written and quotes what would read as a time."""


def _decimal(dumper: yaml.SafeDumper, value: Decimal) -> yaml.ScalarNode:
    text = f"{value:f}"
    tag = "tag:yaml.org,2002:float" if "." in text else "tag:yaml.org,2002:int"
    return dumper.represent_scalar(tag, text)


_Dumper.add_representer(Decimal, _decimal)


def plain(value: AnyObject) -> dict[str, Any]:
    """The object as the mapping a file holds: set fields only, OpenSLO's own names."""
    data = value.model_dump(by_alias=True, exclude_unset=True)
    return {"apiVersion": value.api_version, "kind": value.kind, **data}


def dump(objects: Iterable[AnyObject]) -> str:
    """Multi-document YAML of the objects, one after another."""
    return yaml.dump_all(
        [plain(o) for o in objects], Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
    )
