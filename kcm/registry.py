"""The registry of controllers. A new controller is a module and one line here.

A user's own controller is in a file or package of theirs. It is loaded with `--controller-module
path.py` (or `package.module`), or published under the entry point group `kcm.controllers`.
`tests/architecture` checks that the lines here and the modules under `kcm/controllers` agree.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
import zlib
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from kcm import errors
from kcm.reconcile.contract import Controller

CONTROLLERS = (  # below kcm.controllers, in the order of their short names
    ".volumes.attachdetach:AttachDetachController",
    ".bootstrap.bootstrapsigner:BootstrapSignerController",
    ".cloud.cloudnode:CloudNodeController",
    ".cloud.cloudnodelifecycle:CloudNodeLifecycleController",
    ".clusterroleaggregation:ClusterRoleAggregationController",
    ".certificates.clustertrustbundlepublisher:ClusterTrustBundlePublisher",
    ".cronjob:CronJobController",
    ".certificates.csrapproving:CSRApprovingController",
    ".certificates.csrcleaner:CSRCleanerController",
    ".certificates.csrsigning:CSRSigningController",
    ".daemonset:DaemonSetController",
    ".deployment:DeploymentController",
    ".disruption:DisruptionController",
    ".endpoints.endpoint:EndpointsController",
    ".endpoints.endpointslice:EndpointSliceController",
    ".endpoints.endpointslicemirroring:EndpointSliceMirroringController",
    ".volumes.ephemeralvolume:EphemeralVolumeController",
    ".garbagecollector:GarbageCollector",
    ".horizontalpodautoscaling:HorizontalPodAutoscalerController",
    ".job:JobController",
    ".serviceaccounts.legacyserviceaccounttokencleaner:LegacyServiceAccountTokenCleaner",
    ".namespace:NamespaceController",
    ".nodeipam:NodeIpamController",
    ".nodelifecycle:NodeLifecycleController",
    ".volumes.persistentvolumebinder:PersistentVolumeBinderController",
    ".volumes.persistentvolumeexpander:PersistentVolumeExpanderController",
    ".podgc:PodGCController",
    ".volumes.pvcprotection:PVCProtectionController",
    ".volumes.pvprotection:PVProtectionController",
    ".replicaset:ReplicaSetController",
    ".replicationcontroller:ReplicationControllerController",
    ".resourceclaim:ResourceClaimController",
    ".resourcequota:ResourceQuotaController",
    ".certificates.rootcacertpublisher:RootCACertPublisher",
    ".cloud.route:NodeRouteController",
    ".scheduler:SchedulerController",
    ".cloud.service:ServiceLBController",
    ".serviceaccounts.serviceaccount:ServiceAccountController",
    ".serviceaccounts.serviceaccounttoken:ServiceAccountTokenController",
    ".servicecidr:ServiceCIDRController",
    ".serviceiprepair:ServiceIPRepairController",
    ".statefulset:StatefulSetController",
    ".storageversionmigrator:StorageVersionMigrator",
    ".tainteviction:TaintEvictionController",
    ".bootstrap.tokencleaner:TokenCleanerController",
    ".ttl:TTLController",
    ".ttlafterfinished:TTLAfterFinishedController",
    ".validatingadmissionpolicystatus:ValidatingAdmissionPolicyStatusController",
    ".volumes.volumeattributesclassprotection:VACProtectionController",
)

ENTRY_POINTS = "kcm.controllers"


def controller_types(modules: Iterable[str] = ()) -> tuple[type[Controller], ...]:
    """Returns the classes of all controllers: kcm's, those of installed packages, those in
    `modules`.

    Raises ConfigurationError when a module has none or cannot be imported, or when two controllers
    have the same name.
    """
    by_name: dict[str, type[Controller]] = {}
    for kind in _all(modules):
        for name in (kind.name, kind.short_name):
            other = by_name.get(name)
            if other is not None and other is not kind:
                raise errors.ConfigurationError(
                    f"two controllers are called {name!r}: {_place(other)} and {_place(kind)}"
                )
            by_name[name] = kind
    return tuple(dict.fromkeys(by_name.values()))


def _all(modules: Iterable[str]) -> Iterator[type[Controller]]:
    yield from _installed(CONTROLLERS)
    for module in modules:
        yield from load_module(module)


@functools.cache  # a look at all installed packages takes tens of milliseconds
def _installed(lines: tuple[str, ...]) -> tuple[type[Controller], ...]:
    """Returns the classes that the lines name, and those of installed packages."""
    own = (line.partition(":") for line in lines)
    types = [getattr(importlib.import_module(m, "kcm.controllers"), name) for m, _, name in own]
    return (*types, *map(_load, entry_points(group=ENTRY_POINTS)))


def _load(point: EntryPoint) -> type[Controller]:
    try:
        kind = point.load()
    except Exception as error:  # a user's module may raise anything
        raise errors.ConfigurationError(
            f"entry point {ENTRY_POINTS}:{point.name} ({point.value}): "
            f"{type(error).__name__}: {error}"
        ) from error
    if not (inspect.isclass(kind) and issubclass(kind, Controller)):
        raise errors.ConfigurationError(
            f"entry point {ENTRY_POINTS}:{point.name} ({point.value}) is not a subclass of "
            "kcm.reconcile.contract.Controller"
        )
    return kind


def load_module(reference: str) -> list[type[Controller]]:
    """Returns the controllers that a Python file or an importable module defines.

    Raises ConfigurationError when it defines none or cannot be imported.
    """
    try:
        is_file = reference.endswith(".py")
        module = _from_file(Path(reference)) if is_file else importlib.import_module(reference)
    except Exception as error:  # as in _load
        raise errors.ConfigurationError(
            f"--controller-module {reference}: {type(error).__name__}: {error}"
        ) from error
    types = [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Controller) and kind.__module__ == module.__name__
    ]
    if not types:
        raise errors.ConfigurationError(
            f"--controller-module {reference} defines no subclass of "
            "kcm.reconcile.contract.Controller"
        )
    return types


def _from_file(path: Path) -> ModuleType:
    """Returns the file as a module. It is executed once per process, so that its classes stay the
    same.
    """
    path = path.resolve()
    name = f"kcm_user_{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:  # raised again; the next import must not find half a module
        del sys.modules[name]
        raise
    return module


def _place(kind: type[Controller]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
