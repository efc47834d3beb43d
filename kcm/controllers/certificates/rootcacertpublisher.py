"""Root CA certificate publisher: keeps the ConfigMap kube-root-ca.crt in every namespace.

Source: pkg/controller/certificates/rootcacertpublisher/publisher.go, Kubernetes 1.33. Departures:
without --root-ca-file it does not run, where upstream takes the authority of its own kubeconfig;
the duration of syncs is not measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from kcm import errors
from kcm.api.core_v1 import ConfigMap, Namespace
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.helpers.serviceaccount.root_ca import read_bundle
from kcm.sdk import (
    Change,
    Controller,
    Counter,
    Counts,
    Create,
    Options,
    Outcome,
    Plan,
    Update,
    View,
    Watch,
)

NAME = "kube-root-ca.crt"
DESCRIPTION = "kubernetes.io/description"
TEXT = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)
SYNCS = Counter(
    "root_ca_cert_publisher_sync",
    "Number of namespace syncs happened in root ca cert publisher.",
    ("code",),
)


class RootCACertPublisherOptions(Options):
    """The options of the root CA certificate publisher."""

    root_ca_file: str = Field(
        default="",
        description="If set, this root certificate authority will be included in service account's "
        "token secret, and in the ConfigMap kube-root-ca.crt of each namespace. This must be a "
        "valid PEM-encoded CA bundle.",
    )


class RootCACertPublisher(Controller):
    """Creates and corrects the ConfigMap. A key is a namespace."""

    name = "root-ca-certificate-publisher-controller"
    short_name = "rootcacertpublisher"
    metrics = (SYNCS,)
    options_type = RootCACertPublisherOptions
    options: RootCACertPublisherOptions

    def __init__(self, options: RootCACertPublisherOptions | None = None) -> None:
        """Raises ConfigurationError if the file of certificates cannot be read."""
        super().__init__(options)
        self._data = {"ca.crt": read_bundle(self.options.root_ca_file)}

    def missing_option(self) -> str:
        return "" if self.options.root_ca_file else "--root-ca-file is not set"

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Namespace, active_namespace), Watch(ConfigMap, namespace_of_config_map))

    def reconcile(self, key: str, view: View) -> Plan:
        namespace = view.lister(Namespace).find(key)
        if namespace is None or namespace.deleting:
            return Plan()
        plan = Plan(counts_after=_count)
        published = view.lister(ConfigMap).find(f"{key}/{NAME}")
        if published is None:
            metadata = ObjectMeta(name=NAME, namespace=key, annotations={DESCRIPTION: TEXT})
            return plan.then(Create(ConfigMap(metadata=metadata, data=self._data)))
        if published.data == self._data and published.annotations.get(DESCRIPTION):
            return plan
        described = published.with_metadata(
            annotations={**published.annotations, DESCRIPTION: TEXT}
        )
        return plan.then(Update(described.replace(data=self._data), published))


def active_namespace(change: Change, view: View) -> Iterable[str]:
    """Yields a namespace that is new, or that changed and is Active."""
    new = change.new
    if isinstance(new, Namespace) and (change.old is None or new.status.phase == "Active"):
        yield new.name


def namespace_of_config_map(change: Change, view: View) -> Iterable[str]:
    """Yields the namespace of a ConfigMap of this name that was changed or deleted."""
    if change.old is not None and change.object.name == NAME:
        yield change.object.namespace or ""


def _count(outcome: Outcome) -> Counts:
    error = outcome.error
    if error is None:
        return SYNCS.count("200")
    return SYNCS.count(str(error.code) if isinstance(error, errors.ApiError) else "500")
