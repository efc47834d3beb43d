"""What each field of the API types is for, as `kubectl explain` shows it.

`descriptions.txt` has a line per field under the name of its model.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

_OF_EVERY_OBJECT = {
    # Tools know an object among the schemas by how upstream's two begin.
    "apiVersion": "APIVersion defines the versioned schema of this representation of an object.",
    "kind": "Kind is a string value representing the REST resource this object represents.",
    "metadata": "Name, labels and what else every object has.",
    "spec": "What is wanted.",
    "status": "What is, as it was last seen.",
}


def of(model: str, field: str) -> str:
    """What a field of a model is for; '' where nothing is written about it."""
    return _written().get((model, field)) or _OF_EVERY_OBJECT.get(field, "")


@cache
def _written() -> dict[tuple[str, str], str]:
    text = resources.files(__package__).joinpath("descriptions.txt").read_text("utf-8")
    found: dict[tuple[str, str], str] = {}
    model = ""
    for line in text.splitlines():
        field, colon, words = line.partition(": ")
        if colon:
            found[model, field] = words
        elif line:
            model = line
    return found
