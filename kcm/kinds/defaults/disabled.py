"""Removes fields whose feature gates are off by default in Kubernetes 1.36.

Source: dropDisabledFields in pkg/api/pod/util.go and pkg/features/kube_features.go, Kubernetes
1.36.
"""

from __future__ import annotations

from typing import TypeVar

from kcm.api.core_v1 import Container, PodSpec, Volume
from kcm.api.core_v1.volumes import VolumeProjection
from kcm.kinds.defaults.defaulting import change_fields, fill_each

ContainerT = TypeVar("ContainerT", bound=Container)


def without_disabled(spec: PodSpec) -> PodSpec:
    """Returns the spec without the fields of disabled features.

    These are the group with which a pod is scheduled (GenericWorkload), stop signals
    (ContainerStopSignals), and projections of trust bundles (ClusterTrustBundleProjection) and pod
    certificates (PodCertificateRequest).
    """
    return change_fields(
        spec,
        scheduling_group=None,
        volumes=fill_each(spec.volumes, _volume),
        containers=fill_each(spec.containers, _container),
        init_containers=fill_each(spec.init_containers, _container),
        ephemeral_containers=fill_each(spec.ephemeral_containers, _container),
    )


def _container(container: ContainerT) -> ContainerT:
    hooks = container.lifecycle
    if hooks is None or hooks.stop_signal is None:
        return container
    others = hooks.replace(stop_signal=None)
    is_empty = others.post_start is None and others.pre_stop is None
    return container.replace(lifecycle=None if is_empty else others)


def _volume(volume: Volume) -> Volume:
    if volume.projected is None:
        return volume
    sources = fill_each(volume.projected.sources, _projection) or []
    return change_fields(volume, projected=change_fields(volume.projected, sources=sources))


def _projection(source: VolumeProjection) -> VolumeProjection:
    return change_fields(source, cluster_trust_bundle=None, pod_certificate=None)
