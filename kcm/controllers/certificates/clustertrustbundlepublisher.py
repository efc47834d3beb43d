"""Cluster trust bundle publisher: keeps the ClusterTrustBundle that verifies the API servers.

The bundle of the signer `kubernetes.io/kube-apiserver-serving` has the certificates of
`--root-ca-file`, and its name their hash. Other bundles of this signer are deleted.

Upstream runs it behind the feature gate ClusterTrustBundle (beta, off by default); here it
runs wherever `--root-ca-file` is set. Pods cannot mount bundles: the field `clusterTrustBundle` of
projected volumes is dropped, as upstream without its gate ClusterTrustBundleProjection.

Source: pkg/controller/certificates/clustertrustbundlepublisher/publisher.go, Kubernetes 1.33.
Departure: the duration of syncs is not measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from kcm import errors
from kcm.api.certificates_v1beta1 import (
    API_SERVER_SERVING,
    ClusterTrustBundle,
    ClusterTrustBundleSpec,
    name_prefix,
)
from kcm.api.core_v1 import Namespace
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.helpers.serviceaccount.root_ca import read_bundle
from kcm.sdk import (
    Change,
    Controller,
    Counter,
    Counts,
    Create,
    Delete,
    Options,
    Outcome,
    PassPlan,
    Plan,
    Tick,
    Update,
    View,
    Watch,
    shared_option,
)

KEY = "bundle"  # the only key
EVERY = 60.0  # seconds: a change of the file's name or content comes with a restart
_HASH_BYTES = 12
SYNCS = Counter(
    "clustertrustbundle_publisher_sync",
    "Number of syncs that occurred in cluster trust bundle publisher.",
    ("code",),
)


class ClusterTrustBundlePublisherOptions(Options):
    """The options of the cluster trust bundle publisher."""

    root_ca_file: str = shared_option("", "root-ca-certificate-publisher-controller")


class ClusterTrustBundlePublisher(Controller):
    """Creates, corrects and deletes the bundles of one signer."""

    name = "kube-apiserver-serving-clustertrustbundle-publisher-controller"
    short_name = "clustertrustbundlepublisher"
    metrics = (SYNCS,)
    options_type = ClusterTrustBundlePublisherOptions
    options: ClusterTrustBundlePublisherOptions

    def __init__(self, options: ClusterTrustBundlePublisherOptions | None = None) -> None:
        """Raises ConfigurationError if the file of certificates cannot be read."""
        super().__init__(options)
        self._certificates = read_bundle(self.options.root_ca_file)

    def missing_option(self) -> str:
        return "" if self.options.root_ca_file else "--root-ca-file is not set"

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(ClusterTrustBundle, bundle_of_signer), Watch(Namespace, system_namespace))

    def ticks(self) -> tuple[Tick, ...]:
        return (Tick("clusterTrustBundlePublisher", EVERY, self._pass),)

    def _pass(self, view: View, state: Mapping[str, str]) -> PassPlan:
        return PassPlan(self.reconcile(KEY, view).steps, counts_after=_count, waits=())

    def reconcile(self, key: str, view: View) -> Plan:
        plan = Plan(counts_after=_count)
        name = bundle_name(API_SERVER_SERVING, self._certificates)
        lister = view.lister(ClusterTrustBundle)
        present = lister.find(name)
        if present is None:
            spec = ClusterTrustBundleSpec(
                signer_name=API_SERVER_SERVING, trust_bundle=self._certificates
            )
            new = ClusterTrustBundle(metadata=ObjectMeta(name=name), spec=spec)
            plan.then(Create(new), essential=True)
        elif present.spec.trust_bundle != self._certificates:
            spec = present.spec.replace(trust_bundle=self._certificates)
            plan.then(Update(present.with_spec(spec), present), essential=True)
        others = [b for b in lister.list() if _is_ours(b) and b.name != name and not b.deleting]
        return plan.then(*map(Delete, others)) if others else plan


def bundle_name(signer: str, certificates: str) -> str:
    """Returns the name of the bundle with these certificates of a signer."""
    digest = hashlib.sha256(certificates.encode()).digest()
    return name_prefix(signer) + digest[:_HASH_BYTES].hex()


def bundle_of_signer(change: Change, view: View) -> Iterable[str]:
    """Yields the only key if a bundle of the signer was changed."""
    if any(isinstance(obj, ClusterTrustBundle) and _is_ours(obj) for obj in _both(change)):
        yield KEY


def system_namespace(change: Change, view: View) -> Iterable[str]:
    """Yields the only key when kube-system is new, so that a new cluster has the bundle at once."""
    if change.old is None and change.object.name == "kube-system":
        yield KEY


def _both(change: Change) -> tuple[object, ...]:
    return change.old, change.new


def _is_ours(bundle: ClusterTrustBundle) -> bool:
    return bundle.spec.signer_name == API_SERVER_SERVING


def _count(outcome: Outcome) -> Counts:
    error = outcome.error
    if error is None:
        return SYNCS.count("200")
    return SYNCS.count(str(error.code) if isinstance(error, errors.ApiError) else "500")
