"""`rows.jsonl` as the records other tools take. Each function is pure: it returns what their client is given.

    langfuse:    for item in langfuse(rows(), "incidents"): client.create_dataset_item(**item)
    phoenix:     client.datasets.create_dataset(name="incidents", examples=phoenix(rows()))
    langsmith:   client.create_examples(dataset_id=..., examples=langsmith(rows()))
    mlflow:      mlflow.genai.datasets.create_dataset("incidents").merge_records(mlflow(rows()))
    braintrust:  Eval("incidents", data=[EvalCase(**row) for row in braintrust(rows())], ...)
    deepeval:    EvaluationDataset(goldens=[Golden(**row) for row in deepeval(rows())])

Ids are stable, so a second upload changes rows and adds none where the tool supports it.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def rows() -> list[Row]:
    """The rows of this export: id, input, expected, metadata."""
    text = (Path(__file__).resolve().parent / "rows.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def langfuse(found: list[Row], dataset: str) -> list[Row]:
    """Keyword arguments of `create_dataset_item`; ids are unique in a project, hence the prefix."""
    return [
        {
            "dataset_name": dataset,
            "id": f"{dataset}-{row['id']}",
            "input": row["input"],
            "expected_output": row["expected"],
            "metadata": row["metadata"],
            "source_trace_id": row["metadata"]["trace_id"],
        }
        for row in found
    ]


def phoenix(found: list[Row]) -> list[Row]:
    """Examples of `create_dataset`."""
    return [
        {
            "id": row["id"],
            "input": row["input"],
            "output": row["expected"],
            "metadata": row["metadata"],
            "splits": [row["metadata"]["split"]],
        }
        for row in found
    ]


def langsmith(found: list[Row]) -> list[Row]:
    """Examples; an id must be a UUID, so it is derived from ours."""
    return [
        {
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"agent-slo:{row['id']}")),
            "inputs": row["input"],
            "outputs": row["expected"],
            "metadata": row["metadata"],
            "split": row["metadata"]["split"],
        }
        for row in found
    ]


def mlflow(found: list[Row]) -> list[Row]:
    """Records of `merge_records`; a record is known by its inputs, so the id is one of them. Tags are text."""
    return [
        {
            "inputs": {"case_id": row["id"], **row["input"]},
            "expectations": row["expected"],
            "tags": {key: str(value) for key, value in row["metadata"].items()},
            "source": {"source_type": "TRACE", "source_data": {"trace_id": row["metadata"]["trace_id"]}},
        }
        for row in found
    ]


def braintrust(found: list[Row]) -> list[Row]:
    """Fields of `EvalCase`; an unknown one is refused there."""
    return [
        {
            "id": row["id"],
            "input": row["input"],
            "expected": row["expected"],
            "metadata": row["metadata"],
            "tags": [row["metadata"]["set"], row["metadata"]["split"], row["metadata"]["failure_mode"]],
        }
        for row in found
    ]


def deepeval(found: list[Row]) -> list[Row]:
    """Fields of `Golden`: the input is text, custom columns are text, the case travels in the metadata."""
    return [
        {
            "name": row["id"],
            "input": row["input"]["text"],
            "expected_output": "; ".join(row["expected"]["checks"]),
            "additional_metadata": {**row["metadata"], "case": row["input"]["case"]},
            "source_file": row["metadata"]["trace_id"],
            "custom_column_key_values": {key: str(value) for key, value in row["metadata"].items()},
        }
        for row in found
    ]
