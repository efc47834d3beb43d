"""A machine for containers inside this one: containerd in namespaces that end with it.

Network, mounts and processes are the machine's own, so nothing of the host's is touched but one
control group for each top group of pods. Ending its first process ends everything that runs in it,
and undoes its mounts. Other programs join it with `command`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from kcm.testing.waiting import PATIENCE, until
from tests.containers import images

ADDRESS = "10.99.0.2"
_PROGRAMS = ("containerd", "ctr", "runc", "unshare", "nsenter", "ip", "iptables")
_PLUGINS = Path("/usr/lib/cni")
# What the machine needs before anything runs in it. Files that containerd and its shims put into
# folders of the host's are in file systems of the machine's.
_SET_UP = """
set -e
mount --make-rprivate /
mount --make-rshared /
for folder in /run /var/lib/cni; do
  mkdir -p $folder
  mount -t tmpfs tmpfs $folder
done
ip link set lo up
ip link add node0 type bridge
ip address add {address}/24 dev node0
ip link set node0 up
ip route add default via {address}
echo 1 > /proc/sys/net/ipv4/ip_forward
echo up
exec sleep infinity
"""
# CAP_SYS_RESOURCE may be missing, without which no oom_score_adj can be lowered.
_CONFIG = """
version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
disable_apparmor = true
restrict_oom_score_adj = true
stream_server_address = "127.0.0.1"
stream_server_port = "0"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{folder}/cni"
"""
_NETWORK = """
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
"""


def find_missing() -> str:
    """Returns what containers need and this machine lacks, "" for nothing."""
    if os.geteuid() != 0:
        return "containers need root"
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    missing += [] if (_PLUGINS / "bridge").exists() else ["containernetworking-plugins"]
    missing += [] if images.find_busybox() else ["busybox-static"]
    if missing:
        return f"not installed: {', '.join(missing)}"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False
    )
    return "" if tried.returncode == 0 else "namespaces are not allowed here"


class Machine:
    """The machine, and containerd on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.endpoint = f"unix://{folder}/containerd.sock"
        self._holder: subprocess.Popen[bytes] | None = None
        self._containerd: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Makes the namespaces, and starts containerd with the images in them."""
        (self.folder / "cni").mkdir(parents=True)
        (self.folder / "cni" / "10-pods.conflist").write_text(_NETWORK)
        config = _CONFIG.format(folder=self.folder, pause=images.PAUSE, plugins=_PLUGINS)
        (self.folder / "config.toml").write_text(config)
        log = self.folder / "machine.log"
        with log.open("wb") as out:
            self._holder = subprocess.Popen(
                ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                 "sh", "-c", _SET_UP.format(address=ADDRESS)],
                stdout=out, stderr=out,
            )  # fmt: skip
        until(lambda: "up" in log.read_text().split(), "the machine", PATIENCE, log.read_text)
        self.start_containerd()
        archive = self.folder / "images.tar"
        images.write_archive(archive)
        self.run(["ctr", "-a", f"{self.folder}/containerd.sock", "-n", "k8s.io", "image", "import",
                  str(archive)])  # fmt: skip

    def start_containerd(self) -> None:
        """Starts containerd, and waits until it answers."""
        with (self.folder / "containerd.log").open("ab") as log:
            self._containerd = subprocess.Popen(
                self.command(["containerd", "--config", f"{self.folder}/config.toml"]),
                stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        until(self._answers, "containerd does not answer")

    def _answers(self) -> bool:
        tried = subprocess.run(
            self.command(["ctr", "-a", f"{self.folder}/containerd.sock", "version"]),
            capture_output=True, check=False,
        )  # fmt: skip
        return tried.returncode == 0

    def kill_containerd(self) -> None:
        """Kills containerd. Its shims and containers go on."""
        assert self._containerd is not None
        children = self.list_processes("containerd --config")
        for pid in children:
            with suppress(ProcessLookupError):  # a shim had asked it to pass an event on
                os.kill(pid, signal.SIGKILL)
        self._containerd.wait(20)

    @property
    def first_process(self) -> int:
        """The first process in the namespaces, by the host's number."""
        assert self._holder is not None
        path = f"/proc/{self._holder.pid}/task/{self._holder.pid}/children"
        return int(Path(path).read_text().split()[0])

    def command(self, command: Sequence[str]) -> list[str]:
        """Returns a command line that runs this one on the machine."""
        return ["nsenter", "-t", str(self.first_process), "-n", "-m", "-p", "--", *command]

    def run(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> str:
        """Runs a command on the machine; returns its output. Raises AssertionError if it fails."""
        done = subprocess.run(
            self.command(command), capture_output=True, text=True, check=False,
            env={**os.environ, **(env or {})},
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def list_processes(self, words: str) -> list[int]:
        """Returns the machine's processes whose command line has these words, by host's numbers."""
        space = os.readlink(f"/proc/{self.first_process}/ns/pid")
        pids = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and os.readlink(entry / "ns" / "pid") == space:
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    pids += [int(entry.name)] if words in line and "nsenter" not in line else []
        return pids

    def stop(self) -> None:
        """Ends everything on the machine."""
        if self._holder is not None:
            with suppress(OSError, IndexError):
                os.kill(self.first_process, signal.SIGKILL)
            self._holder.wait(20)
        if self._containerd is not None:
            self._containerd.wait(20)
