"""One served version of a custom kind: what its schema makes of objects.

Guarantees: objects are never changed in place.
Source: staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/{strategy,
status_strategy,validator}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from kcm.api import codec
from kcm.api.apiextensions_v1 import CustomResourceColumnDefinition
from kcm.api.custom import defaulting, pruning, rules, validating
from kcm.api.custom.model import CustomObject
from kcm.api.custom.schema import Schema
from kcm.api.validation.report import Faults

ObjectT = TypeVar("ObjectT", bound=CustomObject)


@dataclass(frozen=True, eq=False)
class CustomVersion:
    """What a definition says of one of its versions."""

    name: str
    schema: Schema
    columns: tuple[CustomResourceColumnDefinition, ...] = ()
    selectable: tuple[str, ...] = ()  # JSON paths
    deprecation: str = ""  # a warning for everybody who uses the version

    def completed(self, obj: ObjectT, dropped: list[str] | None = None) -> ObjectT:
        """The object pruned and with its defaults; the paths that go are added to `dropped`."""
        content = pruning.root(obj.content, self.schema, dropped)
        return obj.with_content(defaulting.default(content, self.schema))

    def unknown(self, obj: CustomObject) -> list[str]:
        """The paths of fields that the schema does not name."""
        dropped: list[str] = []
        pruning.root(obj.content, self.schema, dropped)
        return dropped

    def faults(self, obj: CustomObject, old: CustomObject | None = None) -> Faults:
        """What is wrong with a completed object, and with what it was changed from."""
        if old is not None and old.content == obj.content:
            return []  # as it was, even if it should not have been
        body = codec.to_dict(obj)
        faults = validating.validate(body, self.schema.raw)
        before = codec.to_dict(old) if old is not None else None
        if before is not None and faults:
            # What was wrong before and was left alone does not stand in the way of a change.
            known = validating.validate(before, self.schema.raw)
            faults = [fault for fault in faults if fault not in known]
        faults += validating.embedded(body, self.schema)
        if before is None or not any(validating.lists(before, self.schema)):
            faults += validating.lists(body, self.schema)
        return faults + rules.check(self.schema, body, before, faults)
