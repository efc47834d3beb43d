"""How objects are named, and where they are."""

from __future__ import annotations

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.testing.control_plane.objects import path_of
from kcm.testing.history.snapshot import split_name


@pytest.mark.parametrize(
    ("name", "namespace", "path"),
    [
        ("deployment/web", "shop", "/apis/apps/v1/namespaces/shop/deployments/web"),
        ("po/web", "default", "/api/v1/namespaces/default/pods/web"),
        ("node/node-1", "default", "/api/v1/nodes/node-1"),
    ],
)
def test_an_object_is_found_by_kind_and_name(name: str, namespace: str, path: str) -> None:
    kind, own = split_name(name)
    resource = BUILT_IN.lookup(kind)
    assert path_of(resource, namespace, own) == path


def test_a_kind_of_all_namespaces_has_the_path_without_one() -> None:
    resource = BUILT_IN.lookup("pod")
    assert path_of(resource, None) == "/api/v1/pods"


@pytest.mark.parametrize("name", ["deployment", "deployment/", ""])
def test_a_name_without_kind_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(ValueError, match="not of the form kind/name, like deployment/web"):
        split_name(name)
