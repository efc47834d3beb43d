"""Ranges of users: each pod has one, keeps it over restarts, and gives it back with its folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.containers.user_namespaces import LENGTH, UserNamespaces


def give(pods: Path, name: str) -> int:
    """Returns the first id of a pod's range, as a kubelet that has just started sees it."""
    users = UserNamespaces(pods).get(pods / name)
    assert users.uids == users.gids
    (mapping,) = users.uids
    assert (mapping.container_id, mapping.length) == (0, LENGTH)
    return mapping.host_id


def test_each_pod_has_a_range_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    first, second = give(tmp_path, "a"), give(tmp_path, "b")
    assert (first, second) == (LENGTH, 2 * LENGTH)  # never the node's own users
    assert (give(tmp_path, "a"), give(tmp_path, "b")) == (first, second)
    assert UserNamespaces(tmp_path).has(tmp_path / "a")
    assert not UserNamespaces(tmp_path).has(tmp_path / "c")


def test_the_range_of_a_pod_that_is_gone_is_given_again(tmp_path: Path) -> None:
    first, second = give(tmp_path, "a"), give(tmp_path, "b")
    shutil.rmtree(tmp_path / "a")
    assert give(tmp_path, "c") == first
    assert give(tmp_path, "d") == 3 * LENGTH
    assert give(tmp_path, "b") == second


@pytest.mark.parametrize("text", ["", "0", "4096", "65537", "-65536", str(2**32), "x", "65536 0"])
def test_a_file_that_names_no_range_stops_its_pod_and_new_ones(tmp_path: Path, text: str) -> None:
    """It could be the range of containers that run."""
    give(tmp_path, "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "userns").write_text(text)
    for name in ("b", "c"):
        with pytest.raises(ContainerRuntimeError, match="user namespace: "):
            give(tmp_path, name)
    assert give(tmp_path, "a") == LENGTH


def test_a_node_has_only_so_many_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcm.kubelet.containers.user_namespaces._END", 3 * LENGTH)
    give(tmp_path, "a"), give(tmp_path, "b")
    with pytest.raises(ContainerRuntimeError, match="could not find an empty slot"):
        give(tmp_path, "c")
