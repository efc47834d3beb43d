"""The files of volumes."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import pytest

from kcm.api.core_v1 import ConfigMap, Container, Pod, Secret, Volume
from kcm.api.core_v1.security import PodSecurityContext, SecurityContext
from kcm.apimachinery.base import to_wire
from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.payloads import File, Payloads
from kcm.kubelet.environment.variables import PodLocation
from tests.lookups import FakeLookups


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


KNOWN = FakeLookups(
    {("shop", "c"): ConfigMap(data={"a": "1", "b": "2"}, binary_data={"bin": encode(b"\xff")})},
    {("shop", "s"): Secret(data={"key": encode(b"secret")})},
)
POD = Pod.model_validate(
    {"metadata": {"name": "web", "namespace": "shop", "labels": {"x": "y"}}, "spec": {}}
)
PAYLOADS = Payloads(POD, KNOWN, PodLocation())


def render(payloads: Payloads, kind: str, source: dict[str, Any]) -> dict[str, File]:
    """Returns the files of a volume with this source."""
    volume = Volume.model_validate({"name": "v", to_wire(kind): source})
    files: dict[str, File] = getattr(payloads, kind)(getattr(volume, kind))
    return files


@pytest.mark.parametrize(
    ("kind", "source", "files"),
    [
        ("config_map", {"name": "c"}, {"a": File(b"1"), "b": File(b"2"), "bin": File(b"\xff")}),
        (
            "config_map",
            {"name": "c", "defaultMode": 0o600, "items": [{"key": "a", "path": "x/y"}]},
            {"x/y": File(b"1", 0o600)},
        ),
        (
            "config_map",
            {"name": "c", "items": [{"key": "a", "path": "x", "mode": 0o400}]},
            {"x": File(b"1", 0o400)},
        ),
        ("config_map", {"name": "none", "optional": True}, {}),
        ("config_map", {"name": "c", "optional": True, "items": [{"key": "z", "path": "z"}]}, {}),
        ("secret", {"secretName": "s"}, {"key": File(b"secret")}),
        ("secret", {"secretName": "none", "optional": True}, {}),
        (
            "downward_api",
            {
                "items": [
                    {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
                    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}, "mode": 0o440},
                ]
            },
            {"name": File(b"web"), "labels": File(b'x="y"', 0o440)},
        ),
        (
            "projected",
            {
                "defaultMode": 0o640,
                "sources": [
                    {"configMap": {"name": "c", "items": [{"key": "a", "path": "same"}]}},
                    {"secret": {"name": "s", "items": [{"key": "key", "path": "same"}]}},
                ],
            },
            {"same": File(b"secret", 0o640)},
        ),
    ],
)
def test_sources_become_files(kind: str, source: dict[str, Any], files: dict[str, File]) -> None:
    assert render(PAYLOADS, kind, source) == files


@pytest.mark.parametrize(
    ("kind", "source", "words"),
    [
        ("config_map", {"name": "none"}, 'configmap "none" not found'),
        ("secret", {"secretName": "none"}, 'secret "none" not found'),
        (
            "config_map",
            {"name": "c", "items": [{"key": "z", "path": "z"}]},
            "references non-existent config key: z",
        ),
        (
            "secret",
            {"secretName": "s", "items": [{"key": "z", "path": "z"}]},
            "references non-existent secret key: z",
        ),
        ("downward_api", {"items": [{"path": "a"}]}, "names no field"),
        (
            "projected",
            {"sources": [{"serviceAccountToken": {"path": "token"}}]},
            "no service account",
        ),
        (
            "projected",
            {"sources": [{"clusterTrustBundle": {}}]},
            "cannot have a clusterTrustBundle",
        ),
    ],
)
def test_what_is_missing_is_said(kind: str, source: dict[str, Any], words: str) -> None:
    with pytest.raises(ContainerConfigError, match=words):
        render(PAYLOADS, kind, source)


@dataclass(frozen=True)
class WithTokens(FakeLookups):
    def service_account_token(self, pod: Pod, audience: str, seconds: int) -> str:
        return f"{pod.key} for {audience} {seconds}"


def test_tokens_are_projected_where_there_are_some() -> None:
    source = {"sources": [{"serviceAccountToken": {"path": "t", "audience": "x"}}]}
    files = render(Payloads(POD, WithTokens(), PodLocation()), "projected", source)
    assert files == {"t": File(f"{POD.key} for x 3600".encode())}


@pytest.mark.parametrize(
    ("of_pod", "of_containers", "mode", "owner"),
    [
        (None, [None], 0o644, None),
        (1000, [None], 0o600, 1000),
        (1000, [2000], 0o600, 2000),
        (None, [2000, 2000], 0o600, 2000),
        (None, [2000, None], 0o644, None),
        (None, [2000, 3000], 0o644, None),
    ],
)
def test_a_token_is_for_the_pods_only_user(
    of_pod: int | None, of_containers: list[int | None], mode: int, owner: int | None
) -> None:
    containers = [
        Container(name=f"c{number}", security_context=SecurityContext(run_as_user=user))
        for number, user in enumerate(of_containers)
    ]
    security = PodSecurityContext(run_as_user=of_pod)
    spec = POD.spec.replace(containers=containers, security_context=security)
    source = {"sources": [{"serviceAccountToken": {"path": "t"}}]}
    payloads = Payloads(POD.with_spec(spec), WithTokens(), PodLocation())
    file = render(payloads, "projected", source)["t"]
    assert (file.mode, file.owner) == (mode, owner)
