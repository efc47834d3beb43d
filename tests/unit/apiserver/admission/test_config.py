from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from kcm.apiserver.admission.config import load_admission_config
from kcm.apiserver.egress.posting import ServiceTarget
from kcm.errors import ConfigurationError

VERSION = "apiserver.config.k8s.io/v1"


def write(folder: Path, name: str, document: Any) -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(document))
    return path


def user(name: str, **fields: str) -> dict[str, Any]:
    return {"name": name, "user": fields}


def config(folder: Path, users: list[Any], **more: Any) -> Path:
    write(folder, "hooks.yaml", {"users": users, **more})
    hook = {
        "apiVersion": VERSION,
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": "hooks.yaml",
    }
    plugin = {"name": "ValidatingAdmissionWebhook", "configuration": hook}
    return write(
        folder,
        "admission.yaml",
        {"apiVersion": VERSION, "kind": "AdmissionConfiguration", "plugins": [plugin]},
    )


def token(folder: Path, users: list[Any], target: str | ServiceTarget, **more: Any) -> str:
    loaded = load_admission_config(config(folder, users, **more)).validating
    if isinstance(target, str):
        credentials = loaded.find_for_url(target)
    else:
        credentials = loaded.find_for_service(target)
    return dict(credentials.headers).get(b"authorization", b"").decode()


SERVICE = ServiceTarget("system", "hook")
OTHER_PORT = ServiceTarget("system", "hook", 8443)


# after TestAuthenticationDetection in staging/src/k8s.io/apiserver/pkg/util/webhook
@pytest.mark.parametrize(
    ("names", "target", "chosen"),
    [
        (["hook.system.svc"], SERVICE, "hook.system.svc"),
        (["hook.system.svc:443", "hook.system.svc"], SERVICE, "hook.system.svc:443"),
        (["hook.system.svc"], OTHER_PORT, ""),
        (["hook.system.svc:8443"], OTHER_PORT, "hook.system.svc:8443"),
        (["*.system.svc", "*.svc"], SERVICE, "*.system.svc"),
        (["*.svc"], SERVICE, "*.svc"),
        (["*.other.svc"], SERVICE, ""),
        (["*", "*.svc"], SERVICE, "*.svc"),
        (["*"], SERVICE, "*"),
        (["hooks.example.com"], "https://hooks.example.com/admit", "hooks.example.com"),
        (["hooks.example.com:9443"], "https://hooks.example.com:9443", "hooks.example.com:9443"),
        ([], SERVICE, ""),
    ],
)
def test_a_server_gets_the_credentials_that_are_meant_for_it(
    tmp_path: Path, names: list[str], target: str | ServiceTarget, chosen: str
) -> None:
    users = [user(name, token=name) for name in names]
    assert token(tmp_path, users, target) == (f"Bearer {chosen}" if chosen else "")


def test_others_get_those_of_the_current_context(tmp_path: Path) -> None:
    contexts = [{"name": "c", "context": {"user": "someone"}}]
    more = {"contexts": contexts, "current-context": "c"}
    users = [user("someone", username="a", password="b")]
    given = base64.b64encode(b"a:b").decode()
    assert token(tmp_path, users, SERVICE, **more) == f"Basic {given}"


def test_a_token_may_be_in_a_file_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    assert token(tmp_path, [user("*", tokenFile="token")], SERVICE) == "Bearer secret"


def test_mutating_webhooks_get_nothing_that_is_meant_for_validating_ones(tmp_path: Path) -> None:
    loaded = load_admission_config(config(tmp_path, [user("*", token="t")]))
    assert not loaded.mutating.find_for_service(SERVICE).headers


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "is not of kind AdmissionConfiguration"),
        ({"kind": "AdmissionConfiguration"}, "apiVersion None is not apiserver.config.k8s.io/v1"),
        ({"plugins": [{"name": "ImagePolicyWebhook"}]}, "plugin 'ImagePolicyWebhook' is not known"),
        ({"plugins": ["a"]}, "plugin None is not known"),
        (
            {"plugins": [{"name": "MutatingAdmissionWebhook", "configuration": {}}]},
            "kubeConfigFile of MutatingAdmissionWebhook is missing",
        ),
        (
            {"plugins": [{"name": "MutatingAdmissionWebhook", "path": "missing.yaml"}]},
            "missing.yaml cannot be read",
        ),
    ],
)
def test_what_is_wrong_with_the_file_is_said(
    tmp_path: Path, document: dict[str, Any], words: str
) -> None:
    if "plugins" in document:
        document = {"kind": "AdmissionConfiguration", "apiVersion": VERSION, **document}
    with pytest.raises(ConfigurationError, match=words):
        load_admission_config(write(tmp_path, "admission.yaml", document))


@pytest.mark.parametrize(
    ("users", "words"),
    [
        ([{"user": {}}], "is not a kubeconfig"),
        ([user("*", tokenFile="missing")], "No such file"),
        ([user("*", **{"client-key-data": "!"})], "kubeconfig"),
        ([user("*", **{"client-key-data": "YQ=="})], "belong together"),
        ([user("*", token="a\r\nX-Other: b")], "token has characters that a header cannot have"),
        ([{"name": "*", "user": {"exec": {"command": "x"}}}], "exec, which is not supported"),
    ],
)
def test_what_is_wrong_with_the_kubeconfig_is_said(
    tmp_path: Path, users: list[Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        load_admission_config(config(tmp_path, users))
