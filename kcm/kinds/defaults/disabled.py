"""Removes fields whose feature gates are off in Kubernetes 1.33.

Source: dropDisabledFields in pkg/api/pod/util.go and pkg/features/kube_features.go, Kubernetes
1.33.
"""

from __future__ import annotations

from typing import TypeVar

from kcm.api.core_v1 import Container, PodSpec, Volume
from kcm.api.core_v1.volumes import VolumeProjection
from kcm.kinds.defaults.defaulting import change_fields, fill_each

ContainerT = TypeVar("ContainerT", bound=Container)


def without_disabled(spec: PodSpec) -> PodSpec:
    """Returns the spec without the fields of disabled features.

    These are resources of the whole pod (PodLevelResources), resource claims
    (DynamicResourceAllocation), image volumes (ImageVolume), trust bundles
    (ClusterTrustBundleProjection) and stop signals (ContainerStopSignals).
    """
    return change_fields(
        spec,
        resources=None,
        resource_claims=None,
        volumes=fill_each(spec.volumes, _volume),
        containers=fill_each(spec.containers, _container),
        init_containers=fill_each(spec.init_containers, _container),
        ephemeral_containers=fill_each(spec.ephemeral_containers, _container),
    )


def _container(container: ContainerT) -> ContainerT:
    if container.resources.claims is not None:
        container = container.replace(resources=container.resources.replace(claims=None))
    if container.lifecycle is not None and container.lifecycle.stop_signal is not None:
        container = container.replace(lifecycle=container.lifecycle.replace(stop_signal=None))
    return container


def _volume(volume: Volume) -> Volume:
    if volume.projected is not None:
        sources = fill_each(volume.projected.sources, _projection) or []
        projected = change_fields(volume.projected, sources=sources)
        return change_fields(volume, projected=projected, image=None)
    return change_fields(volume, image=None)


def _projection(source: VolumeProjection) -> VolumeProjection:
    return change_fields(source, cluster_trust_bundle=None)
