"""Names of persons in texts, found by a language model: the extra `pii` (Microsoft Presidio over spaCy).

Nothing here is imported unless names are asked for. Nothing is fetched either: Presidio would download a missing model
by itself, a collector that holds other people's data must not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from collector.settings import CollectorError

log = logging.getLogger("agent_slo.redaction")

Found = list[tuple[int, int]]
"""Where names stand in a text: (start, end), in order, not overlapping."""
FindNames = Callable[[str], Found]


@dataclass(frozen=True)
class NameRules:
    """Which model looks for names."""

    language: str = "en"
    model: str = "en_core_web_sm"
    """A spaCy pipeline with named entities for this language, installed as a package."""
    least_score: float = 0.6
    """Presidio's score from which a name counts. spaCy's names have 0.85."""


def name_finder(rules: NameRules) -> FindNames:
    """Load Presidio and the model; seconds, and some hundred MB of memory.

    Raises CollectorError when one of them is not installed, with the command that installs it.
    """
    try:
        presidio: Any = import_module("presidio_analyzer")
        engines: Any = import_module("presidio_analyzer.nlp_engine")
        recognizers: Any = import_module("presidio_analyzer.predefined_recognizers")
        spacy: Any = import_module("spacy")
    except ImportError as e:
        raise CollectorError(
            f"collector.redaction_names: {e.name} is not installed; `pip install 'agent-slo[pii]'` installs it"
        ) from e
    if not spacy.util.is_package(rules.model):
        raise CollectorError(
            f"collector.redaction_names: the spaCy model {rules.model} is not installed; "
            f"`python -m spacy download {rules.model}` installs it, or name another with redaction_names.model"
        )
    models = [{"lang_code": rules.language, "model_name": rules.model}]
    provider = engines.NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": models})
    people = recognizers.SpacyRecognizer(supported_language=rules.language, supported_entities=["PERSON"])
    analyzer = presidio.AnalyzerEngine(
        registry=presidio.RecognizerRegistry([people], supported_languages=[rules.language]),
        nlp_engine=provider.create_engine(),
        supported_languages=[rules.language],
    )
    return analyzed(analyzer, rules)


def analyzed(analyzer: Any, rules: NameRules) -> FindNames:
    """The finder over a `presidio_analyzer.AnalyzerEngine`."""

    def find(text: str) -> Found:
        results: Sequence[Any] = analyzer.analyze(
            text, language=rules.language, entities=["PERSON"], score_threshold=rules.least_score
        )
        found: Found = []
        for start, end in sorted((int(r.start), int(r.end)) for r in results):
            if not found or start >= found[-1][1]:
                found.append((start, end))
            else:
                found[-1] = (found[-1][0], max(end, found[-1][1]))
        return found

    return find
