"""The `where` language of objectives: comparisons of known columns, AND, OR, NOT, IN, IS NULL. Nothing else.

Text becomes an AST here and parameterised SQL only from the AST, so a file can never bring SQL of its own:
column names come from a whitelist, every literal is a bound parameter.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["text", "number", "boolean"]
Literal_ = str | int | float | bool

EVENT_COLUMNS: Mapping[str, ColumnType] = {
    "agent": "text",
    "task_type": "text",
    "service": "text",
    "environment": "text",
    "app_version": "text",
}
"""Columns of `sli_events` a built-in SLI can be narrowed by."""

TASK_COLUMNS: Mapping[str, ColumnType] = {
    **EVENT_COLUMNS,
    "outcome": "text",
    "outcome_evidence": "text",
    "claimed": "text",
    "excluded_reason": "text",
    "interventions": "number",
    "autonomous": "boolean",
    "eligible": "boolean",
    "cost_usd": "number",
    "cost_complete": "boolean",
    "wall_s": "number",
    "active_s": "number",
    "human_wait_s": "number",
    "input_tokens": "number",
    "output_tokens": "number",
    "model_calls": "number",
    "tool_calls": "number",
    "runs": "number",
    "traces": "number",
}
"""Columns of `tasks` that `entity: task` can ask for."""

VALUE_COLUMNS = (
    "cost_usd",
    "wall_s",
    "active_s",
    "human_wait_s",
    "interventions",
    "input_tokens",
    "output_tokens",
    "model_calls",
    "tool_calls",
    "runs",
)
"""Columns of `tasks` a threshold SLI can measure."""


class PredicateError(ValueError):
    """A `where` that cannot be read: `problem` says what and where, `remedy` what is accepted."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True)
class Compare:
    column: str
    op: str
    value: Literal_


@dataclass(frozen=True)
class In:
    column: str
    values: tuple[Literal_, ...]
    negated: bool


@dataclass(frozen=True)
class IsNull:
    column: str
    negated: bool


@dataclass(frozen=True)
class Flag:
    """A boolean column standing alone: `eligible`."""

    column: str


@dataclass(frozen=True)
class Constant:
    value: bool


@dataclass(frozen=True)
class Not:
    term: Predicate


@dataclass(frozen=True)
class All:
    terms: tuple[Predicate, ...]


@dataclass(frozen=True)
class Any_:
    terms: tuple[Predicate, ...]


Predicate = Compare | In | IsNull | Flag | Constant | Not | All | Any_

