"""What flags and environment of the program `kube-apiserver` become."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcm import errors
from kcm.testing.envtest import options
from kcm.testing.envtest.flags import ACTED_ON, FLAGS
from kcm.testing.envtest.options import CONTROLLERS, NODES


def test_without_flags_it_is_the_real_server_without_flags() -> None:
    read = options.read({}, {})
    assert (read.api.address.host, read.api.address.port) == ("0.0.0.0", 6443)
    assert read.api.modes == ("AlwaysAllow",)
    assert read.api.anonymous
    assert not read.api.local_storage_class
    assert read.settings["service_cluster_ip_range"] == "10.0.0.0/24"
    assert read.is_bare


def test_every_flag_that_is_acted_on_is_read() -> None:
    acted_on = [flag for flag in FLAGS.values() if flag.treatment == ACTED_ON]
    values = {flag.name: "true" if flag.is_boolean else "0" for flag in acted_on}
    del values["etcd-servers"]  # which the program itself reads
    changed = {"enable-admission-plugins": "", "runtime-config": "", "request-timeout": "0s"}
    with pytest.raises(errors.ConfigurationError) as raised:  # no such files
        options.read({**values, **changed}, {})
    assert "File '0' does not exist" in str(raised.value)


def test_flags_become_settings_and_options() -> None:
    read = options.read(
        {
            "disable-admission-plugins": "ServiceAccount",
            "service-cluster-ip-range": "10.9.0.0/24",
            "anonymous-auth": "false",
            "request-timeout": "1m30s",
            "service-account-issuer": "https://a,https://b",
            "service-account-signing-key-file": "/keys/sa.key",
        },
        {},
    )
    assert read.settings["disable_admission_plugins"] == "ServiceAccount"
    assert read.settings["service_cluster_ip_range"] == "10.9.0.0/24"
    assert not read.api.anonymous
    assert read.api.limits.request_timeout == 90
    assert read.api.tokens.issuers == ("https://a", "https://b")
    assert read.signing_key == "/keys/sa.key"


def test_the_certificate_of_the_folder_is_served_if_it_is_there(tmp_path: Path) -> None:
    empty = options.read({"cert-dir": str(tmp_path)}, {})
    assert empty.api.certificate is None
    assert empty.cert_dir == str(tmp_path)
    for name in ("apiserver.crt", "apiserver.key"):
        (tmp_path / name).touch()
    whole = options.read({"cert-dir": str(tmp_path)}, {})
    served = whole.api.certificate
    assert served is not None
    assert whole.cert_dir == ""
    assert served.certificate == tmp_path / "apiserver.crt"


def test_the_environment_asks_for_controllers_and_nodes() -> None:
    read = options.read({}, {CONTROLLERS: "namespace,garbage-collector", NODES: "2"})
    assert read.controllers == ("namespace", "garbage-collector")
    assert read.nodes == 2
    assert not read.is_bare


@pytest.mark.parametrize(
    ("values", "environment", "words"),
    [
        ({}, {NODES: "many"}, "KCM_ENVTEST_NODES=many is no number"),
        ({"secure-port": "x"}, {}, "'x' is not a valid integer"),
        (
            {"enable-admission-plugins": "AlwaysPullImages"},
            {},
            "kcm does not have the admission plugin AlwaysPullImages",
        ),
        ({"enable-admission-plugins": "NodRestriction"}, {}, "did you mean NodeRestriction"),
        ({"runtime-config": "api/all=true"}, {}, "kcm serves the versions that are on by default"),
        ({"tls-cert-file": "/no/such"}, {}, "/no/such"),
    ],
)
def test_what_cannot_be_done_is_told(
    values: dict[str, str], environment: dict[str, str], words: str
) -> None:
    with pytest.raises(errors.ConfigurationError) as raised:
        options.read(values, environment)
    assert words in str(raised.value)


def test_plugins_that_are_on_need_not_be_enabled() -> None:
    enabled = {"enable-admission-plugins": "NodeRestriction,ResourceQuota,PodSecurity"}
    assert options.read(enabled, {}) == options.read({}, {})
