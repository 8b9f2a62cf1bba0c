"""Settings and word lists as small temporary tables, so that SQL decides and Python only carries.

Every table is described by the comment on its first column list below; SQL files name the ones they read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Any

import duckdb

from metrics.conventions import words
from metrics.settings import DEFAULT_REFUSED, Detectors, MetricsSettings, TaskRule

DEFAULT_TASK = TaskRule()
_QUIET_S, _DEADLINE_S = 600.0, 3600.0


def fill(con: duckdb.DuckDBPyConnection, settings: MetricsSettings) -> None:
    """(Re)create every rule table on this connection."""
    known = words()
    _macros(con, known, settings)
    _table(con, "finish_classes", "word VARCHAR, class VARCHAR", _pairs(known["finish"]))
    verbs = [(word, effect, False) for word, effect in _pairs(known["verbs"])]
    verbs += [(word, effect, True) for word, effect in _pairs(known["weak_verbs"])]
    _table(con, "verbs", "word VARCHAR, effect VARCHAR, weak BOOLEAN", verbs)
    _table(con, "escalation_words", "word VARCHAR", _column(known["escalation_words"]))
    _table(con, "handover_words", "word VARCHAR", _column(known["handover_words"]))
    control = [(w, "verb") for w in known["control"]["verbs"]] + [
        (w, "word") for w in known["control"]["words"]
    ]
    _table(con, "control_words", "word VARCHAR, kind VARCHAR", control)
    _table(con, "inverse_verbs", "word VARCHAR", _column(known["inverse_verbs"]))
    labels = [(word, label) for label, listed in known["evaluation"].items() for word in listed]
    _table(con, "evaluation_labels", "word VARCHAR, label VARCHAR", labels)
    _table(con, "excluded_environments", "environment VARCHAR", _column(settings.exclude.environments))
    _table(
        con,
        "maintenance_windows",
        "window_start TIMESTAMP, window_end TIMESTAMP, agent_glob VARCHAR",
        [(_utc(w.start), _utc(w.end), w.agent) for w in settings.maintenance],
    )
    _table(con, *_detector_limits(settings.detectors))
    _table(
        con,
        "approval_rules",
        "tool_glob VARCHAR, argument VARCHAR, above DOUBLE",
        [
            (policy.tool, argument, above)
            for policy in settings.policies.approvals
            for argument, above in policy.above.items() or [(None, None)]
        ],
    )
    _table(
        con,
        "escalation_rules",
        "position INTEGER, type_glob VARCHAR, agent_glob VARCHAR, tool_glob VARCHAR, argument VARCHAR, above DOUBLE, "
        "needed BOOLEAN",
        list(_escalation_rows(settings)),
    )
    _table(
        con,
        "tool_rules",
        "position INTEGER, tool_glob VARCHAR, effect VARCHAR, key_fields VARCHAR[], "
        "compensated_by VARCHAR[], window_s DOUBLE, "
        "key_ttl_s DOUBLE, timeout_s DOUBLE, on_failure VARCHAR, max_attempts INTEGER",
        [
            (
                position,
                glob,
                rule.effect,
                rule.key_fields,
                rule.compensated_by,
                rule.window.total_seconds(),
                rule.key_ttl and rule.key_ttl.total_seconds(),
                rule.timeout and rule.timeout.total_seconds(),
                rule.on_failure,
                rule.retry.max_attempts,
            )
            for position, (glob, rule) in enumerate(settings.tools.items())
        ],
    )
    _table(
        con,
        "task_rules",
        "position INTEGER, task_type VARCHAR, type_match VARCHAR, agent_glob VARCHAR, service_glob VARCHAR, "
        "quiet_s DOUBLE, "
        "deadline_s DOUBLE, human_deadline_s DOUBLE, gate_is_intervention BOOLEAN",
        list(_task_rows(settings)),
    )


def _macros(con: duckdb.DuckDBPyConnection, known: dict[str, Any], settings: MetricsSettings) -> None:
    """Word lists as macros: a constant pattern is compiled once a query, one in a table once a row."""
    unknown = known["unknown_result"]
    outcomes = " ".join(
        f"WHEN {_says('words', [o['pattern']])} THEN '{o['outcome']}'" for o in known["outcomes"]
    )
    retry = " ".join(
        f"WHEN {_says('error_class' if r['of_class'] else 'words', [r['pattern']])} THEN '{r['class']}'"
        for r in known["retry"]
    )
    # those that others stand on come first
    con.execute(
        # what a text quotes is not what it says
        f"CREATE OR REPLACE TEMP MACRO unquoted(said) AS regexp_replace(said, '{_QUOTED}', ' ', 'g')"
    )
    con.execute(
        f"CREATE OR REPLACE TEMP MACRO bare_tool(tool) AS regexp_replace(tool, '{known['tool_prefix']}', '')"
    )
    for signature, expression in (
        # the text of an id or a key that is nobody's own
        (
            "is_placeholder(text)",
            f"length(trim(text)) <= 1 OR list_contains({_sql_list(known['placeholders'])}, lower(trim(text)))",
        ),
        ("names_interrupt(error)", _says("error", known["pauses"]["errors"])),
        ("says_pause(said)", _says("said", known["pauses"]["results"])),
        ("says_denied(said)", _says("said", known["denials"])),
        # an object that names what was made tells of that, whatever else stands in it
        (
            "is_denial(result)",
            "IF(starts_with(ltrim(result), '{'), "
            f"says_denied(left(result, 300)) AND NOT regexp_matches(left(result, 2000), '{_NAMED}'), "
            "says_denied(left(unquoted(result), 300)))",
        ),
        ("says_failed(said)", _says("said", known["admissions"])),
        ("judges_manner(name)", _says("name", known["evaluation_of_manner"])),
        ("says_nothing(said)", _says("left(said, 300)", known["no_answers"])),
        (
            "gives_up(said)",
            f"length(said) <= 300 AND {_says('trim(said)', known['gave_up'])} "
            # `Sorry, but I could not` is no answer that comes after all
            f"AND NOT {_says(_WITHOUT_SORRY, [known['but']])}",
        ),
        ("asks_to_confirm(said)", _says("right(rtrim(said), 300)", known["pauses"]["questions"])),
        (
            "asks_a_person(tool)",
            _says(
                "regexp_replace(tool, '([a-z0-9])([A-Z])', '\\1_\\2', 'g')",
                [rf"(^|[^a-z])({'|'.join(known['question_words'])})([^a-z]|$)"],
            ),
        ),
        # the word of a person that answers such a question
        ("begins_with_yes(said)", _begins(known["decisions"]["approved"])),
        ("begins_with_no(said)", _begins(known["decisions"]["rejected"])),
        ("urges_on(said)", _says("said", [rf"(^|\W)({'|'.join(known['urging'])})(\W|$)"])),
        # short words that ask nothing back, whatever the language
        (
            "replies(said)",
            "NOT contains(said, '?') AND (length(trim(said)) <= 25 OR length(said) <= 120 AND "
            f"{_says('said', [_beginning([*known['decisions']['approved'], *known['decisions']['rejected']])])})",
        ),
        ("says_step_limit(said)", _says("said", known["step_limits"])),
        (
            "says_refused(said)",
            _says("said", [p for p in settings.results.refused if p != DEFAULT_REFUSED], options=""),
        ),
        (
            "says_error(said)",
            _says("said", [p for p in settings.results.refused if p == DEFAULT_REFUSED], options=""),
        ),
        ("says_not_done(said)", _says("said", known["not_done"]["refused"])),
        ("says_done(said)", _says("said", [known["done"]])),
        ("says_perhaps_done(said)", _says("said", known["not_done"]["unknown"])),
        (
            "says_unknown(said)",
            f"length(said) <= {int(unknown['max_length'])} AND {_says('said', [unknown['pattern']])}",
        ),
        (
            "counts_only(id, tool)",
            _says("replace(id, coalesce(tool, ''), '')", known["counted_ids"], options=""),
        ),
        ("outcome_of(words)", f"CASE {outcomes} ELSE 'unknown' END"),
        # an answer that begins like an error: refused, unless its words tell of one that leaves the effect open
        ("outcome_of_error_text(words)", f"CASE {outcomes} ELSE 'refused' END"),
        ("retry_class(error_class, words)", f"CASE {retry} ELSE 'other' END"),
    ):
        con.execute(
            f"CREATE OR REPLACE TEMP MACRO {signature} AS coalesce({expression}, false)"
            if "CASE" not in expression
            else f"CREATE OR REPLACE TEMP MACRO {signature} AS {expression}"
        )
    paths = _sql_list([f'$."{name}"' for name in known["key_arguments"]])
    con.execute(
        # the key, where it is sent as an argument of the tool
        "CREATE OR REPLACE TEMP MACRO key_argument(arguments) AS "
        "CASE WHEN contains(lower(arguments), 'idempoten') THEN "
        f"list_filter(json_extract_string(arguments, {paths}), lambda key: NOT is_placeholder(key))[1] END"
    )
    # words that say what a call was about: not amounts, not currencies
    about = (
        "list_filter(failed, lambda w: regexp_matches(w, '[A-Za-z]') AND NOT regexp_matches(w, '^[A-Z]{3}$'))"
    )
    con.execute(
        "CREATE OR REPLACE TEMP MACRO is_about(failed, later) AS "
        f"len({about}) = 0 OR list_has_any({about}, later)"
    )


def _sql_list(texts: Sequence[str]) -> str:
    quoted = ", ".join("'" + text.replace("'", "''") + "'" for text in texts)
    return f"[{quoted}]"


def _begins(words: Sequence[str]) -> str:
    """SQL: the text is short and begins with one of the words."""
    return f"length(said) <= 120 AND {_says('said', [_beginning(words)])}"


def _beginning(words: Sequence[str]) -> str:
    return rf"^\W*({'|'.join(words)})(\W|$)"


_WITHOUT_SORRY = r"regexp_replace(lower(said), '^\W*[a-z'' ]{0,30}(sorry|afraid|apolog[a-z]*)[,. ]*but ', '')"
# A quotation of some length, as SQL spells it; an apostrophe within a word begins none.
_QUOTED = r"""(^|\W)(''[^'']{8,}''|"[^"]{8,}")"""
# An entity of the object's own: `"id": "R-1"`, `"refundId": 7`.
_NAMED = r"""(^|[{,\s])"(id|[A-Za-z_]*_id|[a-z]+Id|ref|reference|number)"\s*:\s*("[^"]|[0-9])"""


