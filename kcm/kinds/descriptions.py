"""The descriptions of the API types' fields, which `kubectl explain` shows, and of tables' columns.

They are in `descriptions.txt`: the name of a struct, and below it a line `field: description` for
each of its fields. Structs of the same name in several groups share their lines. A line without a
field describes a struct that has none, such as Quantity. `TableColumn` has the columns that no
field describes.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

_OF_EVERY_OBJECT = {
    # Tools recognize the schemas of objects by how upstream's two descriptions begin.
    "apiVersion": "APIVersion defines the versioned schema of this representation of an object.",
    "kind": "Kind is a string value representing the REST resource this object represents.",
    "metadata": "Standard object's metadata, such as its name and labels.",
    "spec": "Wanted state of the object.",
    "status": "Last observed state of the object. The system sets it.",
}


def describe_field(model: str, field: str) -> str:
    """Returns the description of a struct's field, by its name in JSON. Returns "" if there is
    none.
    """
    return _load().get((model, field)) or _OF_EVERY_OBJECT.get(field, "")


def describe_column(kind: str, title: str) -> str:
    """Returns the description of a column of a kind's table: its own, or else that of the field of
    the kind that has its title. Returns "" if there is none.
    """
    field = "".join(title.replace("-", " ").split())
    field = field[:1].lower() + field[1:]
    places = [
        ("TableColumn", title),
        *((f"{kind}{part}", field) for part in ("Spec", "Status", "")),
    ]
    return next((words for place in places if (words := _load().get(place))), "")


def list_described() -> frozenset[tuple[str, str]]:
    """Returns the structs and fields that have a description of their own."""
    return frozenset(_load())


@cache
def _load() -> dict[tuple[str, str], str]:
    """Returns the descriptions of `descriptions.txt` by struct and field."""
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
