"""certificates.k8s.io/v1beta1: ClusterTrustBundle.

Source: staging/src/k8s.io/api/certificates/v1beta1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.apimachinery.base import Model
from kcm.apimachinery.meta_v1 import KubeObject

API_SERVER_SERVING = "kubernetes.io/kube-apiserver-serving"
"""The signer of the certificates with which API servers serve."""


class ClusterTrustBundleSpec(Model):
    """The certificates, and the signer whose certificates they verify, if it is a signer's."""

    signer_name: str | None = None
    trust_bundle: str = ""  # PEM


class ClusterTrustBundle(KubeObject):
    """Certificates of authorities, for everybody who verifies a signer's certificates."""

    api_version: str = "certificates.k8s.io/v1beta1"
    kind: str = "ClusterTrustBundle"
    spec: ClusterTrustBundleSpec = Field(default_factory=ClusterTrustBundleSpec)


def name_prefix(signer_name: str) -> str:
    """Returns what the names of a signer's bundles begin with."""
    return signer_name.replace("/", ":") + ":"
