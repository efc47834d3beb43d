"""`Column`, and the columns that most kinds have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kcm.api.core_v1 import Container
from kcm.apimachinery import labels
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector
from kcm.kinds.printing.durations import age

NONE = "<none>"

Text = Callable[[Any, datetime], str]


@dataclass(frozen=True)
class Column:
    """A column of a table. `title` is its name in upstream's tables, which kubectl prints in upper
    case. A `wide` one is printed with `-o wide` only.

    `type` is the declared type. With `number`, cells are numbers even if the declared type is a
    string, as for some of upstream's columns.
    """

    title: str
    text: Text
    wide: bool = False
    type: str = "string"  # or integer, boolean, date
    number: bool = False

    def cell(self, obj: Any, now: datetime) -> Any:
        """Returns the value of the column for an object."""
        text = self.text(obj, now)
        if self.type == "boolean":
            return text == "true"
        whole = self.number or self.type == "integer"
        return int(text) if whole and text.isdecimal() else text


def name(obj: KubeObject, _: datetime) -> str:
    return obj.name


def age_of(obj: KubeObject, now: datetime) -> str:
    """Returns the time since the object was created, such as `5m`."""
    return age(obj.metadata.creation_timestamp, now)


NAME = Column("Name", name)
AGE = Column("Age", age_of)


def containers(all_containers: list[Container], field: str) -> str:
    """Returns the value of a field of every container, joined by commas."""
    return ",".join(getattr(container, field) or "" for container in all_containers) or NONE


def selector(given: LabelSelector | None) -> str:
    """Returns a selector as text, `<none>` for an empty one."""
    return str(labels.Selector.from_label_selector(given)) or NONE
