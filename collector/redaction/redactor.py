"""Redacts whole batches: RE2 over the columns finds candidates, Python touches only the documents that hit.

A placeholder is `<TYPE:hmac10>` of the value alone, so equal values stay equal wherever they stand, and different
ones stay different: every decision about repeats comes out as without redaction.
"""

from __future__ import annotations

import base64
import hmac
import json
import logging
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from collector.batch import Batch
from collector.redaction import detectors, named, written
from collector.redaction.content import ContentDropper
from collector.redaction.detectors import DETECTORS, EMAIL_ESCAPED, PLACEHOLDER, replace_addresses
from collector.redaction.named import KEY_CANDIDATE, TEXT_CANDIDATE
from collector.redaction.policy import Policy, RedactionRules

log = logging.getLogger("agent_slo.redaction")

# What Python's json writes for "+" and "@" with the strictest settings; rare, so such documents are simply read.
_ESCAPED = r"\\u00[2-7][0-9A-Fa-f]"
_SHAPES = "|".join(d.candidate for d in DETECTORS)
# What `collector.values` makes of bytes: their text is base64, which no pattern reads.
_BYTES = r'\{"base64":'
_DOCUMENT = f"{_SHAPES}|{KEY_CANDIDATE}|{_ESCAPED}|{_BYTES}"
_LEAF = f"{_SHAPES}|{TEXT_CANDIDATE}"
# What a document must not hold for its addresses to be replaced in the text as it stands, without reading the JSON.
_MORE_THAN_ADDRESSES = "|".join(
    [*(d.candidate for d in DETECTORS if d.replaced is None), KEY_CANDIDATE, _ESCAPED, _BYTES, EMAIL_ESCAPED]
)
_SHORTEST = 6
_DEEPEST = 96
_NESTED = 8
_MOST_KEYS = 20_000
_MOST_DIGESTS = 20_000
# Words without secrets that are remembered, and their characters in all.
_MOST_WORDS, _MOST_CHARACTERS = 20_000, 4_000_000
# Texts whose names are remembered: a conversation is sent again with every call of its model.
_MOST_READ = 5_000
# A name of a person in running text has a neighbour; identifiers, which models take for names, have none.
_PROSE = re.compile(r"\S\s+\S")
# A number of more digits than a double holds: re-written JSON must not round it.
_LONG_NUMBER = "[0-9]{17}"
_LEAST_CARD = 10**12

_PLAIN, _SECRET, _WEAK, _PHONE, _PLURAL, _TOKEN, _VARIABLE, _FOLDER = range(8)
_BOOLEANS = frozenset({"true", "false", "yes", "no"})
# How objects spell a pair: `{"name": "DB_PASSWORD", "value": "..."}`.
_NAMES_OF_PAIRS = ("name", "key", "Name", "Key")
_VALUES_OF_PAIRS = frozenset({"value", "Value"})
_SPAN_DOCUMENTS = ("attributes", "events", "links")
_LOG_DOCUMENTS = ("attributes", "body")
# Checked when they are decoded: hexadecimal digits and nothing else.
_IDS = frozenset({"trace_id", "span_id", "parent_span_id"})


