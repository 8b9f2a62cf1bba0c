"""What of a case is certain, what was inferred, and what only a person can say."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Notes:
    """The `derivation` of a case. Each line once, in the order in which it was noticed."""

    certain: dict[str, None] = field(default_factory=dict)
    inferred: dict[str, None] = field(default_factory=dict)
    needs_human: dict[str, None] = field(default_factory=dict)

    def sure(self, line: str) -> None:
        self.certain[line] = None

    def infer(self, line: str) -> None:
        self.inferred[line] = None

    def ask(self, line: str) -> None:
        self.needs_human[line] = None

    def as_json(self) -> dict[str, list[str]]:
        return {
            "certain": list(self.certain),
            "inferred": list(self.inferred),
            "needs_human": list(self.needs_human),
        }
