"""Why an objective file was refused."""

from __future__ import annotations


class OpenSLOError(ValueError):
    """One problem in one object of one file, with what to do about it.

    `more` holds the other problems found in the same run; `str()` is one line about the first.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str = "",
        object: str = "",
        path: str = "",
        remedy: str = "",
        line: int | None = None,
        is_warning: bool = False,
    ) -> None:
        self.problem = problem
        self.file = file
        self.object = object
        self.path = path
        self.remedy = remedy
        self.line = line
        self.is_warning = is_warning
        self.more: tuple[OpenSLOError, ...] = ()
        super().__init__(problem)

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.file and self.line else self.file
        place = " ".join(p for p in (self.object, self.path) if p)
        text = ": ".join(p for p in (where, place, self.problem) if p)
        if self.remedy:
            text += f"; {self.remedy}"
        return text


def first_of(problems: list[OpenSLOError]) -> OpenSLOError:
    """The first problem, carrying the others."""
    problem, *others = problems
    problem.more = tuple(others)
    return problem
