"""IngressClass admission: Ingresses that name no class get the default one.

Source: plugin/pkg/admission/network/defaultingressclass/admission.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from kcm.api.networking_v1 import Ingress, IngressClass
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.admission.memory import WriteWatch
from kcm.store.reader import StoreReader

IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
CLASS_ANNOTATION = "kubernetes.io/ingress.class"  # of Ingresses from before there were classes
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class IngressClassAdmission:
    """Completes the Ingresses of one store."""

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader
        self._writes = WriteWatch(reader, IngressClass)
        self._default: str | None = None

    def forget(self) -> None:
        """Makes the next admission read the classes again, for one was written here."""
        self._writes.look_soon()

    def admit(self, obj: KubeObject, monotonic: float) -> KubeObject:
        """Returns a new Ingress with its class, anything else as it is.

        Raises: StoreUnavailable.
        """
        if not isinstance(obj, Ingress) or obj.spec.ingress_class_name is not None:
            return obj
        if CLASS_ANNOTATION in obj.annotations:
            return obj
        default = self._find_default(monotonic)
        if default is None:
            return obj
        return obj.with_spec(obj.spec.replace(ingress_class_name=default))

    def _find_default(self, monotonic: float) -> str | None:
        if self._writes.has_news(monotonic):
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