class Redactor:
    """Thread-safe; `counts` grow for ever. `key`: the installation's key (collector.redaction.key)."""

    def __init__(self, rules: RedactionRules, key: bytes) -> None:
        self.rules = rules
        self._key = key
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._kinds: dict[str, int] = {}
        # The same addresses come again and again: a conversation is sent with every call of its model.
        self._digests: dict[str, str] = {}
        self._dropper = ContentDropper(rules, self.placeholder)
        self._read: dict[str, list[tuple[int, int]]] = {}
        self._words, self._resource_texts = _Harmless(_LEAF), _Harmless(_DOCUMENT)

    @property
    def counts(self) -> dict[str, int]:
        """How many values were replaced, by type; the values themselves are never told."""
        with self._lock:
            return dict(self._counts)

    def placeholder(self, kind: str, value: str) -> str:
        """`<TYPE:hmac10>`; a placeholder stays what it is."""
        digest = self._digests.get(value)
        if digest is None:
            if value[:1] == "<" and PLACEHOLDER.fullmatch(value):
                return value
            if len(self._digests) >= _MOST_DIGESTS:
                self._digests.clear()
            digest = hmac.digest(self._key, value.encode("utf-8", "surrogatepass"), "sha256").hex()[:10]
            self._digests[value] = digest
        self._counts[kind] += 1
        return f"<{kind}:{digest}>"

    # ------------------------------------------------------------------ tables

    def batch(self, batch: Batch) -> Batch:
        """The batch as it may be stored. A document that cannot be read through is replaced as a whole."""
        if self.rules.idle:
            return batch
        with self._lock:
            return Batch(
                self._table(batch.spans, _SPAN_DOCUMENTS),
                self._table(batch.logs, _LOG_DOCUMENTS),
            )

    def _table(self, table: pa.Table | None, documents: Sequence[str]) -> pa.Table | None:
        """Every string of the table is looked through: `documents` and `resource` as JSON, the others as they are."""
        if table is None or not table.num_rows:
            return table
        services = table.column("service").combine_chunks().dictionary_encode()
        policies = [self.rules.policy(s) for s in services.dictionary.to_pylist()]
        nameless = self.rules.policy(None)
        if nameless == "keep" and all(p == "keep" for p in policies):
            return table

        def rows(wanted: Policy) -> pa.Array:
            """Which rows have this policy."""
            flags = pa.array([p == wanted for p in policies], pa.bool_())
            return pc.fill_null(flags.take(services.indices), nameless == wanted)

        active, dropping = pc.invert(rows("keep")), rows("drop-content")
        dropped = pc.any(dropping).as_py()
        table = self._replace(table, "resource", self._resources(table.column("resource"), active))
        columns = {name: table.column(name).combine_chunks() for name in documents}
        columns = {name: column for name, column in columns.items() if column.null_count < len(column)}
        if dropped:
            columns = {n: _at(column, dropping, partial(self._dropped, n)) for n, column in columns.items()}
        hits = None
        if (
            columns and self.rules.find_names is None
        ):  # one look at all of them: to build the pattern costs more than to use it
            hits = pc.fill_null(
                pc.match_substring_regex(pa.concat_arrays(list(columns.values())), _DOCUMENT), False
            )
        for place, (name, column) in enumerate(columns.items()):
            rows_hit = (
                active if hits is None else pc.and_(active, hits.slice(place * len(column), len(column)))
            )
            table = self._replace(table, name, _at(column, rows_hit, self._clean))
        if dropped and "status_message" in table.column_names:
            column = table.column("status_message").combine_chunks()
            column = _at(column, dropping, lambda found: [self._dropper.message(t) for t in found])
            table = self._replace(table, "status_message", column)
        table = self._plain(table, {"resource", *documents, *_IDS}, active)
        if self.rules.find_names is not None and "status_message" in table.column_names:
            column = table.column("status_message").combine_chunks()
            column = _at(column, active, lambda found: [self._nameless(t) for t in found])
            table = self._replace(table, "status_message", column)
        return table

    def _plain(self, table: pa.Table, others: set[str], active: pa.Array) -> pa.Table:
        """The columns that are no documents. Most hold a few words many times: each is looked at once, all together."""
        coded = {
            field.name: table.column(field.name).combine_chunks().dictionary_encode()
            for field in table.schema
            if field.type == pa.string() and field.name not in others
        }
        words = {name: column.dictionary.to_pylist() for name, column in coded.items()}
        suspects = self._words.suspects(set().union(*words.values()))
        for name, column in coded.items():
            before = words[name]
            if suspects.isdisjoint(before):
                continue
            after = self._texts(before)
            if after != before:
                clean = pa.array(after, pa.string()).take(column.indices)
                table = self._replace(
                    table, name, pc.if_else(active, clean, table.column(name).combine_chunks())
                )
        return table

    @staticmethod
    def _replace(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
        return table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)

    def _resources(self, column: pa.ChunkedArray, active: pa.Array) -> pa.Array:
        """One resource text stands on all spans of a request: it is read once."""
        coded = column.combine_chunks().dictionary_encode()
        words = coded.dictionary
        suspects = self._resource_texts.suspects(set(words.to_pylist()))
        if not suspects:
            return column.combine_chunks()
        hits = pc.is_in(words, pa.array(suspects, pa.string()))
        clean = _at(words, hits, self._clean).take(coded.indices)
        return pc.if_else(active, clean, column.combine_chunks())

    def _dropped(self, column: str, texts: list[str]) -> list[str | None]:
        out: list[str | None] = []
        for text in texts:
            with self._whole(out, text):
                out.append(_dumps(self._dropper.document(column, orjson.loads(text))))
        return out

    @contextmanager
    def _whole(self, out: list[str | None], text: str) -> Iterator[None]:
        """Whatever goes wrong with one document costs this document: it must not be stored as it came."""
        try:
            yield
        except (ValueError, RecursionError, TypeError) as e:
            log.error(
                "a document of %d characters cannot be redacted (%s): dropped", len(text), type(e).__name__
            )
            self._counts["UNREADABLE"] += 1
            out.append('{"agent_slo.redaction":"failed"}' if text.startswith("{") else None)

    # ------------------------------------------------------------------ documents

    def _clean(self, texts: list[str]) -> list[str | None]:
        """JSON texts without secrets, in the same order. Most hold addresses and nothing else."""
        if self.rules.find_names is not None:
            return self._documents(texts)
        out: list[str | None] = list(texts)
        more = _where(pc.match_substring_regex(pa.array(texts, pa.string()), _MORE_THAN_ADDRESSES))
        for place, clean in zip(more, self._documents([texts[i] for i in more]), strict=True):
            out[place] = clean
        for place in set(range(len(texts))).difference(more):
            out[place] = replace_addresses(texts[place], self.placeholder)
        return out

    def _documents(self, texts: list[str]) -> list[str | None]:
        """JSON texts without secrets, in the same order."""
        leaves = _Leaves()
        roots: list[list[Any] | None] = []
        failed: list[str | None] = []
        exact = pc.match_substring_regex(pa.array(texts, pa.string()), _LONG_NUMBER).to_pylist()
        for text, leaves.exact in zip(texts, exact, strict=True):
            before = len(failed)
            with self._whole(failed, text):
                root = [orjson.loads(text)]
                self._walk(root, leaves, -1, 0, 0)
                roots.append(root)
            if len(failed) > before:
                roots.append(None)
        self._settle(leaves)
        out: list[str | None] = []
        failures = iter(failed)
        for text, found in zip(texts, roots, strict=True):
            if found is None:
                out.append(next(failures))
                continue
            with self._whole(out, text):
                out.append(_dumps(found[0]))
        return out

    def _walk(
        self,
        node: dict[str, Any] | list[Any],
        leaves: _Leaves,
        nest: int,
        depth: int,
        layers: int,
        names: bool = True,
    ) -> None:
        """Collect the strings of a document, those inside JSON texts too, and replace what a key gives away.

        `nest`: which JSON text within the document this is, -1 the document itself. `layers`: how many JSON texts
        lie around it. `names`: whether what stands here may hold names of persons.
        """
        if depth > _DEEPEST:
            raise RecursionError
        mapping = isinstance(node, dict)
        if isinstance(node, dict):
            leaves.name(node, nest)
            if len(node) == 1 and (text := _text_of_bytes(node.get("base64"))) is not None:
                sent: list[Any] = [text]
                number = leaves.open(node, "base64", sent, nest, None)
                self._walk(sent, leaves, number, depth + 1, layers, names)
                return
        secret_next = _NOTHING if mapping else _words_after_flags(node)
        paired = self._pair(node)
        key: Any
        for key, value in _entries(node):
            kind, about = _PLAIN, names
            if mapping:
                about = names and (self.rules.find_names is None or self.rules.may_hold_names(key))
                known = self._kinds.get(key)
                kind = self._classify(key) if known is None else known
                if paired and key in _VALUES_OF_PAIRS:
                    kind = paired
            elif paired and key == 1:
                kind = paired
            if key in secret_next:
                node[key] = self.placeholder("SECRET", str(value))
                leaves.touch(nest)
            elif isinstance(value, str):
                if kind and (replaced := self._by_key(kind, value)) is not None:
                    node[key] = replaced
                    leaves.touch(nest)
                elif len(value) >= _SHORTEST:
                    inner = _inner(value, leaves.exact) if layers < _NESTED else None
                    if inner is None:
                        leaves.add(node, key, value, nest, about)
                    else:
                        held = [inner]
                        number = leaves.open(node, key, held, nest, value)
                        self._walk(held, leaves, number, depth + 1, layers + 1, about)
            elif isinstance(value, (dict, list)):
                if kind in (_SECRET, _PLURAL, _FOLDER):
                    self._wipe(value, leaves, nest, depth)
                elif kind and isinstance(value, list) and all(isinstance(item, str) for item in value):
                    node[key] = [self._by_key(kind, item) or item for item in value]
                    leaves.touch(nest)
                else:
                    if kind == _WEAK and isinstance(value, dict) and not key.lower().endswith("token"):
                        self._held(value, leaves, nest)
                    self._walk(value, leaves, nest, depth + 1, layers, about)
            elif isinstance(value, int) and not isinstance(value, bool):
                replaced = self._number(kind, value, key if mapping else "")
                if replaced is not None:
                    node[key] = replaced
                    leaves.touch(nest)

    def _classify(self, key: str) -> int:
        """What a key's name says about its value; remembered."""
        kind = _PLAIN
        if key not in self.rules.mapped and not key.startswith("agent_slo."):
            if named.is_secret_key(key):
                kind = _WEAK if named.is_weak_key(key) else _SECRET
                if named.is_plural_key(key):
                    kind = _PLURAL
                elif named.is_folder_key(key):
                    kind = _FOLDER
            elif named.is_token_key(key):
                kind = _VARIABLE if named.is_issued_key(key) else _TOKEN
            elif named.is_phone_key(key):
                kind = _PHONE
        if len(self._kinds) >= _MOST_KEYS:
            self._kinds.clear()
        self._kinds[key] = kind
        return kind

    def _pair(self, node: dict[str, Any] | list[Any]) -> int:
        """What the name in `{"name": ..., "value": ...}` or `["name", "value"]` says about the value beside it."""
        if isinstance(node, list):
            if len(node) != 2 or not isinstance(node[0], str) or not isinstance(node[1], str):
                return _PLAIN
            kind = self._classify(node[0])
            # names stand in lists beside other names: `["password", "user_id"]`
            return kind if kind and detectors.is_mixed(node[1]) else _PLAIN
        if _VALUES_OF_PAIRS.isdisjoint(node):
            return _PLAIN
        name = next((node[n] for n in _NAMES_OF_PAIRS if isinstance(node.get(n), str)), None)
        return self._classify(name) if name else _PLAIN

    def _by_key(self, kind: int, value: str) -> str | None:
        if not value:
            return None
        if kind == _PHONE:
            return self.placeholder("PHONE", value) if named.is_phone_value(value) else None
        if kind == _WEAK and not named.is_secret_value(value):
            return None
        if kind in (_TOKEN, _VARIABLE) and not detectors.is_token(value, digests=kind == _VARIABLE):
            return None
        if value.lower() in _BOOLEANS or (kind == _FOLDER and named.is_folder(value)):
            return None
        return self.placeholder("SECRET", value)

    def _number(self, kind: int, value: int, key: str) -> str | None:
        """What stands in place of a number under this key; None: itself. What is mapped counts something."""
        text = str(value)
        if kind in (_SECRET, _FOLDER):  # not _WEAK: `time_to_first_token` is a time
            return self.placeholder("SECRET", text)
        if kind == _PHONE:
            return self.placeholder("PHONE", text) if named.is_phone_value(text) else None
        if value < _LEAST_CARD or not detectors.is_card(text):
            return None
        return None if key in self.rules.mapped or named.is_count_key(key) else self.placeholder("CARD", text)

    def _held(self, node: dict[str, Any], leaves: _Leaves, nest: int) -> None:
        """The value in `"secret": {"value": ...}`; what models read is also told so, as `"token": {"value": ...}`."""
        for key in _VALUES_OF_PAIRS.intersection(node):
            value = node[key]
            if isinstance(value, str) and (replaced := self._by_key(_WEAK, value)) is not None:
                node[key] = replaced
                leaves.touch(nest)

    def _wipe(self, node: dict[str, Any] | list[Any], leaves: _Leaves, nest: int, depth: int) -> None:
        """Everything under a key whose name says that it is secret."""
        if depth > _DEEPEST:
            raise RecursionError
        if isinstance(node, dict):
            leaves.name(node, nest)
        key: Any
        for key, value in _entries(node):
            if isinstance(value, (dict, list)):
                self._wipe(value, leaves, nest, depth + 1)
            elif value not in (None, "") and not isinstance(value, bool):
                node[key] = self.placeholder("SECRET", str(value))
                leaves.touch(nest)

    def _settle(self, leaves: _Leaves) -> None:
        """Replace what the collected strings hold, then write the JSON texts around them anew."""
        for place, clean in enumerate(self._texts(leaves.texts)):
            if self.rules.find_names is not None and leaves.may_hold_names[place]:
                clean = self._nameless(clean)
            if clean is not leaves.texts[place]:
                leaves.put(place, clean)
        keys = [key for key in leaves.keys if len(key) >= _SHORTEST]
        leaves.close({old: new for old, new in zip(keys, self._texts(keys), strict=True) if old != new})

    # ------------------------------------------------------------------ texts

    def _texts(self, texts: list[str]) -> list[str]:
        """Texts without secrets; one that holds none is the same object."""
        if not texts:
            return texts
        out = list(texts)
        hit = _where(pc.match_substring_regex(pa.array(texts, pa.string()), _LEAF))
        if not hit:
            return out
        suspects = pa.array([texts[i] for i in hit], pa.string())
        for detector in DETECTORS:
            for n in _where(pc.match_substring_regex(suspects, detector.candidate)):
                out[hit[n]] = detector.sub(out[hit[n]], self.placeholder)
        for n in _where(pc.match_substring_regex(suspects, TEXT_CANDIDATE)):
            out[hit[n]] = written.secrets_named_in(out[hit[n]], self.placeholder)
        for i in hit:
            if out[i] == texts[i]:
                out[i] = texts[i]
        return out

    def _nameless(self, text: str) -> str:
        """The text without names of persons; the same object when it holds none."""
        find = self.rules.find_names
        if find is None or not _PROSE.search(text):
            return text
        found = self._read.get(text)
        if found is None:
            try:
                found = find(text)
            except Exception as e:  # noqa: BLE001 - said below, and nothing of the text is stored
                # A model may fail in any way, and its words may quote the text: neither is kept.
                log.error(
                    "a text of %d characters cannot be searched for names (%s): replaced as a whole",
                    len(text), type(e).__name__,
                )  # fmt: skip
                return self.placeholder("TEXT", text)
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            self._read[text] = found
        parts, kept = [], 0
        held = [m.span() for m in PLACEHOLDER.finditer(text)] if found and "<" in text else []
        passed = 0
        for start, end in found:
            while passed < len(held) and held[passed][1] <= start:
                passed += 1
            if passed < len(held) and held[passed][0] < end:
                continue  # what is replaced already is no name
            parts += [text[kept:start], self.placeholder("PERSON", text[start:end])]
            kept = end
        return "".join([*parts, text[kept:]]) if parts else text


