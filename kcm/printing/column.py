"""Columns, and those that most kinds have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kcm.api.core_v1 import Container
from kcm.apimachinery import labels
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector
from kcm.printing.durations import age

NONE = "<none>"

Text = Callable[[Any, datetime], str]


@dataclass(frozen=True)
class Column:
    """One column. A `wide` one shows with `-o wide` only.

    `type` is what tables declare. Programs get a cell as a number where `number` is set: some of
    upstream's columns hold numbers although they are declared as strings.
    """

    title: str
    text: Text
    wide: bool = False
    type: str = "string"  # or integer, boolean
    number: bool = False

    def cell(self, obj: Any, now: datetime) -> Any:
        """Returns the cell of a table."""
        text = self.text(obj, now)
        if self.type == "boolean":
            return text == "true"
        whole = self.number or self.type == "integer"
        return int(text) if whole and text.isdecimal() else text


def name(obj: KubeObject, _: datetime) -> str:
    return obj.name


def age_of(obj: KubeObject, now: datetime) -> str:
    """Returns how long ago the object was created."""
    return age(obj.metadata.creation_timestamp, now)


NAME = Column("NAME", name)
AGE = Column("AGE", age_of)


def containers(all_containers: list[Container], field: str) -> str:
    """Returns one field of every container."""
    return ",".join(getattr(container, field) or "" for container in all_containers) or NONE


def selector(given: LabelSelector | None) -> str:
    """Returns a selector in one line."""
    return str(labels.Selector.from_label_selector(given)) or NONE
