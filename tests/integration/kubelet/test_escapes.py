"""Attempts of pods of other users to escape, on a node whose kubelet is root.

There are three users without accounts: two whose pods share the node, and one that the node does
not allow.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kcm.api.core_v1 import Pod, Secret
from kcm.errors import ContainerConfigError, KcmError
from kcm.kubelet.cri import ContainerConfig, Mount
from kcm.kubelet.environment.variables import PodLocation
from kcm.kubelet.files import beneath
from kcm.kubelet.volumes.volumes import PodVolumes, Volumes, host_path
from tests.integration.kubelet.runtimes import RealRuntime
from tests.lookups import FakeLookups

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only a kubelet that is root runs pods of other users"
)

ONE, OTHER, STRANGER = 612_001, 612_002, 612_003
GROUP = 612_100
NOTHING = FakeLookups({})


@pytest.fixture
def ground() -> Iterator[Path]:
    """Yields a folder that all users can reach, unlike pytest's own folders."""
    with tempfile.TemporaryDirectory(prefix="kubelet-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture
def real(ground: Path) -> Iterator[RealRuntime]:
    users, groups = ((ONE, OTHER),), ((GROUP, GROUP),)
    escaping = RealRuntime(ground, allowed_users=users, allowed_groups=groups)
    yield escaping
    escaping.close()


@pytest.fixture
def secret(ground: Path) -> Path:
    """Returns a file of root's that only root can read."""
    file = ground / "roots" / "secret"
    file.parent.mkdir()
    file.write_text("root's own words")
    file.chmod(0o600)
    return file


def open_volume(ground: Path, name: str = "volume") -> Path:
    folder = ground / name
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def pod_of(uid: str, user: int, volumes: list[dict[str, Any]], **mount: Any) -> Pod:
    container = {"name": "main", "securityContext": {"runAsUser": user}, "volumeMounts": [mount]}
    return Pod.model_validate(
        {
            "metadata": {"name": uid, "namespace": "shop", "uid": uid},
            "spec": {"volumes": volumes, "containers": [container]},
        }
    )


# --- files of root's


@pytest.mark.parametrize("at", ["folder", "file"])
def test_last_words_come_from_no_file_behind_a_link(
    real: RealRuntime, ground: Path, secret: Path, at: str
) -> None:
    volume = open_volume(ground)
    (volume / "sub").mkdir()
    (volume / "sub").chmod(0o777)
    os.chown(volume / "sub", ONE, ONE)
    swap = {
        "folder": f"mv data/sub data/old; ln -s {secret.parent} data/sub",
        "file": f"ln -s {secret} data/sub/secret",
    }[at]
    mounts = [
        Mount(str(volume), "/data", root=str(volume)),
        Mount(str(volume / "sub" / "secret"), "/words", root=str(volume)),
    ]
    container = real.shell(
        f"{swap}; ls -ld data/sub; exit 1",
        mounts=mounts, run_as_user=ONE, termination_message_path="/words",
    )  # fmt: skip
    status = real.wait_for_end(container)
    assert (status.exit_code, status.message) == (1, "")


def test_last_words_come_from_no_file_that_the_container_could_not_read(
    real: RealRuntime, ground: Path, secret: Path
) -> None:
    volume = open_volume(ground)
    os.link(secret, volume / "words")
    mounts = [Mount(str(volume / "words"), "/words", read_only=True, root=str(volume))]
    container = real.shell(
        "exit 1", mounts=mounts, run_as_user=ONE, termination_message_path="/words"
    )
    assert real.wait_for_end(container).message == ""


def test_a_file_at_the_place_of_the_last_words_stays_its_owners(
    real: RealRuntime, ground: Path
) -> None:
    volume = open_volume(ground)
    (volume / "words").write_text("the owner's")
    mounts = [Mount(str(volume / "words"), "/words", read_only=True, root=str(volume))]
    container = real.shell(
        "exit 1", mounts=mounts, run_as_user=ONE, termination_message_path="/words"
    )
    assert real.wait_for_end(container).message == "the owner's"
    assert (volume / "words").stat().st_uid == 0


def test_a_user_may_write_last_words_and_its_own_folder(real: RealRuntime) -> None:
    container = real.shell(
        'echo bye > dev/termination-log; touch "$KCM_ROOT/file"',
        run_as_user=ONE, termination_message_path="/dev/termination-log",
    )  # fmt: skip
    status = real.wait_for_end(container)
    assert (status.exit_code, status.message) == (0, "bye\n")
    text = real.shell("touch mine && pwd", run_as_user=ONE, working_dir="/scratch/deep")
    assert real.wait_for_end(text).exit_code == 0


@pytest.mark.parametrize(
    "path", ["$(KCM_ROOT)/../../../../{}/made", "/data/out/made", "/../{}/made"]
)
def test_a_working_folder_is_made_nowhere_but_in_the_pods_own(
    real: RealRuntime, ground: Path, secret: Path, path: str
) -> None:
    volume = open_volume(ground)
    (volume / "out").symlink_to(secret.parent)
    config = ContainerConfig(
        "main",
        command=("true",),
        working_dir=path.format(str(secret.parent).lstrip("/")),
        mounts=[Mount(str(volume), "/data", root=str(volume))],
        run_as_user=ONE,
    )
    with suppress(KcmError):  # refused is as good as made elsewhere
        real.runtime.start_container(
            real.runtime.create_container(real.sandbox, config, real.config)
        )
    assert not (secret.parent / "made").exists()


def test_a_working_folder_in_a_volume_is_made_there(real: RealRuntime, ground: Path) -> None:
    volume = open_volume(ground)
    container = real.shell(
        "touch here",
        working_dir="/data/deep/inside",
        mounts=[Mount(str(volume), "/data", root=str(volume))],
        run_as_user=ONE,
    )
    assert real.wait_for_end(container).exit_code == 0
    assert (volume / "deep/inside/here").stat().st_uid == ONE


@pytest.mark.parametrize("sub_path", ["out", "out/made", "in/out/made"])
def test_a_sub_path_leads_to_no_folder_outside_its_volume(
    ground: Path, secret: Path, sub_path: str
) -> None:
    web = pod_of("u1", ONE, [{"name": "v"}], name="v", mountPath="/v", subPath=sub_path)
    volumes = Volumes(ground / "pods")
    pod_volumes = volumes.set_up(web, NOTHING, PodLocation())
    (pod_volumes.paths["v"] / "out").symlink_to(secret.parent)
    (pod_volumes.paths["v"] / "in").symlink_to(".")
    with pytest.raises(ContainerConfigError, match="leads out"):
        volumes.mounts(web, web.spec.containers[0], pod_volumes, {})
    assert [one.name for one in secret.parent.iterdir()] == ["secret"]


class _Swapping:
    """Swaps a folder for a link and back, as fast as possible, as a user's program may do."""

    def __init__(self, folder: Path, target: Path) -> None:
        self._folder, self._target = folder, target
        self._stop = threading.Event()
        self.turns = 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> _Swapping:
        self._thread.start()
        return self

    def _run(self) -> None:
        link = self._folder.with_name("link")
        while not self._stop.is_set():
            aside = self._folder.with_name(f"aside-{self.turns}")
            with suppress(OSError):  # the other side has made the folder anew
                link.unlink(missing_ok=True)
                link.symlink_to(self._target)
                self._folder.rename(aside)
                link.rename(self._folder)
                self._folder.unlink()
                aside.rename(self._folder)
            self.turns += 1

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize("what", ["sub path", "host folder", "host file", "working folder"])
def test_a_race_against_a_swapped_folder_makes_nothing_outside(
    ground: Path, secret: Path, what: str
) -> None:
    volume = open_volume(ground)
    (volume / "sub").mkdir()
    (volume / "sub").chmod(0o777)
    roots = PodVolumes({"v": volume}, roots={"v": volume})

    def sub_path(name: str) -> None:
        web = pod_of("u1", ONE, [], name="v", mountPath="/v", subPath=name)
        Volumes(ground).mounts(web, web.spec.containers[0], roots, {})

    tries: dict[str, Callable[[str], object]] = {
        "sub path": sub_path,
        "host folder": lambda name: host_path(f"{volume}/{name}", "DirectoryOrCreate", [volume]),
        "host file": lambda name: host_path(f"{volume}/{name}", "FileOrCreate", [volume]),
        "working folder": lambda name: beneath.make_folder(volume, name),
    }
    count = 0
    with _Swapping(volume / "sub", secret.parent) as swapping:
        for number in range(2000):
            with suppress(ContainerConfigError, OSError):  # what was there is gone, or a link
                tries[what](f"sub/made-{number}")
                count += 1
    assert [one.name for one in secret.parent.iterdir()] == ["secret"]
    assert (swapping.turns > 0, count > 0) == (True, True)


# --- users and groups


def test_users_are_those_that_the_node_allows(real: RealRuntime) -> None:
    with pytest.raises(ContainerConfigError, match=rf"user {STRANGER} .*--allowed-users"):
        real.create("id", "-u", run_as_user=STRANGER)
    container = real.shell("id -u; id -G; touch mine", run_as_user=ONE)
    assert real.wait_for_end(container).exit_code == 0
    assert real.output(container) == [str(ONE), str(ONE)]


def test_groups_are_the_users_own_and_those_that_the_node_allows(real: RealRuntime) -> None:
    for wanted in ({"run_as_group": 42}, {"supplemental_groups": [GROUP, 42]}):
        with pytest.raises(ContainerConfigError, match=r"group 42 .*--allowed-groups"):
            real.create("id", run_as_user=ONE, **wanted)
    with pytest.raises(ContainerConfigError, match="--allowed-groups"):
        real.create("id", run_as_group=42)  # as root's own user, too
    allowed: list[tuple[dict[str, Any], str]] = [
        ({"run_as_group": ONE}, f"{ONE}"),
        ({"supplemental_groups": [GROUP]}, f"{ONE} {GROUP}"),
        ({"run_as_group": GROUP}, f"{GROUP}"),
    ]
    for number, (wanted, groups) in enumerate(allowed):
        container = real.shell("id -G", run_as_user=ONE, log_path=f"main/{number}.log", **wanted)
        real.wait_for_end(container)
        assert real.output(container) == [groups]


# --- other pods


def test_a_pod_reads_no_secret_of_another_users_pod(real: RealRuntime, ground: Path) -> None:
    known = FakeLookups({}, {("shop", "s"): Secret(data={"key": "d29yZHM="})})
    volumes = Volumes(ground / "pods")
    source = [{"name": "v", "secret": {"secretName": "s"}}]
    web = pod_of("u1", ONE, source, name="v", mountPath="/v")
    pod_volumes = volumes.set_up(web, known, PodLocation())
    mounts = volumes.mounts(web, web.spec.containers[0], pod_volumes, {})
    own = real.shell("cat v/key", run_as_user=ONE, mounts=mounts)
    other = real.shell(
        "cat v/key || echo refused", run_as_user=OTHER, mounts=mounts, log_path="other/0.log"
    )
    real.wait_for_end(own)
    real.wait_for_end(other)
    assert real.output(own) == ["words"]
    assert "refused" in real.output(other)
    assert "words" not in real.output(other)


def test_a_container_sees_nothing_of_the_folder_and_log_of_another_users(real: RealRuntime) -> None:
    own = real.shell("umask 0; echo words > file; sleep 1000", run_as_user=ONE)
    folder, log = real.folder(own), real.status(own).log_path
    tries = f"cat {folder}/root/file; cat {folder}/config.json; cat {log}; ls {folder}/root"
    other = real.shell(f"{tries}; ls {Path(log).parent}; true", run_as_user=OTHER,
                      log_path="other/0.log")  # fmt: skip
    real.wait_for_end(other)
    assert all("denied" in line for line in real.output(other)), real.output(other)
    assert len(real.output(other)) == 5


# --- processes


def test_a_pod_has_no_more_processes_than_it_may(ground: Path) -> None:
    real = RealRuntime(ground, allowed_users=((ONE, ONE),), pod_max_pids=20)
    container = real.shell(FORKS, run_as_user=ONE)
    assert real.wait_for_end(container).exit_code == 0
    count = int(real.output(container)[-1])
    real.close()
    assert 0 < count < 20


def test_where_there_are_no_control_groups_its_users_processes_are_counted(ground: Path) -> None:
    real = RealRuntime(ground, allowed_users=((ONE, ONE),), pod_max_pids=20, use_cgroups=False)
    container = real.shell(FORKS, run_as_user=ONE)
    assert real.wait_for_end(container).exit_code == 0
    count = int(real.output(container)[-1])
    real.close()
    assert 0 < count < 20


FORKS = """exec python3 -c '
import os, signal
made = 0
try:
    while made < 100:
        if os.fork() == 0:
            signal.pause()
        made += 1
except OSError:
    pass
print(made, flush=True)
'"""

# A process that keeps nothing by which it could be known: neither environment, session,
# parent nor streams.
UNMARKED = "env -i setsid sh -c 'echo $$; exec sleep 1000 </dev/null >/dev/null 2>&1' & sleep 1000"

KUBELET = """
import os, sys
from pathlib import Path
from tests.integration.kubelet.runtimes import RealRuntime
real = RealRuntime(Path(sys.argv[1]), use_cgroups=sys.argv[2] == "1", adopts_orphans=True)
container = real.shell(sys.argv[3])
from kcm.testing.waiting import until
until(lambda: real.output(container))
left = int(real.output(container)[0])
os.kill(real.supervisor(container), 9)
status = real.wait_for_end(container)
real.close()
print(status.exit_code, os.path.exists(f"/proc/{left}"))
"""


@pytest.mark.parametrize("cgroups", ["1", "0"])
def test_a_killed_supervisor_leaves_nothing_that_runs(ground: Path, cgroups: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", KUBELET, str(ground), cgroups, UNMARKED],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert (ran.stdout.split(), ran.stderr) == (["137", "False"], "")


@pytest.mark.parametrize("read_only", [True, False])
def test_a_folder_that_becomes_a_link_before_the_start_shows_nothing_of_others(
    real: RealRuntime, ground: Path, secret: Path, read_only: bool
) -> None:
    inner = secret.parent / "inner"
    inner.mkdir()
    secret.parent.chmod(0o700)  # nothing but this keeps others out
    (inner / "secret").write_text("root's own words")
    volume = open_volume(ground)
    (volume / "sub").mkdir()
    mount = Mount(str(volume / "sub"), "/run/secrets/shown", read_only, root=str(volume))
    created = real.create("cat", "/run/secrets/shown/secret", mounts=[mount], run_as_user=ONE)
    (volume / "sub").rmdir()
    (volume / "sub").symlink_to(inner)
    with suppress(KcmError):
        real.runtime.start_container(created)
    real.wait_for_end(created)
    assert "root's own words" not in real.output(created)