class _Harmless:
    """Words in which a pattern (RE2) finds nothing. The same names, services and resources come with every request, and
    to build the pattern costs more than to use it on a few of them."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._known: set[str] = set()
        self._characters = 0

    def suspects(self, words: set[str]) -> set[str]:
        """Those of the words that the pattern matches."""
        new = list(words - self._known)
        if not new:
            return set()
        found = {new[i] for i in _where(pc.match_substring_regex(pa.array(new, pa.string()), self._pattern))}
        harmless = set(new) - found
        self._characters += sum(map(len, harmless))
        self._known |= harmless
        if len(self._known) > _MOST_WORDS or self._characters > _MOST_CHARACTERS:
            self._known, self._characters = set(), 0
        return found


class _Leaves:
    """The strings of many documents in one list, and how to put them back."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.may_hold_names: list[bool] = []
        self.exact = False
        """Whether the document at hand holds long numbers, which a faster reader would round."""
        self._places: list[tuple[Any, Any, int]] = []
        # JSON texts within documents: (where it stands, its key, what it holds, the JSON text around it, its text);
        # without a text: a text that was sent as bytes
        self._nested: list[tuple[Any, Any, list[Any], int, str | None]] = []
        self._changed: set[int] = set()
        self.keys: dict[str, None] = {}
        """Every key of every object, once."""
        self._objects: dict[int, list[dict[str, Any]]] = {}

    def add(self, node: Any, key: Any, text: str, nest: int, names: bool) -> None:
        self.texts.append(text)
        self.may_hold_names.append(names)
        self._places.append((node, key, nest))

    def open(self, node: Any, key: Any, held: list[Any], nest: int, text: str | None) -> int:
        self._nested.append((node, key, held, nest, text))
        return len(self._nested) - 1

    def touch(self, nest: int) -> None:
        """Say that something in this JSON text changed; what lies around it then changes too."""
        while nest >= 0 and nest not in self._changed:
            self._changed.add(nest)
            nest = self._nested[nest][3]

    def name(self, node: dict[str, Any], nest: int) -> None:
        """Remember the keys of an object."""
        self.keys.update(dict.fromkeys(node))
        self._objects.setdefault(nest, []).append(node)

    def put(self, place: int, text: str) -> None:
        node, key, nest = self._places[place]
        node[key] = text
        self.touch(nest)

    def close(self, renames: dict[str, str]) -> None:
        """Write the JSON texts anew in which something changed. `renames`: keys that hold a secret themselves."""
        if renames:
            for nest, nodes in self._objects.items():
                if any(not renames.keys().isdisjoint(node) for node in nodes):
                    self.touch(nest)
        # innermost first: an outer text is written from what its inner ones have become
        for number in range(len(self._nested) - 1, -1, -1):
            if number in self._changed:
                node, key, held, _, text = self._nested[number]
                self._rename_in(number, renames)
                node[key] = _bytes_of_text(held[0]) if text is None else _written_like(text, held[0])
        self._rename_in(-1, renames)

    def _rename_in(self, nest: int, renames: dict[str, str]) -> None:
        if not renames:
            return
        for node in self._objects.get(nest, ()):
            if not renames.keys().isdisjoint(node):
                moved = {renames.get(key, key): value for key, value in node.items()}
                node.clear()
                node.update(moved)


