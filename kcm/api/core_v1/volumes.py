"""core/v1: the volumes of pods, and the sources that projected and ephemeral volumes combine.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidatorFunctionWrapHandler, WrapValidator

from kcm.api.core_v1.disks import PodDisks
from kcm.api.core_v1.volume_claims import PersistentVolumeClaimSpec
from kcm.api.core_v1.volume_sources import (
    ConfigMapVolumeSource,
    CSIVolumeSource,
    DownwardAPIVolumeFile,
    DownwardAPIVolumeSource,
    EmptyDirVolumeSource,
    HostPathVolumeSource,
    ImageVolumeSource,
    KeyToPath,
    NFSVolumeSource,
    PersistentVolumeClaimVolumeSource,
    SecretVolumeSource,
)
from kcm.apimachinery.base import Bool, Int32, Int64, JsonObject, Model, StringMap
from kcm.apimachinery.meta_v1 import LabelSelector, ObjectMeta


class SecretProjection(Model):
    """The keys of a Secret as files of a projected volume."""

    name: str | None = None
    items: list[KeyToPath] | None = None
    optional: Bool | None = None


class ConfigMapProjection(Model):
    """The keys of a ConfigMap as files of a projected volume."""

    name: str | None = None
    items: list[KeyToPath] | None = None
    optional: Bool | None = None


class DownwardAPIProjection(Model):
    """Fields of the pod as files of a projected volume."""

    items: list[DownwardAPIVolumeFile] | None = None


class ServiceAccountTokenProjection(Model):
    """A file with a token of the pod's service account."""

    audience: str | None = None
    expiration_seconds: Int64 | None = None
    path: str = ""


class ClusterTrustBundleProjection(Model):
    """A file with the certificates of ClusterTrustBundles."""

    name: str | None = None
    signer_name: str | None = None
    label_selector: LabelSelector | None = None
    optional: Bool | None = None
    path: str = ""


class PodCertificateProjection(Model):
    """A private key, and the certificate chain that a signer issues to the pod for it."""

    signer_name: str | None = None
    key_type: str | None = None
    max_expiration_seconds: Int32 | None = None
    credential_bundle_path: str | None = None
    key_path: str | None = None
    certificate_chain_path: str | None = None
    user_annotations: StringMap | None = None


class VolumeProjection(Model):
    """One source of a projected volume. Exactly one field is set."""

    secret: SecretProjection | None = None
    downward_api: DownwardAPIProjection | None = None
    config_map: ConfigMapProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    pod_certificate: PodCertificateProjection | None = None


class ProjectedVolumeSource(Model):
    """The files of several sources in one directory."""

    sources: list[VolumeProjection] = Field(default_factory=list)
    default_mode: Int32 | None = None


# The source of the volume that admission adds to most pods, as JSON and as an object.
_TOKEN_VOLUME: JsonObject = {
    "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [
                    {
                        "path": "namespace",
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                    }
                ]
            }
        },
    ],
    "defaultMode": 0o644,
}
TOKEN_VOLUME = ProjectedVolumeSource.model_validate(_TOKEN_VOLUME)


def _share(value: object, decode: ValidatorFunctionWrapHandler) -> object:
    """Returns the one object for all volumes with tokens, which saves half of a pod's memory."""
    return TOKEN_VOLUME if value == _TOKEN_VOLUME else decode(value)


class PersistentVolumeClaimTemplate(Model):
    """The metadata and spec of the claim that is created for an ephemeral volume."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = Field(default_factory=PersistentVolumeClaimSpec)


class EphemeralVolumeSource(Model):
    """A volume whose claim is created for the pod and deleted with it."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class Volume(PodDisks):
    """A volume of a pod. Exactly one of its sources is set.

    kcm's kubelet supports the sources hostPath, emptyDir, configMap, secret, downwardAPI and
    projected. The sources of `kcm.api.core_v1.disks` are attributes as well.
    """

    name: str = ""
    host_path: HostPathVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    projected: Annotated[ProjectedVolumeSource | None, WrapValidator(_share)] = None
    csi: CSIVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None

    def sources(self) -> Mapping[str, Any]:
        """Returns the sources that are set, by their names in JSON. A valid volume has one."""
        values = self.__dict__
        return {wire: source for name, wire in _SOURCES if (source := values[name]) is not None}


_SOURCES = tuple(
    (name, str(field.alias)) for name, field in Volume.model_fields.items() if name != "name"
)