def _says(what: str, patterns: Sequence[str], options: str = "i") -> str:
    """SQL: the text matches one of the regular expressions. No pattern matches nothing."""
    if not patterns:
        return "false"
    joined = "|".join(f"(?:{pattern})" for pattern in patterns).replace("'", "''")
    return (
        f"regexp_matches({what}, '{joined}', '{options}')"
        if options
        else f"regexp_matches({what}, '{joined}')"
    )


def _detector_limits(limits: Detectors) -> tuple[str, str, list[tuple[Any, ...]]]:
    """The one row of thresholds that every detector reads."""
    columns: dict[str, tuple[str, Any]] = {
        "max_attempts": ("INTEGER", limits.retry.max_attempts),
        "backoff_factor": ("DOUBLE", limits.retry.backoff_factor),
        "synchronised_tasks": ("INTEGER", limits.retry.synchronised_tasks),
        "equal_calls": ("INTEGER", limits.loop.equal_calls),
        "rounds": ("INTEGER", limits.loop.rounds),
        "longest_period": ("INTEGER", limits.loop.longest_period),
        "settle_s": ("DOUBLE", limits.settle_within.total_seconds()),
        "failures_alike": ("INTEGER", limits.dead_letter_after),
        "hung_multiple": ("DOUBLE", limits.hung_multiple),
        "hung_floor_s": ("DOUBLE", limits.hung_floor.total_seconds()),
        "runaway_multiple": ("DOUBLE", limits.runaway_multiple),
        "baseline_days": ("INTEGER", limits.baseline.days),
        "baseline_calls": ("INTEGER", limits.baseline.calls),
        "baseline_tasks": ("INTEGER", limits.baseline.tasks),
    }
    kinds = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
    return "detector_limits", kinds, [tuple(value for _, value in columns.values())]


