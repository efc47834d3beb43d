"""The builders build objects that survive encoding and decoding."""

import pytest

from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.testing import builders

OBJECTS = [
    builders.pod(),
    builders.pod(owner=builders.replica_set(), phase="Running", ready=True, node="n1"),
    builders.replica_set(),
    builders.deployment(),
    builders.node(),
    builders.namespace(),
    builders.lease(),
    builders.event(builders.pod()),
]


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda obj: obj.kind)
def test_what_a_builder_makes_survives_a_round_trip(obj: KubeObject) -> None:
    assert codec.decode(codec.encode(obj), BUILT_IN) == obj


def test_a_pod_with_an_owner_bears_the_labels_of_the_template() -> None:
    owner = builders.replica_set("api")
    assert builders.pod(owner=owner).labels == {"app": "api"}
