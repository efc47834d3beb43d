"""The cases are those of TestWriteClientCAs in
pkg/controlplane/controller/clusterauthenticationtrust/cluster_authentication_trust_controller_test.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kcm import errors
from kcm.apiserver.aggregation.authentication_trust import TrustedAuthorities, build_data
from tests.integration.apiserver.authority import Authority

NOW = datetime.now(UTC)
LISTS = {
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    "requestheader-allowed-names": '["front-proxy-client"]',
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("authorities")
    return Authority(folder, "one").path, Authority(folder, "two").path


def test_authorities_of_clients_and_of_the_front_proxy(files: tuple[Path, Path]) -> None:
    clients, proxy = files
    both = build_data(TrustedAuthorities(clients, proxy), {}, NOW)
    assert both == LISTS | {
        "client-ca-file": clients.read_text(),
        "requestheader-client-ca-file": proxy.read_text(),
    }
    assert build_data(TrustedAuthorities(clients), {}, NOW) == {
        "client-ca-file": clients.read_text()
    }
    assert build_data(TrustedAuthorities(), {}, NOW) == {}


def test_what_other_servers_have_added_stays(files: tuple[Path, Path]) -> None:
    mine, other = files
    authorities = TrustedAuthorities(mine, mine)
    present = {
        "client-ca-file": other.read_text(),
        "requestheader-client-ca-file": other.read_text(),
        "requestheader-allowed-names": '["other"]',
    }
    data = build_data(authorities, present, NOW)
    assert data["client-ca-file"] == other.read_text() + mine.read_text()
    assert data["requestheader-client-ca-file"] == other.read_text() + mine.read_text()
    assert data["requestheader-allowed-names"] == '["other","front-proxy-client"]'
    assert build_data(authorities, data, NOW) == data


def test_what_has_expired_goes(files: tuple[Path, Path]) -> None:
    later = NOW + timedelta(days=2)
    assert build_data(TrustedAuthorities(files[0]), {}, later) == {}


@pytest.mark.parametrize("rubbish", ["x", "[" * 100_000, '{"a": 1}', "[1, null]"])
def test_rubbish_is_written_anew(files: tuple[Path, Path], rubbish: str) -> None:
    present = dict.fromkeys([*LISTS, "client-ca-file", "requestheader-client-ca-file"], rubbish)
    data = build_data(TrustedAuthorities(front_proxy=files[0]), present, NOW)
    assert data == LISTS | {"requestheader-client-ca-file": files[0].read_text()}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigurationError, match=r"none\.crt"):
        build_data(TrustedAuthorities(tmp_path / "none.crt"), {}, NOW)
