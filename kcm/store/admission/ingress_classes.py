"""The admission plugin DefaultIngressClass: Ingresses that name no class get the default one.

Source: plugin/pkg/admission/network/defaultingressclass/admission.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from kcm.api.admissionregistration_v1 import CREATE
from kcm.api.networking_v1 import Ingress, IngressClass
from kcm.clock import Clock
from kcm.store.admission.memory import WriteWatch
from kcm.store.admission.plugin import Plugin, Write
from kcm.store.reader import StoreReader

IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
CLASS_ANNOTATION = "kubernetes.io/ingress.class"  # of Ingresses from before there were classes
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class DefaultIngressClass(Plugin):
    """Completes the Ingresses of one store."""

    name = "DefaultIngressClass"

    def __init__(self, reader: StoreReader, clock: Clock) -> None:
        self._reader = reader
        self._writes = WriteWatch(reader, IngressClass, clock)
        self._default: str | None = None

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        if resource == Ingress.resource.name:
            return operation == CREATE
        return resource == IngressClass.resource.name

    def admit(self, write: Write) -> Write:
        """Raises: StoreUnavailable."""
        ingress = write.new
        if not isinstance(ingress, Ingress) or ingress.spec.ingress_class_name is not None:
            return write
        default = None if CLASS_ANNOTATION in ingress.annotations else self._find_default()
        if default is None:
            return write
        return write.with_new(ingress.with_spec(ingress.spec.replace(ingress_class_name=default)))

    def validate(self, write: Write) -> None:
        """Takes note of writes of classes."""
        if write.resource.name == IngressClass.resource.name:
            self._writes.expect_change()

    def _find_default(self) -> str | None:
        if self._writes.has_changed():
            self._default = _default_of(self._reader.list(IngressClass.resource).items)
        return self._default


def _default_of(classes: Sequence[IngressClass]) -> str | None:
    """Returns the name of the newest default class, of several of one age the first by name."""
    marked = [one for one in classes if one.annotations.get(IS_DEFAULT) == "true"]
    by_name = sorted(marked, key=lambda one: one.name)
    newest = max(by_name, key=_created_at, default=None)  # of equal ones the first
    return newest.name if newest is not None else None


def _created_at(one: IngressClass) -> datetime:
    return one.metadata.creation_timestamp or _LONG_AGO
