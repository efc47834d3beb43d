"""Objects of custom kinds: metadata as everywhere, everything else as plain JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from kcm.api.meta_v1 import KubeObject

if TYPE_CHECKING:
    from kcm.api.custom.version import CustomVersion


class CustomObject(KubeObject):
    """Base of the models of custom kinds; `kinds` derives one per served version."""

    kubernetes_custom: ClassVar[bool] = True
    custom: ClassVar[CustomVersion]
    spec: Any = None
    status: Any = None

    @property
    def content(self) -> dict[str, Any]:
        """What the object has besides apiVersion, kind and metadata. Not to be changed."""
        named = {"spec": self.spec, "status": self.status}
        found = {name: value for name, value in named.items() if value is not None}
        return found | (self.model_extra or {})

    def with_content(self, content: dict[str, Any]) -> Self:
        """A copy with other content; `self` if each part of it is the same."""
        present = self.content
        if present.keys() == content.keys() and all(content[n] is present[n] for n in content):
            return self
        copy = self.__copy__()
        rest = dict(content)
        copy.__dict__.update({"spec": rest.pop("spec", None), "status": rest.pop("status", None)})
        object.__setattr__(copy, "__pydantic_extra__", rest)
        return copy

    def with_status(self, status: Any) -> Self:
        """A copy with another status; None: without."""
        return self.replace(status=status)
