"""The files of cases, and how objects of both sides are compared."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Case = dict[str, Any]

_FOLDER = Path(__file__).with_name("cases")


def read(name: str) -> Iterator[tuple[int, Case]]:
    """Yields the cases of a file, each with its number: its `id`, or else its line from 0."""
    with gzip.open(_FOLDER / f"{name}.jsonl.gz", "rt") as lines:
        for number, line in enumerate(lines):
            case = json.loads(line)
            yield case.get("id", number), case


def without_empty(value: Any) -> Any:
    """Returns a JSON value without fields that are null or empty, which mean the same."""
    if isinstance(value, dict):
        cleaned = {name: without_empty(part) for name, part in value.items()}
        return {name: part for name, part in cleaned.items() if part not in (None, {}, [], "")}
    return [without_empty(part) for part in value] if isinstance(value, list) else value


def compare(want: Any, got: Any, path: str = "") -> Iterator[str]:
    """Yields where two JSON values differ, and both values there."""
    if isinstance(want, dict) and isinstance(got, dict):
        for name in sorted(want.keys() | got.keys()):
            yield from compare(want.get(name), got.get(name), f"{path}.{name}")
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for number, (wanted, gotten) in enumerate(zip(want, got, strict=True)):
            yield from compare(wanted, gotten, f"{path}[{number}]")
    elif want != got:
        yield f"{path.lstrip('.')} is {json.dumps(got)[:120]}, wanted {json.dumps(want)[:120]}"
