"""The volumes of pods on disk."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from kcm.api.core_v1 import ConfigMap, Pod
from kcm.errors import ContainerConfigError
from kcm.kubelet.cri import Mount
from kcm.kubelet.environment.variables import PodLocation
from kcm.kubelet.volumes.mounter import VolumeMounter
from kcm.kubelet.volumes.volumes import (
    LONGEST_FILE,
    Volumes,
    host_path,
    read_volume_file,
)
from tests.lookups import FakeLookups


def pod(volumes: list[dict[str, Any]], *mounts: dict[str, Any]) -> Pod:
    return Pod.model_validate(
        {
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
            "spec": {
                "volumes": volumes,
                "containers": [{"name": "main", "volumeMounts": list(mounts)}],
            },
        }
    )


def build_lookups(text: str) -> FakeLookups:
    return FakeLookups({("shop", "c"): ConfigMap(data={"file": text})})


CONFIG = {"name": "config", "configMap": {"name": "c"}}
SCRATCH = {"name": "scratch", "emptyDir": {}}


def test_volumes_are_made_kept_and_brought_up_to_date(tmp_path: Path) -> None:
    volumes, web = Volumes(tmp_path), pod([CONFIG, SCRATCH, {"name": "plain"}])
    pod_volumes = volumes.set_up(web, build_lookups("1"), PodLocation())
    assert pod_volumes.paths["config"] == tmp_path / "u1/volumes/kubernetes.io~configmap/config"
    assert pod_volumes.paths["plain"].parent.name == "kubernetes.io~empty-dir"
    assert pod_volumes.paths["scratch"].stat().st_mode & 0o777 == 0o777
    (pod_volumes.paths["scratch"] / "mine").write_text("kept")
    volumes.set_up(web, build_lookups("2"), PodLocation())
    assert (pod_volumes.paths["config"] / "file").read_text() == "2"
    assert (pod_volumes.paths["scratch"] / "mine").read_text() == "kept"
    assert pod_volumes.messages == ()


def test_a_medium_is_ignored_with_a_word(tmp_path: Path) -> None:
    web = pod([{"name": "fast", "emptyDir": {"medium": "Memory"}}])
    assert Volumes(tmp_path).set_up(web, build_lookups(""), PodLocation()).messages == (
        'volume "fast": medium is ignored, it is on disk',
    )


@pytest.mark.parametrize(
    ("volume", "words"),
    [
        ({"name": "x", "configMap": {"name": "no"}}, 'volume "x" : configmap "no" not found'),
        ({"name": "x", "hostPath": {"path": "/etc"}}, "hostPath /etc is not allowed"),
        ({"name": "x", "gitRepo": {}}, "gitRepo is not supported on this node"),
        ({"name": "x", "image": {"reference": "a"}}, "images cannot be mounted on this node"),
    ],
)
def test_what_cannot_be_set_up_is_named(tmp_path: Path, volume: dict[str, Any], words: str) -> None:
    with pytest.raises(ContainerConfigError, match=words):
        Volumes(tmp_path).set_up(pod([volume]), build_lookups(""), PodLocation())


def test_a_file_on_a_volume_is_read_without_following_links(tmp_path: Path) -> None:
    volumes = Volumes(tmp_path).set_up(pod([SCRATCH]), build_lookups(""), PodLocation())
    folder = volumes.paths["scratch"]
    (folder / "env").write_text("A='b'")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "long").write_text("x" * (LONGEST_FILE + 1))
    assert read_volume_file(volumes, "scratch", "env") == "A='b'"
    for name, path, words in (
        ("scratch", "link", "failed to open"),
        ("scratch", "../up", "leads out of"),
        ("scratch", "none", "No such file"),
        ("scratch", "long", "is too long"),
        ("other", "env", 'cannot find the volume "other" referenced by FileKeyRef'),
    ):
        with pytest.raises(ContainerConfigError, match=words):
            read_volume_file(volumes, name, path)


def test_mounts_lead_to_volumes_or_into_them(tmp_path: Path) -> None:
    volumes = Volumes(tmp_path)
    web = pod(
        [CONFIG, SCRATCH],
        {"name": "config", "mountPath": "/etc/app", "readOnly": True},
        {"name": "config", "mountPath": "/etc/one", "subPath": "file"},
        {"name": "scratch", "mountPath": "/logs", "subPathExpr": "logs/$(NAME)"},
    )
    pod_volumes = volumes.set_up(web, build_lookups("1"), PodLocation())
    mounts = volumes.mounts(web, web.spec.containers[0], pod_volumes, {"NAME": "web"})
    config, scratch = pod_volumes.paths["config"], pod_volumes.paths["scratch"]
    assert mounts == [
        Mount(str(config), "/etc/app", read_only=True, root=str(config)),
        Mount(str(config / "file"), "/etc/one", root=str(config)),
        Mount(str(scratch / "logs" / "web"), "/logs", root=str(scratch)),
    ]
    assert (scratch / "logs" / "web").is_dir()


def test_a_volume_that_is_an_image_is_for_the_runtime_to_mount(tmp_path: Path) -> None:
    image = {"name": "data", "image": {"reference": "shop/data:1"}}
    web = pod([image], {"name": "data", "mountPath": "/d", "subPathExpr": "$(NAME)"})
    volumes = Volumes(tmp_path, mounter=VolumeMounter())
    pod_volumes = volumes.set_up(web, build_lookups(""), PodLocation())
    assert volumes.mounts(web, web.spec.containers[0], pod_volumes, {"NAME": "a"}) == [
        Mount("", "/d", read_only=True, image="shop/data:1", image_sub_path="a")
    ]
    with pytest.raises(ContainerConfigError, match="images cannot be mounted on this node"):
        Volumes(tmp_path).set_up(web, build_lookups(""), PodLocation())


@pytest.mark.parametrize("sub_path", ["../x", "/etc", "link/x", "a/../../x"])
def test_a_sub_path_stays_in_its_volume(tmp_path: Path, sub_path: str) -> None:
    volumes = Volumes(tmp_path / "pods")
    web = pod([SCRATCH], {"name": "scratch", "mountPath": "/x", "subPath": sub_path})
    pod_volumes = volumes.set_up(web, build_lookups(""), PodLocation())
    (pod_volumes.paths["scratch"] / "link").symlink_to(tmp_path)
    with pytest.raises(ContainerConfigError, match="leads out of"):
        volumes.mounts(web, web.spec.containers[0], pod_volumes, {})


def test_a_mount_needs_its_volume(tmp_path: Path) -> None:
    web = pod([], {"name": "none", "mountPath": "/x"})
    volumes = Volumes(tmp_path)
    pod_volumes = volumes.set_up(web, build_lookups(""), PodLocation())
    with pytest.raises(ContainerConfigError, match='no volume "none"'):
        volumes.mounts(web, web.spec.containers[0], pod_volumes, {})


def test_removal_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    volumes = Volumes(tmp_path / "pods")
    assert volumes.pods() == []
    pod_volumes = volumes.set_up(pod([SCRATCH]), build_lookups(""), PodLocation())
    (pod_volumes.paths["scratch"] / "link").symlink_to(outside)
    closed = pod_volumes.paths["scratch"] / "closed"
    closed.mkdir()
    (closed / "file").touch()
    closed.chmod(0)
    assert volumes.pods() == ["u1"]
    volumes.tear_down("u1")
    volumes.tear_down("u1")
    assert volumes.pods() == []
    assert (outside / "precious").exists()


@pytest.mark.parametrize("uid", ["", "..", "a/b", ".hidden"])
def test_only_a_uid_names_a_folder(tmp_path: Path, uid: str) -> None:
    with pytest.raises(ContainerConfigError):
        Volumes(tmp_path).tear_down(uid)


# --- The host paths that a pod may use.


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    folder = tmp_path / "allowed"
    (folder / "folder").mkdir(parents=True)
    (folder / "file").touch()
    (folder / "out").symlink_to(tmp_path)
    return folder


@pytest.mark.parametrize(
    ("name", "kind", "ok"),
    [
        ("folder", "", True),
        ("missing", "", True),
        ("folder", "Directory", True),
        ("file", "Directory", False),
        ("missing", "Directory", False),
        ("missing/deep", "DirectoryOrCreate", True),
        ("file", "DirectoryOrCreate", False),
        ("file", "File", True),
        ("folder", "File", False),
        ("missing", "FileOrCreate", True),
        ("file", "Socket", False),
        ("file", "CharDevice", False),
        ("file", "BlockDevice", False),
        ("file", "Nonsense", False),
        ("../elsewhere", "", False),
        ("out/elsewhere", "", False),
    ],
)
def test_a_path_is_what_its_type_says_and_below_an_allowed_one(
    allowed: Path, name: str, kind: str, ok: bool
) -> None:
    path = f"{allowed}/{name}"
    if ok:
        assert host_path(path, kind, [allowed]) == (Path(path), allowed)
        assert kind == "" or Path(path).exists()
    else:
        with pytest.raises(ContainerConfigError):
            host_path(path, kind, [allowed])


def test_nothing_is_allowed_unless_it_is_listed(allowed: Path) -> None:
    with pytest.raises(ContainerConfigError, match="--allowed-host-paths"):
        host_path(str(allowed), "", [])
    with pytest.raises(ContainerConfigError, match="not allowed"):
        host_path("folder", "", [Path("/")])


def test_devices_and_sockets_are_told_from_files(allowed: Path) -> None:
    assert host_path("/dev/null", "CharDevice", [Path("/dev")])[0] == Path("/dev/null")
    with socket.socket(socket.AF_UNIX) as server:
        path = allowed / "s"
        server.bind(str(path))
        assert host_path(str(path), "Socket", [allowed])[0] == path
