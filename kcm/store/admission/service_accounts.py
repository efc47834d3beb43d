"""Service account admission: sets the service account of every pod, which must exist.

As upstream's plugin it uses accounts that it has read a short time ago, and reads an account that
is not among them.

Source: plugin/pkg/admission/serviceaccount/admission.go, Kubernetes 1.33. Departures: the account
`default` need not exist, since its controller creates it only after the namespace, and pods that
are created meanwhile need not fail; no token is mounted and no pull secrets are copied yet.
"""

from __future__ import annotations

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import Pod, PodSpec, ServiceAccount
from kcm.store.admission.memory import WriteWatch
from kcm.store.reader import StoreReader

DEFAULT_ACCOUNT = "default"
_MIRROR = "kubernetes.io/config.mirror"


class ServiceAccountAdmission:
    """Sets and checks the service accounts of pods of one store."""

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader
        self._writes = WriteWatch(reader, ServiceAccount)
        self._known: set[str] = set()  # keys of accounts that exist

    def admit(self, spec: PodSpec, pod: Pod, monotonic: float) -> PodSpec:
        """Returns the spec with a service account. Raises: Forbidden, StoreUnavailable."""
        if _MIRROR in pod.annotations:
            return spec  # a mirror pod: the node runs its static pod in any case
        name = spec.service_account_name or spec.service_account
        if not name:
            return spec.replace(service_account_name=DEFAULT_ACCOUNT)
        namespace = pod.namespace or "default"
        if name != DEFAULT_ACCOUNT and not self._exists(f"{namespace}/{name}", monotonic):
            shown = pod.name or pod.metadata.generate_name or ""
            raise errors.Forbidden(
                f'pods "{shown}" is forbidden: error looking up service account '
                f'{namespace}/{name}: serviceaccount "{name}" not found',
                resource="pods",
                name=shown,
            )
        return spec

    def _exists(self, key: str, monotonic: float) -> bool:
        if self._writes.has_news(monotonic):
            self._known = set()
        if key not in self._known:
            if self._reader.get_all([(scheme.resource_of(ServiceAccount), key)])[0] is None:
                return False
            self._known.add(key)
        return True
