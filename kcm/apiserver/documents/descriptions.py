"""The descriptions of the fields of the API types, as `kubectl explain` shows them.

`descriptions.txt` has a line per field under the name of its model.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

_OF_EVERY_OBJECT = {
    # Tools find ObjectMeta among the schemas by how upstream's two descriptions begin.
    "apiVersion": "APIVersion defines the versioned schema of this representation of an object.",
    "kind": "Kind is a string value representing the REST resource this object represents.",
    "metadata": "Name, labels and what else every object has.",
    "spec": "What is wanted.",
    "status": "What is, as it was last seen.",
}


def of(model: str, field: str) -> str:
    """Returns the description of a model's field, "" without one."""
    return _load().get((model, field)) or _OF_EVERY_OBJECT.get(field, "")


@cache
def _load() -> dict[tuple[str, str], str]:
    text = resources.files(__package__).joinpath("descriptions.txt").read_text("utf-8")
    descriptions: dict[tuple[str, str], str] = {}
    model = ""
    for line in text.splitlines():
        field, colon, words = line.partition(": ")
        if colon:
            descriptions[model, field] = words
        elif line:
            model = line
    return descriptions
