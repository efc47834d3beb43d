"""The parts of a pod that the subresources ephemeralcontainers and resize change.

Source: podEphemeralContainersStrategy and podResizeStrategy in pkg/registry/core/pod/strategy.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.core_v1 import Container, Pod


def with_ephemeral_containers(new: Pod, old: Pod) -> Pod:
    """Returns the old pod with the new one's ephemeral containers."""
    changed = new.spec.ephemeral_containers or None
    return _with_managers(old.with_spec(old.spec.replace(ephemeral_containers=changed)), new)


def with_resources(new: Pod, old: Pod) -> Pod:
    """Returns the old pod with the new one's resources and resize policies.

    A pod whose containers were added, removed, renamed or moved is returned as it is, for
    validation to find.
    """
    containers = _merge(new.spec.containers, old.spec.containers)
    inits = _merge(new.spec.init_containers or (), old.spec.init_containers or ())
    if containers is None or inits is None:
        return new
    spec = old.spec.replace(
        containers=containers, init_containers=inits or old.spec.init_containers
    )
    return _with_managers(old.with_spec(spec), new)


def _merge(new: Sequence[Container], old: Sequence[Container]) -> list[Container] | None:
    """Returns the old containers with the new ones' resources, None if the names differ."""
    if [container.name for container in new] != [container.name for container in old]:
        return None
    return [
        before.replace(resources=after.resources, resize_policy=after.resize_policy)
        for after, before in zip(new, old, strict=True)
    ]


def _with_managers(pod: Pod, new: Pod) -> Pod:
    return pod.with_metadata(managed_fields=new.metadata.managed_fields)
