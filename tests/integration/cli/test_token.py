"""Tests the commands `kcm token`."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from kcm.api.core_v1 import Secret
from kcm.helpers import bootstrap_tokens
from kcm.helpers.bootstrap_tokens import parse_token, read_groups, read_usages, read_value
from kcm.store import Store
from tests.integration.cli.conftest import Run

TOKEN = "07401b.f395accd246ae52d"


def stored(store: Store, token_id: str) -> Secret:
    resource = Secret.resource
    found = store.get(resource, f"kube-system/bootstrap-token-{token_id}")
    assert isinstance(found, Secret)
    return found


@pytest.fixture
def admin(tmp_path: Path) -> Path:
    """Returns the kubeconfig of an administrator."""
    authority = base64.b64encode(b"the certificate").decode()
    cluster = {"server": "https://127.0.0.1:8001", "certificate-authority-data": authority}
    path = tmp_path / "kubeconfig"
    content = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "the administrator's"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_token_is_created_listed_and_deleted(run: Run, store: Store) -> None:
    made = run("token", "create", "--description", "for worker-7", "--ttl", "1h").stdout.strip()
    parsed = parse_token(made)
    assert parsed is not None
    secret = stored(store, parsed[0])
    assert bootstrap_tokens.is_bootstrap_token(secret)
    assert read_usages(secret) == ["authentication", "signing"]
    groups = ("system:bootstrappers", "system:bootstrappers:kcm:default-node-token")
    assert read_groups(secret) == groups
    _, row = run("token", "list").stdout.splitlines()
    assert row.split()[0] == made
    assert "0:59:5" in row
    assert "for worker-7" in row
    assert run("token", "delete", made).stdout == f'bootstrap token "{parsed[0]}" deleted\n'
    assert len(run("token", "list").stdout.splitlines()) == 1
    assert "not found" in run("token", "delete", parsed[0]).stderr


def test_a_given_token_may_last_for_ever(run: Run, store: Store) -> None:
    flags = ["--ttl", "0s", "--usages", "authentication", "--groups", ""]
    assert run("token", "create", TOKEN, *flags).stdout.strip() == TOKEN
    secret = stored(store, "07401b")
    assert read_value(secret, "expiration") == ""
    assert read_usages(secret) == ["authentication"]
    assert read_groups(secret) == ("system:bootstrappers",)
    assert "<forever>" in run("token", "list").stdout


def test_the_join_command_has_the_servers_certificate_and_no_other_secret(
    run: Run, admin: Path
) -> None:
    flags = ["--kubeconfig", str(admin), "--server", "https://10.0.0.1:6443"]
    lines = run("token", "create", TOKEN, "--print-join-command", *flags).stdout
    assert lines.splitlines()[-1] == "kcm kubelet --bootstrap-kubeconfig join.kubeconfig"
    text = lines.partition("\n")[2].partition("END\n")[0]
    config = yaml.safe_load(text)
    assert config["clusters"][0]["cluster"]["server"] == "https://10.0.0.1:6443"
    assert config["users"][0]["user"] == {"token": TOKEN}
    assert "the administrator's" not in lines


def test_a_server_without_a_certificate_gets_no_token(run: Run, admin: Path, store: Store) -> None:
    config = yaml.safe_load(admin.read_text())
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    admin.write_text(yaml.safe_dump(config))
    refused = run("token", "create", TOKEN, "--print-join-command", "--kubeconfig", str(admin))
    assert refused.exit_code == 1
    assert "use an API server with TLS" in refused.stderr
    assert not store.in_namespace(Secret.resource, "kube-system")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["short"], "the token must be of the form"),
        (["--usages", "dancing"], "the usage 'dancing' is not one of signing, authentication"),
        (["--groups", "system:masters"], "the group 'system:masters' is not of the form"),
    ],
)
def test_what_no_token_may_have_is_refused(run: Run, flags: list[str], words: str) -> None:
    refused = run("token", "create", *flags)
    assert refused.exit_code == 1
    assert words in refused.stderr


def test_a_generated_token_is_not_stored(run: Run) -> None:
    assert parse_token(run("token", "generate").stdout.strip()) is not None
    assert len(run("token", "list").stdout.splitlines()) == 1


@pytest.mark.parametrize("value", ["07401B", "short", "07401b.short", "07401\u0662"])
def test_what_names_no_token_is_refused_before_any_is_deleted(
    run: Run, store: Store, value: str
) -> None:
    run("token", "create", TOKEN)
    refused = run("token", "delete", "07401b", value)
    assert refused.exit_code == 1
    assert "is neither a token nor its id" in refused.stderr
    stored(store, "07401b")
