"""`Plugin`: what every admission plugin is, and `Write`: what it sees.

Source: {interfaces,attributes,reinvocation}.go of staging/src/k8s.io/apiserver/pkg/admission,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject


@dataclass(frozen=True)
class WriteRequest:
    """The request for a write. The API server's requests say who sends them, and how.

    kcm's own writes have no request, so that plugins that ask about the sender admit them.
    """

    dry_run: bool = False


@dataclass
class Reinvocation:
    """What a plugin asks once more, since the object changed after it was asked: the numbers of
    webhooks, or the names of policies; upstream's webhookReinvokeContext and policyReinvokeContext.
    """

    output: object = None  # the object after the plugin's first pass
    called: set[Hashable] = field(default_factory=set)  # what to ask again after a change
    again: set[Hashable] = field(default_factory=set)  # what to ask in the second pass
    changed: bool = False

    def note_change(self) -> None:
        """Notes that somebody changed the object after those in `called` were asked."""
        self.changed = True
        self.again |= self.called
        self.called = set()


T = TypeVar("T", bound=KubeObject)


class Change:
    """What a write changes. Who handles one kind only asks for objects of that kind."""

    new: KubeObject | None
    old: KubeObject | None

    def new_as(self, kind: type[T]) -> T:
        """Returns the object after the write. Raises TypeError if it is none of this kind."""
        return _require_kind(self.new, kind)

    def old_as(self, kind: type[T]) -> T:
        """Returns the object before the write. Raises TypeError if it is none of this kind."""
        return _require_kind(self.old, kind)


def _require_kind(obj: KubeObject | None, kind: type[T]) -> T:
    if not isinstance(obj, kind):
        raise TypeError(f"a {kind.__name__} is handled here, not {type(obj).__name__}")
    return obj


@dataclass(frozen=True)
class Write(Change):
    """A write that was asked for; upstream's admission.Attributes.

    `new` is None for deletions, `old` for creations. `sent` is the object of a request that is not
    stored, as JSON: an Eviction, a Binding, the options of a connection.
    """

    operation: str  # CREATE, UPDATE, DELETE or CONNECT
    resource: Resource
    new: KubeObject | None = None
    old: KubeObject | None = None
    subresource: str = ""
    request: WriteRequest | None = None
    sent: Mapping[str, Any] | None = None
    # By the names of the plugins that have asked webhooks or policies.
    reinvocations: Mapping[str, Reinvocation] | None = None

    @property
    def is_patched(self) -> bool:
        """Whether a webhook or policy has changed the object, to whatever it likes."""
        if not self.reinvocations:
            return False
        return any(one.changed for one in self.reinvocations.values())

    def after_asking(
        self,
        plugin: str,
        state: Reinvocation,
        new: KubeObject | None,
        sent: Mapping[str, Any] | None,
    ) -> Write:
        """Returns the write as a plugin has changed it by asking webhooks or policies."""
        reinvocations = {**(self.reinvocations or {}), plugin: state}
        return replace(self, new=new, sent=sent, reinvocations=reinvocations)

    def with_new(self, new: KubeObject | None) -> Write:
        """Returns the write with another new object, itself if it is the same one."""
        if new is self.new:
            return self
        return Write(  # in half the time of dataclasses.replace
            self.operation,
            self.resource,
            new,
            self.old,
            self.subresource,
            self.request,
            self.sent,
            self.reinvocations,
        )


class Plugin:
    """One step of admission; upstream's MutationInterface and ValidationInterface.

    A plugin overrides `admit` if it changes objects, `validate` if it refuses them as they are to
    be stored, or both. It is called for the writes that it handles. What it adds to an object has
    its defaults already.
    """

    name: ClassVar[str]
    # whether it decides by the name alone about the deletion of an object that cannot be read
    admits_unreadable: ClassVar[bool] = False

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        """Reports whether the plugin is about such writes. The answer must never change.

        `resource` is the name of a resource, such as `pods` or `roles.rbac.authorization.k8s.io`.
        """
        return True

    def decides(self, resource: Resource, subresource: str, operation: str) -> bool:
        """Reports whether somebody outside of kcm's code now decides about such writes.

        Then they are only decided about with the stored object at hand, and in the server's own
        process.
        """
        return False

    def admit(self, write: Write) -> Write:
        """Returns the write with its object changed. Raises an ApiError to refuse it."""
        return write

    def validate(self, write: Write) -> None:
        """Raises an ApiError to refuse the write of an object as it is to be stored."""


def forbid(obj: KubeObject, why: str) -> errors.Forbidden:
    """Returns the error for an object that a plugin refuses."""
    resource, name = obj.resource.name, obj.name or obj.metadata.generate_name or ""
    return errors.Forbidden(
        f'{resource} "{name}" is forbidden: {why}', resource=resource, name=name
    )