def _task_rows(settings: MetricsSettings) -> Iterable[tuple[Any, ...]]:
    default = settings.tasks.get("default", DEFAULT_TASK)

    def row(position: int, name: str | None, rule: TaskRule) -> tuple[Any, ...]:
        def seconds(field: str, otherwise: float | None) -> float | None:
            value = getattr(rule, field) or getattr(default, field)
            return value.total_seconds() if value else otherwise

        gate = (
            rule.gate_is_intervention
            if rule.gate_is_intervention is not None
            else default.gate_is_intervention
        )
        match = rule.match
        return (
            position,
            name,
            None if name is None or match else name,
            match and match.agent,
            match and match.service,
            seconds("quiet", _QUIET_S),
            seconds("deadline", _DEADLINE_S),
            seconds("human_deadline", None),
            True if gate is None else gate,
        )

    named = [(name, rule) for name, rule in settings.tasks.items() if name != "default"]
    for position, (name, rule) in enumerate(named):
        yield row(position, name, rule)
    yield row(len(named), None, default)


def _escalation_rows(settings: MetricsSettings) -> Iterable[tuple[Any, ...]]:
    """The rules of which tasks need a human, the first that fits decides; what needs an approval needs one too."""
    policies = settings.policies
    for position, rule in enumerate(policies.escalations):
        scope = (position, rule.task_type or "*", rule.agent or "*", rule.tool)
        for argument, above in rule.above.items() or [(None, None)]:
            yield (*scope, argument, above, rule.needed)
    for position, demand in enumerate(policies.approvals, len(policies.escalations)):
        for argument, above in demand.above.items() or [(None, None)]:
            yield position, "*", "*", demand.tool, argument, above, True


def _pairs(listed: dict[str, Sequence[str]]) -> list[tuple[str, str]]:
    return [(word, group) for group, members in listed.items() for word in dict.fromkeys(members)]


def _column(values: Iterable[str]) -> list[tuple[str]]:
    return [(value,) for value in dict.fromkeys(values)]


def _utc(moment: Any) -> Any:
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _table(con: duckdb.DuckDBPyConnection, name: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
    con.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({columns})")
    listed = [tuple(row) for row in rows]
    if listed:
        marks = ", ".join("?" for _ in listed[0])
        con.executemany(f"INSERT INTO {name} VALUES ({marks})", listed)