_NOTHING: frozenset[int] = frozenset()


def _words_after_flags(words: Any) -> frozenset[int]:
    """Which words of a command's arguments are secrets because of the word before them: `["--password", "X"]`."""
    found = {
        place + 1
        for place, word in enumerate(words[:-1])
        if isinstance(word, str)
        and word[:1] == "-"
        and isinstance(words[place + 1], (str, int))
        and not isinstance(words[place + 1], bool)
        and (
            written.is_secret_flag(word)
            or (word in ("-u", "--user") and "curl" in words[:place] and ":" in str(words[place + 1]))
        )
        and words[place + 1] != ""
    }
    return frozenset(found) if found else _NOTHING


def _text_of_bytes(value: Any) -> str | None:
    """The text that was sent as bytes; None when it is none."""
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(value, validate=True).decode()
    except ValueError:  # no base64, or no UTF-8
        return None


def _bytes_of_text(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


def _entries(node: Any) -> Iterable[tuple[Any, Any]]:
    return list(node.items()) if isinstance(node, dict) else enumerate(node)


def _inner(text: str, exact: bool) -> dict[str, Any] | list[Any] | None:
    """What a JSON text within a document holds, None when it is not one."""
    if text[0] not in "{[ \n\t":
        return None
    try:
        value = json.loads(text) if exact else orjson.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


def _written_like(text: str, value: Any) -> str:
    """A JSON text as its sender wrote it: with or without spaces after the separators."""
    separators = (",", ":") if '":"' in text or '":{' in text or '":[' in text else (", ", ": ")
    return json.dumps(value, ensure_ascii=False, separators=separators)


def _dumps(value: Any) -> str:
    return orjson.dumps(value).decode()


def _where(mask: pa.Array | pa.ChunkedArray) -> list[int]:
    found: list[int] = pc.indices_nonzero(mask).to_pylist()
    return found


def _at(column: pa.Array, mask: pa.Array, change: Callable[[list[str]], Sequence[str | None]]) -> pa.Array:
    """The column with the masked values changed."""
    mask = pc.and_(mask, pc.is_valid(column))
    if not pc.any(mask).as_py():
        return column
    found = column.filter(mask).to_pylist()
    return pc.replace_with_mask(column, mask, pa.array(change(found), pa.string()))