TRUE = Constant(True)

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<text>'(?:[^']|'')*')
      | (?P<number>-?\d+(?:\.\d+)?(?![\w.]))
      | (?P<op><=|>=|!=|<>|=|<|>)
      | (?P<punct>[(),])
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)""",
    re.VERBOSE,
)
_KEYWORDS = {"AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE"}
_MAX_LENGTH = 4000
_MAX_DEPTH = 50
_GRAMMAR = "write comparisons like agent = 'refunds', joined by AND, OR, NOT, IN (...), IS NULL"


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


def _tokens(source: str) -> Iterator[_Token]:
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise PredicateError(
                f"unexpected {source[at]!r} at character {at + 1} of the condition", _GRAMMAR
            )
        kind = match.lastgroup or ""
        text = match[0]
        if kind == "word" and text.upper() in _KEYWORDS:
            kind, text = "keyword", text.upper()
        if kind != "space":
            yield _Token(kind, text, at + 1)
        at = match.end()
    yield _Token("end", "the end", at + 1)


class _Parser:
    def __init__(self, source: str, columns: Mapping[str, ColumnType]) -> None:
        self.tokens = list(_tokens(source))
        self.columns = columns
        self.i = 0
        self.depth = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.i]

    def accept(self, *texts: str) -> _Token | None:
        token = self.token
        if token.kind in ("keyword", "punct", "op") and token.text in texts:
            self.i += 1
            return token
        return None

    def expect(self, text: str) -> None:
        if self.accept(text) is None:
            self.fail(f"{text} expected")

    def fail(self, problem: str) -> None:
        raise PredicateError(f"{problem} at character {self.token.at}, found {self.token.text}", _GRAMMAR)

    def either(self) -> Predicate:
        terms = [self.every()]
        while self.accept("OR"):
            terms.append(self.every())
        return terms[0] if len(terms) == 1 else Any_(tuple(terms))

    def every(self) -> Predicate:
        terms = [self.single()]
        while self.accept("AND"):
            terms.append(self.single())
        return terms[0] if len(terms) == 1 else All(tuple(terms))

    def single(self) -> Predicate:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise PredicateError(f"the condition nests deeper than {_MAX_DEPTH}", "split or flatten it")
        try:
            if self.accept("NOT"):
                return Not(self.single())
            if self.accept("("):
                inner = self.either()
                self.expect(")")
                return inner
            if self.accept("TRUE"):
                return Constant(True)
            if self.accept("FALSE"):
                return Constant(False)
            return self.comparison()
        finally:
            self.depth -= 1

    def comparison(self) -> Predicate:
        token = self.token
        if token.kind != "word":
            self.fail("a column expected")
        if token.text not in self.columns:
            near = difflib.get_close_matches(token.text, self.columns, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise PredicateError(
                f"unknown column {token.text} at character {token.at}",
                f"{hint}known here: {', '.join(sorted(self.columns))}",
            )
        self.i += 1
        column, wanted = token.text, self.columns[token.text]
        if self.accept("IS"):
            negated = self.accept("NOT") is not None
            self.expect("NULL")
            return IsNull(column, negated)
        negated = self.accept("NOT") is not None
        if self.accept("IN"):
            self.expect("(")
            values = [self.literal(column, wanted)]
            while self.accept(","):
                values.append(self.literal(column, wanted))
            self.expect(")")
            return In(column, tuple(values), negated)
        if negated:
            self.fail("IN expected")
        op = self.accept("=", "!=", "<>", "<", "<=", ">", ">=")
        if op is None:
            if wanted != "boolean":
                self.fail(f"a comparison with {column} expected")
            return Flag(column)
        if op.text not in ("=", "!=", "<>") and wanted == "boolean":
            raise PredicateError(f"{column} is true or false and cannot be {op.text} something", "use =")
        return Compare(column, "!=" if op.text == "<>" else op.text, self.literal(column, wanted))

    def literal(self, column: str, wanted: ColumnType) -> Literal_:
        token = self.token
        value: Literal_ | None = None
        if token.kind == "text" and wanted == "text":
            value = token.text[1:-1].replace("''", "'")
        elif token.kind == "number" and wanted == "number":
            value = float(token.text) if "." in token.text else int(token.text)
        elif token.kind == "keyword" and token.text in ("TRUE", "FALSE") and wanted == "boolean":
            value = token.text == "TRUE"
        if value is None:
            shape = {"text": "text in single quotes", "number": "a number", "boolean": "true or false"}[
                wanted
            ]
            self.fail(f"{column} is compared with {shape}; that is expected")
            raise AssertionError  # `fail` raises; this line tells the type checker
        self.i += 1
        return value


def parse(source: str, columns: Mapping[str, ColumnType]) -> Predicate:
    """The AST of `source`, an empty text being always true. Raises PredicateError."""
    if len(source) > _MAX_LENGTH:
        raise PredicateError(f"the condition is longer than {_MAX_LENGTH} characters", "shorten it")
    if not source.strip():
        return TRUE
    parser = _Parser(source, columns)
    tree = parser.either()
    if parser.token.kind != "end":
        parser.fail("AND, OR or the end expected")
    return tree


def columns_of(tree: Predicate) -> frozenset[str]:
    """Names of the columns a condition reads."""
    match tree:
        case Constant():
            return frozenset()
        case Not(term):
            return columns_of(term)
        case All(terms) | Any_(terms):
            return frozenset().union(*(columns_of(t) for t in terms))
        case _:
            return frozenset({tree.column})


class SqlWriter:
    """Writes predicates as SQL, collecting literals as named parameters in `params`.

    `assume` replaces boolean columns by a constant: with `eligible` assumed true, a task that fails the
    condition only for being excluded can be told from one that was never meant.
    """

    def __init__(self, prefix: str, assume: Mapping[str, bool] | None = None) -> None:
        self.prefix = prefix
        self.assume = assume or {}
        self.params: dict[str, Literal_] = {}

    def _bind(self, value: Literal_) -> str:
        name = f"{self.prefix}{len(self.params)}"
        self.params[name] = value
        return f"${name}"

    def _column(self, name: str, values: tuple[Literal_, ...]) -> str:
        # An unknown outcome is no evidence for or against: comparisons with it give NULL, hence an unknown
        # verdict, unless the condition asks for the word itself.
        if name == "outcome" and "unknown" not in values:
            return "nullif(outcome, 'unknown')"
        if name == "cost_usd":
            return "(CASE WHEN cost_complete THEN cost_usd END)"
        return f'"{name}"'

    def value(self, column: str) -> str:
        """The column a threshold SLI measures; a cost that is not complete is unknown."""
        if column not in VALUE_COLUMNS:
            raise ValueError(f"{column} cannot be measured; value is one of {', '.join(VALUE_COLUMNS)}")
        return self._column(column, ())

    def write(self, tree: Predicate) -> str:
        match tree:
            case Constant(value):
                return "TRUE" if value else "FALSE"
            case Flag(column):
                return str(self.assume[column]).upper() if column in self.assume else f'"{column}"'
            case Compare(column, op, value):
                if column in self.assume and op in ("=", "!="):
                    return str((self.assume[column] == value) is (op == "=")).upper()
                return f"{self._column(column, (value,))} {op} {self._bind(value)}"
            case In(column, values, negated):
                listed = ", ".join(self._bind(v) for v in values)
                return f"{self._column(column, values)} {'NOT ' if negated else ''}IN ({listed})"
            case IsNull(column, negated):
                return f"{self._column(column, ())} IS {'NOT ' if negated else ''}NULL"
            case Not(term):
                return f"NOT ({self.write(term)})"
            case All(terms):
                return "(" + " AND ".join(self.write(t) for t in terms) + ")"
            case Any_(terms):
                return "(" + " OR ".join(self.write(t) for t in terms) + ")"
