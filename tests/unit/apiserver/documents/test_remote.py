"""What other servers serve, as the documents see it."""

from __future__ import annotations

from dataclasses import replace

from kcm.apiserver.documents.priorities import Priority
from kcm.apiserver.documents.remote import RemoteVersion, RemoteVersions

PIECE: dict[str, dict[str, str]] = {"paths": {}, "definitions": {}}
FRUITS = RemoteVersion("fruits.example.com", "v1", Priority(1, 1), openapi_v2=PIECE)


def test_openapi_stays_while_only_discovery_changes() -> None:
    first = RemoteVersions([FRUITS])
    second = RemoteVersions([replace(FRUITS, fresh=True)], before=first)
    third = RemoteVersions([replace(FRUITS, resources=({"resource": "fruits"},))], before=second)
    assert first.openapi is first
    assert second.openapi is first
    assert third.openapi is first


def test_openapi_changes_with_a_document_and_with_the_versions() -> None:
    first = RemoteVersions([FRUITS])
    for versions in (
        [],
        [replace(FRUITS, openapi_v2=dict(PIECE))],
        [replace(FRUITS, openapi_v3_hash="A")],
        [replace(FRUITS, version="v2")],
        [FRUITS, replace(FRUITS, version="v2")],
    ):
        other = RemoteVersions(versions, before=first)
        assert other.openapi is other
