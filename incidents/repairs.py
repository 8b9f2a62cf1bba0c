"""Which recorded calls only undo what a fault did: nobody asked for them, and without the fault nobody makes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from incidents.evidence import Call, Evidence
from incidents.replay.world import canonical
from incidents.toolbox import Tool, split_name
from metrics.canonical import entities, leaves
from metrics.conventions import words


def marked(evidence: Evidence, tools: Mapping[str, Tool]) -> list[Call]:
    """The calls of the task in their order, `repairs` set on each that undoes what a fault did.

    A write does when it undoes an earlier write of the task (as derived, as configured, or by an inverse name and the
    id the earlier one made), the request does not speak of it, and it answers a fault: the earlier write was repeated,
    is what the finding shows, or was followed by another failure or by the death of its process. A configured pair
    needs no such sign.
    """
    acts = [_Act(call, tools) for call in evidence.calls if call.executed and _acts(tools[call.tool])]
    said = " ".join(m["content"] for m in evidence.told.messages if m["role"] == "user").lower()
    undone_by = {span for act in acts if act.call.compensated for span in act.call.evidence}
    found: set[str] = set()
    for later in acts:
        if not (later.compensates or later.inverse or later.call.span_id in undone_by):
            continue
        for earlier in acts:
            if earlier.call.started_at >= later.call.started_at or earlier.intent == later.intent:
                continue
            paired = later.compensates == earlier.call.tool and bool(
                later.named & (earlier.named | earlier.made)
            )
            if paired or (
                _undoes(later, earlier)
                and not _asked_for(later, said)
                and _answers(evidence, acts, later, earlier)
            ):
                found.add(later.intent)
                break
    # a repair that failed and was tried again is one repair
    repairs = {id(act.call) for act in acts if act.intent in found}
    return [replace(call, repairs=True) if id(call) in repairs else call for call in evidence.calls]


class _Act:
    """A call that changed the world, or was to, with what it speaks of and what its result names beyond that."""

    def __init__(self, call: Call, tools: Mapping[str, Tool]) -> None:
        tool = tools[call.tool]
        known = set(words()["inverse_verbs"])
        asked = _text(call.args)
        result = call.result if isinstance(call.result, str) else _text(call.result)
        self.call = call
        self.intent = call.tool + canonical(tool.intent(call.args))
        self.compensates = tool.compensates
        self.inverse = [word for word in split_name(call.tool) if word in known]
        self.named = frozenset(leaves(asked))
        self.made = frozenset(entities(result, asked) if call.result is not None else ())


def _acts(tool: Tool) -> bool:
    return tool.writes and not tool.escalates


def _undoes(later: _Act, earlier: _Act) -> bool:
    if earlier.call.compensated and later.call.span_id in earlier.call.evidence:
        return True
    # the derivation counts only an undoing that went well; one that failed was meant no less
    return bool(later.inverse and earlier.call.tool != later.call.tool and later.named & earlier.made)


def _asked_for(act: _Act, said: str) -> bool:
    """Whether the request speaks of it: 'refund my order' asks for `issue_refund`, not for `cancel_refund`.

    The verb a name begins with says what it does; a word further on may only be what it is done to.
    """
    first = split_name(act.call.tool)[:1]
    spoken = first if set(first) & set(act.inverse) else act.inverse
    return any(re.search(rf"\b{re.escape(word)}", said) for word in spoken)


def _answers(evidence: Evidence, acts: Sequence[_Act], later: _Act, earlier: _Act) -> bool:
    """Whether there was a fault to answer, other than that of the undoing itself."""
    repeated = sum(act.intent == earlier.intent for act in acts) > 1
    if repeated or earlier.call.span_id in evidence.evidence_span_ids:
        return True
    own = {id(act.call) for act in acts if act.intent == later.intent}
    between = [
        call
        for call in evidence.calls
        if call.executed
        and earlier.call.started_at <= call.started_at < later.call.started_at
        and id(call) not in own
    ]
    if any(call.outcome not in ("ok", None) for call in between):
        return True
    crashed = {run["run_id"] for run in evidence.runs if run["verdict"] == "crashed"}
    return earlier.call.run_id in crashed and later.call.run_id != earlier.call.run_id


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
