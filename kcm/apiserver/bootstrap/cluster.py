"""Creates the objects that every cluster has: namespaces, priority classes, roles, the
ServiceCIDR `kubernetes`, FlowSchemas and PriorityLevelConfigurations.

They are created at the start, and again if the store was emptied. As upstream, one that is deleted
meanwhile is not created again before the next start, except those of flow control, which are
corrected every minute. After each change there, FlowSchemas say whether they have a level.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import structlog

from kcm import errors
from kcm.api.networking_v1 import ServiceCIDR, ServiceCIDRSpec
from kcm.api.scheme import Resource
from kcm.api.storage_v1 import (
    IS_DEFAULT,
    WAIT_FOR_FIRST_CONSUMER,
    CSIDriver,
    CSIDriverSpec,
    StorageClass,
)
from kcm.api.volumes.local import DEFAULT_CLASS, DRIVER, PROVISIONER
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.apiserver.auth import bootstrap
from kcm.apiserver.bootstrap import priority_levels
from kcm.clock import Clock
from kcm.helpers import node_token
from kcm.loops import Loop, Turn
from kcm.store import Store
from kcm.store.admission import namespaces
from kcm.store.admission.cluster_ips import DEFAULT_NAME
from kcm.store.admission.ensuring import ensure_objects
from kcm.store.admission.priority import SYSTEM_CLASSES

log = structlog.get_logger("kcm.apiserver")

LOOK_EVERY = 1.0  # seconds between checks whether the store was emptied


class ClusterBootstrap(Loop):
    """Creates the default objects, and again when the store was emptied.

    `roles` says whether the default roles are created, too.
    """

    def __init__(
        self,
        store: Store,
        *,
        roles: bool = True,
        joining: bool = False,
        local_volumes: bool = False,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """With `joining`, bootstrap tokens may add nodes, if there are the default roles. With
        `local_volumes`, there is a class of folders on nodes, and it is the default.
        `rng` draws the key for kubelets, by default from the system.
        """
        super().__init__("kcm-bootstrap")
        self._rng = rng
        self._joining = joining
        self._store = store
        self._roles = roles
        self._local_volumes = local_volumes
        self._clock = clock or store.clock
        self._corrected = 0.0  # the monotonic time when the objects of flow control were corrected
        self._marked: Mapping[Resource, int] = {}  # the last writes to them that were looked at
        self._data_id = ""  # of the store for which the objects were created

    def ensure(self) -> None:
        """Creates the missing default objects, unless that was done since the store was emptied.

        Raises StoreUnavailable.
        """
        # first: if the store is emptied meanwhile, the next call notices
        data_id = self._store.data_id
        if data_id == self._data_id:
            return
        objects = [
            *namespaces.build(),
            *SYSTEM_CLASSES.values(),
            default_service_cidr(self._store),
            *(local_volume_objects() if self._local_volumes else ()),
        ]
        ensure_objects(self._store, objects)
        self._ensure_key()
        if self._roles:
            bootstrap.ensure(self._store, joining=self._joining)
        self._correct_flow_control()
        self._data_id = data_id

    def _correct_flow_control(self) -> None:
        priority_levels.ensure(self._store)
        self._corrected = self._clock.monotonic()
        self._mark_flow_schemas()

    def _mark_flow_schemas(self) -> None:
        written = self._store.last_rvs(priority_levels.RESOURCES)
        if written != self._marked:
            priority_levels.mark_all(self._store)
            self._marked = written

    def _ensure_key(self) -> None:
        try:
            node_token.ensure_key(self._store, self._rng)
        except errors.Forbidden as error:  # everything that needs no kubelet works without the key
            log.error(
                "The key for kubelets cannot be created; logs and exec will not work",
                error=error.message,
            )

    def turn(self, patience: float) -> Turn:
        self.ensure()
        if self._clock.monotonic() - self._corrected >= priority_levels.SYNC_EVERY:
            self._correct_flow_control()
        self._mark_flow_schemas()
        return Turn(upkeep_in=LOOK_EVERY)


def default_service_cidr(store: Store) -> ServiceCIDR:
    """Returns the ServiceCIDR with the range of the settings.

    Source: pkg/controlplane/controller/defaultservicecidr/default_servicecidr_controller.go.
    """
    spec = ServiceCIDRSpec(cidrs=[str(store.service_ranges.network)])
    return ServiceCIDR(metadata=ObjectMeta(name=DEFAULT_NAME), spec=spec)


# --- The default class of `kcm up`: volumes that are folders on nodes.


def local_volume_objects() -> tuple[KubeObject, ...]:
    """Returns the StorageClass, and the CSIDriver that says that nothing is to be attached."""
    storage_class = StorageClass(
        metadata=ObjectMeta(name=DEFAULT_CLASS, annotations={IS_DEFAULT: "true"}),
        provisioner=PROVISIONER,
        reclaim_policy="Delete",
        allow_volume_expansion=True,
        volume_binding_mode=WAIT_FOR_FIRST_CONSUMER,
    )
    driver = CSIDriver(metadata=ObjectMeta(name=DRIVER), spec=CSIDriverSpec(attach_required=False))
    return storage_class, driver
