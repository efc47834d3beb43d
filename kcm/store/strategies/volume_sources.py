"""What the volume of a claim is filled from: `dataSource`, and `dataSourceRef` that came after it.

Source: pkg/api/persistentvolumeclaim/util.go (DropDisabledFields,
EnforceDataSourceBackwardsCompatibility, NormalizeDataSources), Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import PersistentVolumeClaimSpec
from kcm.api.core_v1.references import TypedLocalObjectReference, TypedObjectReference

_SNAPSHOT = ("snapshot.storage.k8s.io", "VolumeSnapshot")
_CLAIM = ("", "PersistentVolumeClaim")


def complete_sources(
    new: PersistentVolumeClaimSpec, old: PersistentVolumeClaimSpec | None
) -> PersistentVolumeClaimSpec:
    """Returns the spec with both fields if one is set, without what the API ignores.

    A `dataSource` that is neither a claim nor a snapshot is dropped, as before `dataSourceRef`
    came; so is a reference to another namespace, which is behind a gate that is off. What the old
    spec has stays.
    """
    source, ref = new.data_source, new.data_source_ref
    if old is not None and (source, ref) == (old.data_source, old.data_source_ref):
        return new  # the spec may not change, though it was stored without one of them
    if ref is not None and ref.namespace and (old is None or old.data_source_ref is None):
        ref = None
    has_none = old is None or old.data_source is None
    if ref is None and has_none and source is not None and not _was_always_accepted(source):
        source = None
    if source is not None and ref is None:
        ref = TypedObjectReference(**_fields(source))
    elif ref is not None and source is None and not ref.namespace:
        source = TypedLocalObjectReference(**_fields(ref))
    if source is new.data_source and ref is new.data_source_ref:
        return new
    return new.replace(data_source=source, data_source_ref=ref)


def _was_always_accepted(source: TypedLocalObjectReference) -> bool:
    return (source.api_group or "", source.kind) in (_SNAPSHOT, _CLAIM)


def _fields(source: TypedLocalObjectReference | TypedObjectReference) -> dict[str, str | None]:
    return {"api_group": source.api_group, "kind": source.kind, "name": source.name}
