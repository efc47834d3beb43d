from __future__ import annotations

from typing import Any

import pytest

from kcm.apiserver.http.bodies.protobuf import decode
from kcm.apiserver.http.bodies.protobuf_encoding import encode_body
from kcm.apiserver.http.bodies.protobuf_messages import table
from tests.samples import BODIES, manifest


def send(value: dict[str, Any]) -> dict[str, Any]:
    return decode(encode_body(value, f"{value['apiVersion']}.{value['kind']}"))


@pytest.mark.parametrize("name", [name for name in BODIES if name != "secrets"])
def test_a_sample_of_every_kind_comes_back_as_it_was_sent(name: str) -> None:
    assert send(manifest(name)) == manifest(name) | {"metadata": manifest(name)["metadata"]}


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "annotations": {"x": ""}},
    "spec": {
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
        "containers": [
            {
                "name": "c",
                "resources": {"limits": {"cpu": "100m"}},
                "env": [
                    {
                        "name": "P",
                        "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "k"}},
                    }
                ],
                "livenessProbe": {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 5},
                "readinessProbe": {"tcpSocket": {"port": 80}},
            }
        ],
        "tolerations": [{"key": "k", "tolerationSeconds": 0}],
        "ephemeralContainers": [{"name": "d", "image": "i"}],
    },
}

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s"},
    "data": {"password": "AAH/"},
    "immutable": False,
}

REVIEW = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SubjectAccessReview",
    "spec": {"user": "ada", "extra": {"scopes": ["a", "b"]}},
}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(POD, id="inlined structs, numbers or names, quantities"),
        pytest.param(SECRET, id="bytes"),
    ],
)
def test_what_json_writes_differently_from_protobuf_comes_out_as_json(
    value: dict[str, Any],
) -> None:
    assert send(value) == value


def test_lists_in_maps_come_out_as_lists() -> None:
    unknown: Any = table().classes["runtime.Unknown"]()  # classes of run time: their fields, too
    unknown.f1.f1, unknown.f1.f2 = REVIEW["apiVersion"], REVIEW["kind"]
    review: Any = table().classes["authorization.k8s.io/v1.SubjectAccessReview"]()
    review.f2.f3 = "ada"
    review.f2.f5["scopes"].f1.extend(["a", "b"])
    unknown.f2 = review.SerializeToString()
    assert decode(b"k8s\x00" + unknown.SerializeToString()) == REVIEW


def test_empty_texts_that_go_leaves_out_are_left_out_and_set_zeros_kept() -> None:
    raw = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "", "generation": 0},
        "spec": {"replicas": 0, "strategy": {"type": ""}, "minReadySeconds": 0},
        "status": {},
    }
    assert send(raw) == raw | {
        "metadata": {"name": "a"},
        "spec": {"replicas": 0, "strategy": {}},
    }


def test_schemas_of_definitions_keep_their_alternatives() -> None:
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": "string"}},
            "open": {"type": "object", "additionalProperties": True},
            "typed": {"type": "object", "additionalProperties": {"type": "integer"}},
            "any": {"x-kubernetes-preserve-unknown-fields": True, "default": {"a": [1, None]}},
        },
    }
    definition = manifest("customresourcedefinitions.apiextensions.k8s.io")
    definition["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    sent = send(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert sent == schema
