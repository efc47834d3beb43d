"""The root folder of a container, and its environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.cri import ContainerConfig, Mount
from kcm.kubelet.runtime.process.container_root import ContainerRoot, check_mounts, inside


def view(tmp_path: Path, **config: Any) -> ContainerRoot:
    return ContainerRoot(
        tmp_path / "root", ContainerConfig("main", **config), "id1", "web", "127.64.0.9"
    )


@pytest.mark.parametrize(
    ("path", "below"),
    [("/data", "data"), ("data/", "data"), ("/a/../b", "b"), ("/../../etc", "etc"), ("/", "")],
)
def test_a_path_of_the_container_is_below_its_folder(path: str, below: str) -> None:
    assert inside(Path("/root"), path) == Path("/root") / below


def test_references_that_only_the_runtime_knows_are_replaced(tmp_path: Path) -> None:
    container_root = view(
        tmp_path,
        command=["serve", "$(POD_IP)"],
        args=["--dir=$(KCM_ROOT)/data", "$(OTHER)"],
        env=[("WHERE", "$(KCM_ROOT)")],
    )
    root = str(tmp_path / "root")
    assert container_root.argv() == ["serve", "127.64.0.9", f"--dir={root}/data", "$(OTHER)"]
    assert container_root.environment()["WHERE"] == root


def test_the_environment_holds_nothing_of_the_kubelets_but_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("PATH", "/some/bin")
    root = str(tmp_path / "root")
    assert view(tmp_path, env=[("HOME", "/mine")], tty=True).environment() == {
        "PATH": "/some/bin",
        "HOME": "/mine",
        "HOSTNAME": "web",
        "POD_IP": "127.64.0.9",
        "TERM": "xterm",
        "KCM_ROOT": root,
        "KCM_CONTAINER_ID": "id1",
    }


def test_the_working_folder_is_own_a_mounts_the_hosts_or_a_new_one(tmp_path: Path) -> None:
    root, volume = tmp_path / "root", tmp_path / "volume"
    volume.mkdir()
    cases = {
        "": root,
        "/data": root / "data",
        str(volume): volume,
        "$(KCM_ROOT)/data": root / "data",
        "/new/folder": root / "new/folder",
    }
    for named, expected in cases.items():
        container_root = view(tmp_path, working_dir=named, mounts=[Mount(str(volume), "/data")])
        container_root.lay_out()
        assert Path(container_root.working_dir) == expected
        assert expected.is_dir()
        (root / "data").unlink()


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["/a", "/a/"], "two mounts at /a"),
        (["/a", "/a/b"], "the mount /a/b lies inside the mount /a"),
        (["/a", "/a-b", "/a/b"], "lies inside"),
    ],
)
def test_mounts_that_links_cannot_show_are_refused(paths: list[str], words: str) -> None:
    with pytest.raises(ContainerRuntimeError, match=words):
        check_mounts([Mount("/x", path) for path in paths])


def test_nothing_is_mounted_at_the_root(tmp_path: Path) -> None:
    with pytest.raises(ContainerRuntimeError, match="no root file system"):
        view(tmp_path, mounts=[Mount("/x", "/")]).lay_out()


def test_a_nul_byte_goes_nowhere(tmp_path: Path) -> None:
    with pytest.raises(ContainerRuntimeError, match="NUL"):
        view(tmp_path, command=["a\0b"]).argv()
    with pytest.raises(ContainerRuntimeError, match="NUL"):
        view(tmp_path, env=[("A", "a\0argv=b")]).environment()


def test_the_termination_message_is_read_where_a_mount_leads(tmp_path: Path) -> None:
    path = "/dev/termination-log"
    assert view(tmp_path, termination_message_path=path).termination_file == (
        tmp_path / "termination-log"
    )
    mounted = view(tmp_path, termination_message_path=path, mounts=[Mount("/host/file", path)])
    assert mounted.termination_file == Path("/host/file")
    assert mounted.environment()["KCM_TERMINATION_LOG"] == "/host/file"


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ([("one", "/one", True), ("two", "/two", False)], ["one"]),
        ([("one", "/one", True), ("one", "/again", False)], []),
        ([("one", "/one", True), ("one/part", "/part", False)], []),
        ([("one/part", "/part", True), ("one", "/one", False)], []),
        ([("one", "/one", True), ("one/part", "/part", True)], ["one", "one/part"]),
        ([("one", "/one", True), ("ones", "/ones", False)], ["one"]),
        ([("", "/all", True)], []),  # the container's own folder is in it
    ],
)
def test_what_may_be_read_only_does_not_overlap_with_what_may_be_written(
    tmp_path: Path, mounts: list[tuple[str, str, bool]], expected: list[str]
) -> None:
    container_root = ContainerRoot(
        tmp_path / "run" / "root",
        ContainerConfig(
            "main",
            mounts=[Mount(str(tmp_path / path), shown, fixed) for path, shown, fixed in mounts],
        ),
        "id1", "web", "127.64.0.9",
    )  # fmt: skip
    assert container_root.read_only() == [str(tmp_path / path) for path in expected]


def test_mounts_below_the_folder_of_secrets_are_shown_there(tmp_path: Path) -> None:
    token = "kubernetes.io/serviceaccount"
    mounts = [
        Mount("/v/token", f"/var/run/secrets/{token}", read_only=True),
        Mount("/v/vault", "run/secrets/vault"),
        Mount("/v/data", "/data"),
        Mount("/v/out", "/var/run/secrets/../out"),
        Mount("/v/like", "/var/run/secretsauce"),
    ]
    shown = view(tmp_path, mounts=mounts).secret_mounts()
    assert [(mount.host_path, path) for mount, path in shown] == [
        ("/v/token", f"/run/secrets/{token}"),
        ("/v/vault", "/run/secrets/vault"),
    ]
