"""The admission plugin ServiceAccount: sets the service account of every pod, and mounts its token.

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

from kcm.api.admissionregistration_v1 import CREATE
from kcm.api.core_v1 import ConfigMap, Pod, PodSpec
from kcm.api.core_v1 import ServiceAccount as Account
from kcm.clock import Clock
from kcm.store.admission.memory import MEMORY_SECONDS, WriteWatch
from kcm.store.admission.plugin import Plugin, Write, forbid
from kcm.store.admission.token_volume import ROOT_CA, mount_token, wants_token
from kcm.store.reader import StoreReader

DEFAULT_ACCOUNT = "default"
PUBLISHED = f"kube-system/{ROOT_CA}"
_MIRROR = "kubernetes.io/config.mirror"


class ServiceAccount(Plugin):
    """Sets and checks the service accounts of pods of one store, and mounts their tokens."""

    name = "ServiceAccount"

    def __init__(self, reader: StoreReader, clock: Clock, rng: random.Random) -> None:
        self._reader = reader
        self._clock = clock
        self._rng = rng
        self._writes = WriteWatch(reader, Account, clock)
        self._accounts: dict[str, Account] = {}  # by key
        self._is_published = False
        self._checked_at: float | None = None  # monotonic, for the ConfigMap

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return (resource, subresource, operation) == (Pod.resource.name, "", CREATE)

    def admit(self, write: Write) -> Write:
        """Raises: Forbidden, StoreUnavailable."""
        pod = write.new_as(Pod)
        spec = self._complete(pod.spec, pod)
        return write if spec is pod.spec else write.with_new(pod.with_spec(spec))

    def _complete(self, spec: PodSpec, pod: Pod) -> PodSpec:
        """Returns the spec with a service account, its token and its pull secrets."""
        if _MIRROR in pod.annotations:
            return spec  # a mirror pod: the node runs its static pod in any case
        name = spec.service_account_name or spec.service_account or DEFAULT_ACCOUNT
        if not (spec.service_account_name or spec.service_account):
            spec = spec.replace(service_account_name=name, service_account=name)
        namespace = pod.namespace or "default"
        account = self._find(f"{namespace}/{name}")
        if account is None and name != DEFAULT_ACCOUNT:
            raise forbid(
                pod,
                f"error looking up service account {namespace}/{name}: "
                f'serviceaccount "{name}" not found',
            )
        if wants_token(spec, account) and self._has_root_ca():
            spec = mount_token(spec, self._rng)
        if account is not None and account.image_pull_secrets and not spec.image_pull_secrets:
            spec = spec.replace(image_pull_secrets=account.image_pull_secrets)
        return spec

    def _find(self, key: str) -> Account | None:
        if self._writes.has_changed():
            self._accounts = {}
        if key not in self._accounts:
            account = self._reader.find(Account.resource, key)
            if account is None:
                return None
            self._accounts[key] = account
        return self._accounts[key]

    def _has_root_ca(self) -> bool:
        """Reports whether the certificate is published. It stays so once it is."""
        if self._is_published:
            return True
        now = self._clock.monotonic()
        if self._checked_at is not None and now - self._checked_at < MEMORY_SECONDS:
            return False
        self._checked_at = now
        self._is_published = self._reader.find(ConfigMap.resource, PUBLISHED) is not None
        return self._is_published
