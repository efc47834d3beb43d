"""Custom kinds: the parsed versions of a definition, and the base class of their objects' models.

The metadata of a custom object is typed as that of every object; everything else is plain JSON.
`kcm.apiextensions.objects` prunes, defaults and validates it by the version's schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from kcm.api.apiextensions_v1 import CustomResourceColumnDefinition
from kcm.api.custom.structural_schema import StructuralSchema
from kcm.apimachinery.meta_v1 import KubeObject, Resource


@dataclass(frozen=True, eq=False)
class CustomVersion:
    """One version of a CustomResourceDefinition, with its schema parsed."""

    name: str
    schema: StructuralSchema
    columns: tuple[CustomResourceColumnDefinition, ...] = ()
    selectable: tuple[str, ...] = ()  # JSON paths of the fields that field selectors may use
    deprecation: str = ""  # the warning that each response of a deprecated version has, "" for none


@dataclass(frozen=True)
class DefinitionSource:
    """A digest of the definition from which resources were built."""

    digest: bytes
    size: int  # bytes of JSON


@dataclass(frozen=True, eq=False)
class CustomResource(Resource):
    """A custom kind in one version."""

    custom: CustomVersion = field(kw_only=True)  # the version of its CustomResourceDefinition
    source: DefinitionSource = field(kw_only=True)


class CustomObject(KubeObject):
    """The base class of the models of custom kinds. Each served version has a model of its own."""

    kubernetes_open: ClassVar[bool] = True  # its schema says what is dropped
    custom: ClassVar[CustomVersion]
    spec: Any = None
    status: Any = None

    @property
    def content(self) -> dict[str, Any]:
        """Returns the fields besides apiVersion, kind and metadata.

        Callers must not change them.
        """
        named = {"spec": self.spec, "status": self.status}
        content = {name: value for name, value in named.items() if value is not None}
        return content | (self.model_extra or {})

    def with_content(self, content: dict[str, Any]) -> Self:
        """Returns a copy with this content, or the object itself if no part of it differs."""
        present = self.content
        if present.keys() == content.keys() and all(content[n] is present[n] for n in content):
            return self
        copy = self.__copy__()
        rest = dict(content)
        copy.__dict__.update({"spec": rest.pop("spec", None), "status": rest.pop("status", None)})
        object.__setattr__(copy, "__pydantic_extra__", rest)
        return copy

    def with_status(self, status: Any) -> Self:
        """Returns a copy with this status. None removes the status."""
        return self.replace(status=status)
