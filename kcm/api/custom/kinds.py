"""Custom kinds: what a definition says of a version, and the base of the models of its objects.

The metadata of a custom object is typed like that of every object; everything else is plain JSON.
What a version's schema makes of an object is decided in `kcm.apiextensions.objects`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from kcm.api.apiextensions_v1 import CustomResourceColumnDefinition
from kcm.api.custom.structural_schema import StructuralSchema
from kcm.apimachinery.meta_v1 import KubeObject


@dataclass(frozen=True, eq=False)
class CustomVersion:
    """What a CustomResourceDefinition says of one of its versions."""

    name: str
    schema: StructuralSchema
    columns: tuple[CustomResourceColumnDefinition, ...] = ()
    selectable: tuple[str, ...] = ()  # JSON paths of fields that field selectors may name
    deprecation: str = ""  # a warning that everybody who uses the version gets


class CustomObject(KubeObject):
    """The base of the models of custom kinds. `kinds` derives a model for each served version."""

    kubernetes_custom: ClassVar[bool] = True
    custom: ClassVar[CustomVersion]
    spec: Any = None
    status: Any = None

    @property
    def content(self) -> dict[str, Any]:
        """What the object has besides apiVersion, kind and metadata. It must not be changed."""
        named = {"spec": self.spec, "status": self.status}
        content = {name: value for name, value in named.items() if value is not None}
        return content | (self.model_extra or {})

    def with_content(self, content: dict[str, Any]) -> Self:
        """Returns a copy with other content, itself if each part of it is the same."""
        present = self.content
        if present.keys() == content.keys() and all(content[n] is present[n] for n in content):
            return self
        copy = self.__copy__()
        rest = dict(content)
        copy.__dict__.update({"spec": rest.pop("spec", None), "status": rest.pop("status", None)})
        object.__setattr__(copy, "__pydantic_extra__", rest)
        return copy

    def with_status(self, status: Any) -> Self:
        """Returns a copy with another status, without one for None."""
        return self.replace(status=status)
