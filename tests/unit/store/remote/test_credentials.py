from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kcm import errors
from kcm.apiserver.credentials import certificate
from kcm.store.remote.accounts import request_token
from kcm.store.remote.credentials import Credential, Identity, run_plugin
from kcm.testing.clock import FakeClock
from tests.unit.store.remote.answers import Answers

V1 = "client.authentication.k8s.io/v1"
LATER = "2999-01-01T00:00:00Z"


class Source:
    """Gives one identity after the other; an exception is raised."""

    def __init__(self, *given: Identity | Exception) -> None:
        self._given = list(given)

    def __call__(self) -> Identity:
        given = self._given.pop(0)
        if isinstance(given, Exception):
            raise given
        return given


def test_an_identity_is_read_again_when_it_is_no_longer_good() -> None:
    clock = FakeClock()
    credential = Credential(Source(Identity("a", good_for=60), Identity("b")), clock)
    assert credential.current().token == "a"
    clock.step(59)
    assert credential.current().token == "a"
    clock.step(1)
    assert credential.current().token == "b"


def test_one_that_the_server_refused_is_read_anew() -> None:
    credential = Credential(Source(Identity("a"), Identity("b")), FakeClock())
    assert credential.current().token == "a"
    credential.drop()
    assert credential.current().token == "b"


def test_while_reading_fails_the_last_one_is_used() -> None:
    clock = FakeClock()
    source = Source(Identity("a", good_for=60), OSError("away"), Identity("b"))
    credential = Credential(source, clock)
    credential.current()
    clock.step(60)
    assert credential.current().token == "a"
    clock.step(5)
    assert credential.current().token == "b"


def test_a_certificate_is_used_when_its_key_is_there_too(tmp_path: Path) -> None:
    first, second = (certificate(tmp_path, stem=name) for name in ("first", "second"))
    between = second.certificate.read_bytes() + first.key.read_bytes()
    later = second.certificate.read_bytes() + second.key.read_bytes()
    source = Source(Identity("a", good_for=60), Identity("b", between), Identity("c", later))
    clock = FakeClock()
    credential = Credential(source, clock)
    credential.current()
    clock.step(60)
    assert credential.current() == Identity("a", good_for=60)
    clock.step(5)
    assert credential.current() == Identity("c", later)


def test_the_first_failure_is_told() -> None:
    with pytest.raises(OSError, match="away"):
        Credential(Source(OSError("away"))).current()


def write_plugin(folder: Path, answer: Any, code: int = 0) -> dict[str, Any]:
    """Writes a plugin that answers so, and returns its entry. It keeps what it was told."""
    script = folder / "plugin.py"
    script.write_text(
        "import os, pathlib, sys\n"
        f"pathlib.Path({str(folder / 'told')!r}).write_text(os.environ['KUBERNETES_EXEC_INFO'])\n"
        f"print({json.dumps(answer)!r})\n"
        "print(os.environ['SAYS'], file=sys.stderr)\n"
        f"sys.exit({code})\n"
    )
    env = [{"name": "SAYS", "value": "please log in"}]
    return {"apiVersion": V1, "command": sys.executable, "args": [str(script)], "env": env}


def test_a_plugin_gives_a_token_and_when_it_expires(tmp_path: Path) -> None:
    status = {"token": "t", "expirationTimestamp": LATER}
    plugin = write_plugin(tmp_path, {"status": status}) | {"provideClusterInfo": True}
    identity = run_plugin(plugin, tmp_path, {"server": "https://s"})
    assert identity.token == "t"
    assert 0 < identity.good_for < float("inf")
    told = json.loads((tmp_path / "told").read_text())
    assert (told["apiVersion"], told["kind"]) == (V1, "ExecCredential")
    assert told["spec"] == {"interactive": False, "cluster": {"server": "https://s"}}


def test_a_plugin_gives_a_certificate(tmp_path: Path) -> None:
    status = {"clientCertificateData": "cert", "clientKeyData": "key"}
    identity = run_plugin(write_plugin(tmp_path, {"status": status}), tmp_path, {})
    assert (identity.certificate, identity.good_for) == (b"cert\nkey", float("inf"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "v1alpha1"),
        ({"command": "./missing", "installHint": "get it"}, "get it"),
        ({"args": ["-c", "print('no json')"]}, "Expecting value"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_told(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    plugin = write_plugin(tmp_path, {"status": {}}) | change
    with pytest.raises(errors.ConfigurationError, match=words):
        run_plugin(plugin, tmp_path, {})


def test_a_plugin_that_fails_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigurationError, match="please log in"):
        run_plugin(write_plugin(tmp_path, {}, code=1), tmp_path, {})


ACCOUNTS = "/api/v1/namespaces/kube-system/serviceaccounts"
TOKEN = {"status": {"token": "t", "expirationTimestamp": LATER}}


def test_the_token_of_an_account_is_asked_for() -> None:
    client = Answers({f"GET {ACCOUNTS}/job": {}, f"POST {ACCOUNTS}/job/token": TOKEN})
    assert request_token(client, "kube-system", "job").token == "t"
    assert client.asked[-1][1] == {"spec": {"expirationSeconds": 3600}}


@pytest.mark.parametrize("created", [{}, errors.AlreadyExists("another was faster")])
def test_an_account_that_is_missing_is_created(created: Any) -> None:
    client = Answers({f"POST {ACCOUNTS}": created, f"POST {ACCOUNTS}/job/token": TOKEN})
    assert request_token(client, "kube-system", "job").token == "t"
    assert [request for request, _ in client.asked] == [
        f"GET {ACCOUNTS}/job",
        f"POST {ACCOUNTS}",
        f"POST {ACCOUNTS}/job/token",
    ]


def test_a_token_lives_ten_minutes_at_least_whatever_the_clocks_say() -> None:
    past = {"status": {"token": "t", "expirationTimestamp": "2001-01-01T00:00:00Z"}}
    client = Answers({f"GET {ACCOUNTS}/job": {}, f"POST {ACCOUNTS}/job/token": past})
    assert request_token(client, "kube-system", "job").good_for == 480


def test_a_server_that_gives_no_token_is_asked_again() -> None:
    """It refuses while it has not read its rules yet."""
    client = Answers({f"GET {ACCOUNTS}/job": errors.Forbidden("cannot get serviceaccounts")})
    with pytest.raises(errors.StoreUnavailable, match="no token for the account job"):
        request_token(client, "kube-system", "job")
