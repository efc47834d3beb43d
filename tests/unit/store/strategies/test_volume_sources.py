"""What the volume of a claim is filled from."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import PersistentVolumeClaimSpec
from kcm.api.core_v1.references import TypedLocalObjectReference, TypedObjectReference
from kcm.store.strategies.volume_sources import complete_sources

SNAPSHOT = {"api_group": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
CLAIM = {"kind": "PersistentVolumeClaim", "name": "c"}
OTHER = {"api_group": "example.com", "kind": "Backup", "name": "b"}


def spec(
    source: dict[str, str] | None = None, ref: dict[str, str] | None = None
) -> PersistentVolumeClaimSpec:
    return PersistentVolumeClaimSpec(
        data_source=TypedLocalObjectReference(**source) if source else None,
        data_source_ref=TypedObjectReference(**ref) if ref else None,
    )


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (spec(), spec()),
        (spec(CLAIM), spec(CLAIM, CLAIM)),
        (spec(SNAPSHOT), spec(SNAPSHOT, SNAPSHOT)),
        (spec(OTHER), spec()),
        (spec(None, OTHER), spec(OTHER, OTHER)),
        (spec(OTHER, OTHER), spec(OTHER, OTHER)),
        (spec(None, CLAIM | {"namespace": "n"}), spec()),
    ],
)
def test_a_new_claim_has_both_fields_or_none(
    sent: PersistentVolumeClaimSpec, stored: PersistentVolumeClaimSpec
) -> None:
    assert complete_sources(sent, None) == stored


def test_a_client_that_does_not_know_the_newer_field_keeps_it() -> None:
    assert complete_sources(spec(OTHER), spec(OTHER, OTHER)) == spec(OTHER, OTHER)


def test_a_claim_that_was_stored_with_one_field_stays_as_it_is() -> None:
    assert complete_sources(spec(CLAIM), spec(CLAIM)) == spec(CLAIM)
