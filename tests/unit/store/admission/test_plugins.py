"""Tests that the plugins are in upstream's order, whoever adds them."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest

from kcm import errors
from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.kinds import defaults
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.admission import namespaces
from kcm.store.admission.plugin import Plugin
from kcm.store.admission.plugins import ORDER, build_plugins, leave_disabled_out, order_plugins
from kcm.store.memory import MemoryIO
from kcm.store.reader import StoreReader
from kcm.testing.clock import FakeClock

# AllOrderedPlugins of pkg/kubeapiserver/options/plugins.go, Kubernetes 1.33
UPSTREAM = (
    "AlwaysAdmit", "NamespaceAutoProvision", "NamespaceLifecycle", "NamespaceExists",
    "LimitPodHardAntiAffinityTopology", "LimitRanger", "ServiceAccount", "NodeRestriction",
    "TaintNodesByCondition", "AlwaysPullImages", "ImagePolicyWebhook", "PodSecurity",
    "PodNodeSelector", "Priority", "DefaultTolerationSeconds", "PodTolerationRestriction",
    "EventRateLimit", "ExtendedResourceToleration", "DefaultStorageClass",
    "StorageObjectInUseProtection", "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize", "RuntimeClass", "CertificateApproval", "CertificateSigning",
    "ClusterTrustBundleAttest", "CertificateSubjectRestriction", "DefaultIngressClass",
    "DenyServiceExternalIPs", "PodTopologyLabels", "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
    "ResourceQuota", "AlwaysDeny",
)  # fmt: skip
# They stand for what upstream's registries do between mutating and validating plugins.
REGISTRIES = [
    "DeviceAdminAccess",
    "ClaimStatusAuthorization",
    "RoleEscalation",
    "CertificateRequester",
    "PolicyParameters",
]


def _named(kind: str, version: str, namespace: str = "default", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "kube-root-ca.crt", "namespace": namespace},
        **fields,
    }


LIMITS = {"default": {"cpu": "2"}, "max": {"memory": "1Gi"}, "type": "Container"}
GIVEN = [
    _named("ConfigMap", "v1", "kube-system"),
    _named("LimitRange", "v1", spec={"limits": [LIMITS]}),
    _named(
        "RuntimeClass",
        "node.k8s.io/v1",
        "",
        handler="h",
        overhead={"podFixed": {"cpu": "1m"}},
        scheduling={"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "value": "v"}]},
    ),
    _named("PriorityClass", "scheduling.k8s.io/v1", "", value=3, globalDefault=True),
]
CONTAINERS: list[dict[str, Any]] = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
WANTED = [
    _named("Pod", "v1", spec={"containers": CONTAINERS, "runtimeClassName": "kube-root-ca.crt"}),
]


class Last(Plugin):
    name = "ValidatingAdmissionWebhook"


class Unlisted(Plugin):
    name = "Unlisted"


def test_the_order_is_upstreams() -> None:
    shared = [name for name in ORDER if name not in REGISTRIES]
    assert shared == [name for name in UPSTREAM if name in shared]
    assert len(set(ORDER)) == len(ORDER)


def test_registries_come_after_what_changes_objects() -> None:
    place = ORDER.index("MutatingAdmissionWebhook") + 1
    assert list(ORDER[place : place + len(REGISTRIES)]) == REGISTRIES


def test_a_store_has_the_plugins_that_ask_nothing_about_the_sender() -> None:
    reader = cast("StoreReader", None)  # nothing is read before a write
    plugins = build_plugins(reader, Settings(), FakeClock(), random.Random(1))
    names = [plugin.name for plugin in plugins]
    assert names == [name for name in ORDER if name in names]
    assert len(names) == 11
    with_last = order_plugins([Last(), *reversed(plugins)])
    assert [plugin.name for plugin in with_last] == [*names, Last.name]


def test_a_plugin_that_is_not_on_the_page_is_an_error() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        order_plugins([Unlisted()])


def test_what_plugins_add_has_its_defaults() -> None:
    clock = FakeClock()
    store = Store(MemoryIO(clock), clock, random.Random(1))
    namespaces.ensure(store)
    for made in GIVEN:
        store.create(codec.decode(made, BUILT_IN))
    for wanted in WANTED:
        given = codec.decode(wanted, BUILT_IN)
        stored = store.create(given)
        assert codec.to_dict(stored)["spec"] != codec.to_dict(defaults.apply(given))["spec"]
        assert defaults.apply(stored) == stored


READER = cast("StoreReader", None)  # nothing is read before a write
PLUGINS = build_plugins(READER, Settings(), FakeClock(), random.Random(1))


def test_plugins_are_left_out_by_name() -> None:
    names = [plugin.name for plugin in leave_disabled_out(PLUGINS, "Priority, ServiceAccount,")]
    assert "Priority" not in names
    assert "ServiceAccount" not in names
    assert len(names) == len(PLUGINS) - 2
    assert len(leave_disabled_out(PLUGINS, "PodSecurity")) == len(PLUGINS)


@pytest.mark.parametrize(
    ("disabled", "why"),
    [
        ("NamespaceLifecycle", "cannot be disabled here"),
        ("ServiceAccounts", '"ServiceAccounts" is no admission plugin .did you mean'),
    ],
)
def test_what_cannot_be_left_out_is_an_error(disabled: str, why: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=why):
        leave_disabled_out(PLUGINS, disabled)
