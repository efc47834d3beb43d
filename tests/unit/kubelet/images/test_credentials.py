"""With whose name an image is pulled. Cases of TestDockerKeyringForGlob and
TestDockerKeyringLookup of pkg/credentialprovider, Kubernetes 1.36.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kcm.api.core_v1 import Pod, Secret
from kcm.kubelet.images.credentials import find_credentials, name_registry
from tests.lookups import FakeLookups


def secret(auths: Any, type_: str = "kubernetes.io/dockerconfigjson") -> Secret:
    key = ".dockercfg" if type_.endswith("cfg") else ".dockerconfigjson"
    text = auths if isinstance(auths, str) else json.dumps(auths)
    data = {key: base64.b64encode(text.encode()).decode()}
    return Secret.model_validate(
        {"metadata": {"name": "s", "namespace": "shop"}, "type": type_, "data": data}
    )


def find(image: str, stored: Secret | None) -> list[tuple[str, str]]:
    pod = Pod.model_validate(
        {
            "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
            "spec": {"imagePullSecrets": [{"name": "gone"}, {"name": "s"}]},
        }
    )
    lookups = FakeLookups(secrets={("shop", "s"): stored} if stored else {})
    return [(each.username, each.password) for each in find_credentials(pod, image, lookups)]


ME = {"username": "me", "password": "word"}


@pytest.mark.parametrize(
    ("registry", "image", "fits"),
    [
        ("hub.example.com", "hub.example.com/team/app:1", True),
        ("https://hub.example.com/v2/", "hub.example.com/team/app:1", True),
        ("hub.example.com/team", "hub.example.com/team/app@sha256:1", True),
        ("hub.example.com/other", "hub.example.com/team/app", False),
        ("*.example.com", "hub.example.com/app", True),
        ("*.com", "hub.example.com/app", False),
        ("h*.example.com", "hub.example.com/app", True),
        ("hub.example.com:5000", "hub.example.com/app", False),
        ("https://index.docker.io/v1/", "busybox", True),
        ("https://index.docker.io/v1/", "me/app", True),
        ("https://index.docker.io/v1/", "docker.io/me/app", True),
        ("https://index.docker.io/v1/", "quay.io/me/app", False),
        ("localhost:5000", "localhost:5000/app", True),
    ],
)
def test_a_registry_gets_what_is_for_it(registry: str, image: str, fits: bool) -> None:
    assert find(image, secret({"auths": {registry: ME}})) == ([("me", "word")] if fits else [])


def test_the_most_specific_comes_first_and_auth_before_the_rest() -> None:
    auth = base64.b64encode(b"you:pass:word").decode()
    auths = {"hub.io": ME, "hub.io/team": {"auth": auth, "username": "x"}}
    assert find("hub.io/team/app", secret({"auths": auths})) == [
        ("you", "pass:word"), ("me", "word"),
    ]  # fmt: skip
    assert find("hub.io/app", secret(auths, "kubernetes.io/dockercfg")) == [("me", "word")]


@pytest.mark.parametrize("auth", ["é", "a", base64.b64encode(b"\xff").decode()])
def test_an_auth_that_is_no_text_leaves_the_other_fields(auth: str) -> None:
    assert find("hub.io/app", secret({"auths": {"hub.io": {**ME, "auth": auth}}})) == [
        ("me", "word")
    ]


@pytest.mark.parametrize(
    "stored",
    [
        None,
        secret("no json"),
        secret("[" * 100_000),
        secret([]),
        secret({"auths": None}),
        secret({"auths": {"hub.io": "text"}}),
        secret({"auths": {"hub.io": ME}}, "Opaque"),
    ],
)
def test_a_secret_that_says_nothing_is_passed_over(stored: Secret | None) -> None:
    assert find("hub.io/app", stored) == []


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("busybox:1", "index.docker.io/library/busybox:1"),
        ("docker.io/library/busybox", "index.docker.io/library/busybox"),
        ("registry/app", "index.docker.io/registry/app"),
        ("localhost/app", "localhost/app"),
    ],
)
def test_an_image_without_a_registry_is_docker_hubs(image: str, registry: str) -> None:
    assert name_registry(image) == registry
