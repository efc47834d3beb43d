"""The admission plugins that a write passes, in upstream's order.

`AdmissionChain.run` calls them for each create, update, delete and connect: first those that change
objects, top to bottom, then those that only refuse, top to bottom. Many do both.

Source: pkg/kubeapiserver/options/plugins.go (AllOrderedPlugins), Kubernetes 1.33. Departures:

- Plugins that are off by default upstream are left out, and so are those of features that kcm does
  not have, such as PodSecurity.
- Quotas are charged last, but not by a plugin: see ResourceQuota below.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from kcm import errors
from kcm.apimachinery.suggestions import suggest
from kcm.clock import Clock
from kcm.settings import Settings
from kcm.store.admission.device_admin_access import DeviceAdminAccess
from kcm.store.admission.ingress_classes import DefaultIngressClass
from kcm.store.admission.limit_ranges import LimitRanger
from kcm.store.admission.plugin import Plugin
from kcm.store.admission.priority import Priority
from kcm.store.admission.runtime_classes import RuntimeClass
from kcm.store.admission.service_accounts import ServiceAccount
from kcm.store.admission.storage import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageClasses,
    StorageObjectInUseProtection,
)
from kcm.store.admission.toleration_seconds import DefaultTolerationSeconds
from kcm.store.admission.topology_labels import PodTopologyLabels
from kcm.store.reader import StoreReader

ORDER = (
    # NamespaceLifecycle is checked by the write script, in the moment of the write.
    LimitRanger.name,
    ServiceAccount.name,
    "NodeRestriction",  # of the API server, as are all whose names are in quotes
    "TaintNodesByCondition",
    Priority.name,
    DefaultTolerationSeconds.name,
    DefaultStorageClass.name,
    StorageObjectInUseProtection.name,
    PersistentVolumeClaimResize.name,
    RuntimeClass.name,
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    DefaultIngressClass.name,
    PodTopologyLabels.name,
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    # What upstream's registries do with the sender or other objects at hand, after all that changes
    # objects and before objects are validated. They are no plugins upstream.
    DeviceAdminAccess.name,
    "ClaimStatusAuthorization",
    "RoleEscalation",
    "CertificateRequester",
    "PolicyParameters",
    # From here on only those that refuse.
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    # ResourceQuota is charged with the write itself: see kcm.store.charging.
)


# These are no plugins here, or are part of how a write is stored.
_ALWAYS = frozenset(
    {"NamespaceLifecycle", "ResourceQuota", "RoleEscalation", "CertificateRequester",
     "PolicyParameters", "ClaimStatusAuthorization", DeviceAdminAccess.name}
)  # fmt: skip
_ABSENT = frozenset(
    {"JobValidation", "NodeDeclaredFeatureValidator", "PodGroupProtection",
     "PodGroupWorkloadExists", "PodResizeValidator", "PodSecurity"}
)  # fmt: skip
# Those that are off upstream unless they are asked for, and absent here.
_OFF = frozenset(
    {"AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages", "DenyServiceExternalIPs", "EventRateLimit",
     "ExtendedResourceToleration", "ImagePolicyWebhook", "LimitPodHardAntiAffinityTopology",
     "NamespaceAutoProvision", "NamespaceExists", "OwnerReferencesPermissionEnforcement",
     "PodNodeSelector", "PodTolerationRestriction"}
)  # fmt: skip


def build_plugins(
    reader: StoreReader, settings: Settings, clock: Clock, rng: random.Random
) -> Sequence[Plugin]:
    """Returns the plugins of a store, whoever writes: those that ask nothing about the sender."""
    classes = StorageClasses(reader, clock)
    return order_plugins(
        [
            LimitRanger(reader, clock),
            ServiceAccount(reader, clock, rng),
            Priority(reader, clock),
            DefaultTolerationSeconds(settings),
            DefaultStorageClass(classes),
            StorageObjectInUseProtection(),
            PersistentVolumeClaimResize(classes),
            RuntimeClass(reader, clock),
            DefaultIngressClass(reader, clock),
            PodTopologyLabels(reader),
            DeviceAdminAccess(reader),
        ]
    )


def leave_disabled_out(plugins: Iterable[Plugin], disabled: str) -> list[Plugin]:
    """Returns the plugins whose names are not in `disabled`, which has commas between them.

    Raises ConfigurationError for a name that cannot be disabled.
    """
    names = {name.strip() for name in disabled.split(",") if name.strip()}
    for name in sorted(names):
        if name in _ALWAYS:
            raise errors.ConfigurationError(f"the admission plugin {name} cannot be disabled here")
        _require_plugin(name)
    return [plugin for plugin in plugins if plugin.name not in names]


def check_enabled(enabled: str) -> None:
    """Raises ConfigurationError for a plugin that is to be enabled, and that kcm does not have.

    `enabled` has commas between the names. Those that are on by default need not be enabled.
    """
    for name in filter(None, map(str.strip, enabled.split(","))):
        _require_plugin(name)
        if name in _OFF:
            raise errors.ConfigurationError(f"kcm does not have the admission plugin {name}")


def _require_plugin(name: str) -> None:
    """Raises ConfigurationError unless a plugin of kcm or of upstream has this name."""
    names = [*ORDER, *_ALWAYS, *_ABSENT, *_OFF]
    if name not in names:
        raise errors.ConfigurationError(f'"{name}" is no admission plugin' + suggest(name, names))


def order_plugins(plugins: Iterable[Plugin]) -> Sequence[Plugin]:
    """Returns plugins in their order. Raises ValueError for one that is not on this page."""
    return sorted(plugins, key=lambda plugin: ORDER.index(plugin.name))
