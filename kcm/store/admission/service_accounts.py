"""Service account admission: sets the service account of every pod, and mounts its token.

As upstream's plugin it uses accounts that it has read a short time ago, and reads an account that
is not among them.

Tokens are mounted in a cluster whose controllers publish the API server's certificate, as that in
kube-system shows. In another cluster pods would wait for it for ever.

Source: plugin/pkg/admission/serviceaccount/admission.go, Kubernetes 1.33. Departures: the account
`default` need not exist, since its controller creates it only after the namespace, and pods that
are created meanwhile need not fail; the annotation kubernetes.io/enforce-mountable-secrets is
ignored; pods that a controller creates in one batch have the same name for the volume.
"""

from __future__ import annotations

import random

from kcm import errors
from kcm.api.core_v1 import ConfigMap, Pod, PodSpec, ServiceAccount
from kcm.store.admission.memory import MEMORY_SECONDS, WriteWatch
from kcm.store.admission.token_volume import ROOT_CA, mount_token, wants_token
from kcm.store.reader import StoreReader

DEFAULT_ACCOUNT = "default"
PUBLISHED = f"kube-system/{ROOT_CA}"
_MIRROR = "kubernetes.io/config.mirror"


class ServiceAccountAdmission:
    """Sets and checks the service accounts of pods of one store, and mounts their tokens."""

    def __init__(self, reader: StoreReader, rng: random.Random | None = None) -> None:
        self._reader = reader
        self._rng = rng or random.Random()
        self._writes = WriteWatch(reader, ServiceAccount)
        self._known: dict[str, ServiceAccount] = {}  # by key
        self._is_published = False
        self._looked_at: float | None = None  # monotonic, for the ConfigMap

    def admit(self, spec: PodSpec, pod: Pod, monotonic: float) -> PodSpec:
        """Returns the spec with a service account, its token and its pull secrets.

        Raises: Forbidden, StoreUnavailable.
        """
        if _MIRROR in pod.annotations:
            return spec  # a mirror pod: the node runs its static pod in any case
        name = spec.service_account_name or spec.service_account or DEFAULT_ACCOUNT
        if not (spec.service_account_name or spec.service_account):
            spec = spec.replace(service_account_name=name)
        namespace = pod.namespace or "default"
        account = self._find(f"{namespace}/{name}", monotonic)
        if account is None and name != DEFAULT_ACCOUNT:
            raise _not_found(pod, namespace, name)
        if wants_token(spec, account) and self._has_root_ca(monotonic):
            spec = mount_token(spec, self._rng)
        if account is not None and account.image_pull_secrets and not spec.image_pull_secrets:
            spec = spec.replace(image_pull_secrets=account.image_pull_secrets)
        return spec

    def _find(self, key: str, monotonic: float) -> ServiceAccount | None:
        if self._writes.has_news(monotonic):
            self._known = {}
        if key not in self._known:
            account = self._reader.find(ServiceAccount.resource, key)
            if account is None:
                return None
            self._known[key] = account
        return self._known[key]

    def _has_root_ca(self, monotonic: float) -> bool:
        """Reports whether the certificate is published. What was found once stays so."""
        if self._is_published:
            return True
        if self._looked_at is not None and monotonic - self._looked_at < MEMORY_SECONDS:
            return False
        self._looked_at = monotonic
        resource = ConfigMap.resource
        self._is_published = self._reader.find(resource, PUBLISHED) is not None
        return self._is_published


def _not_found(pod: Pod, namespace: str, name: str) -> errors.Forbidden:
    shown = pod.name or pod.metadata.generate_name or ""
    return errors.Forbidden(
        f'pods "{shown}" is forbidden: error looking up service account '
        f'{namespace}/{name}: serviceaccount "{name}" not found',
        resource="pods",
        name=shown,
    )
