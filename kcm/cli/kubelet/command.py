"""The command `kcm kubelet`."""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from kcm.cli import commandlines
from kcm.cli.durations import parse_duration, parse_positive_duration
from kcm.cli.kubelet.joining import CertificateFlags
from kcm.interpreter import end_quickly
from kcm.kubelet.assembly.process import KubeletProcess
from kcm.kubelet.assembly.root_dir import lock_root_dir
from kcm.kubelet.assembly.runtime import check_runtime
from kcm.kubelet.eviction.thresholds import DEFAULT_HARD
from kcm.kubelet.flags import FLAGS_VARIABLE, parse_flags
from kcm.kubelet.options import SIMULATED, KubeletOptions
from kcm.logs import configure
from kcm.settings import Settings
from kcm.simulation.runtime.services import new_simulated_services


def _graces(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> dict[str, float]:
    """Parses `memory.available=1m30s,nodefs.available=2m` into seconds by signal."""
    grace_periods = {}
    for part in filter(None, (part.strip() for part in (text or "").split(","))):
        name, _, value = part.partition("=")
        grace_periods[name] = parse_duration(context, parameter, value)
    return grace_periods


@click.command()
@click.option("--node-name", "--hostname-override", default=lambda: socket.gethostname().lower(),
              show_default="this machine's name", help="The node's name.")  # fmt: skip
@click.option("--root-dir", metavar="DIR", default=None,
              help="The folder for all files: volumes, logs, containers' state. Only one "
              "kubelet at a time can use it. Default: kubelet/NODE in the state "
              "folder.")  # fmt: skip
@click.option("--node-ip", default="127.0.0.1", show_default=True,
              help="The address at which others reach the node.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=None,
              help="The port of the node's HTTP API; 0 is any free port. Default: 10250, or any "
              "free port if that is taken.")  # fmt: skip
@click.option("--register-node/--no-register-node", default=True, show_default=True,
              help="Create the Node object if there is none.")  # fmt: skip
@click.option("--node-labels", metavar="a=b,c=d", help="Labels of the node.")
@click.option("--register-with-taints", metavar="KEY=VALUE:EFFECT,...",
              help="Taints with which the node is registered.")  # fmt: skip
@click.option("--max-pods", type=click.IntRange(0), default=110, show_default=True,
              help="The most pods that the node runs.")  # fmt: skip
@click.option("--pod-manifest-path", metavar="PATH",
              help="A folder or file with static pods, which run as long as their file is there, "
              "with or without a control plane.")  # fmt: skip
@click.option("--file-check-frequency", callback=parse_positive_duration, default="20s",
              show_default=True,
              help="How often all static pods are read; changes are noticed within 1 s.",
              )  # fmt: skip
@click.option("--manifest-url", metavar="URL", help="A URL with static pods.")
@click.option("--manifest-url-header", "manifest_url_headers", metavar="NAME:VALUE,...",
              help="Headers of requests for that URL.")  # fmt: skip
@click.option("--http-check-frequency", callback=parse_positive_duration, default="20s",
              show_default=True, help="How often the URL is read.")  # fmt: skip
@click.option("--sync-frequency", callback=parse_positive_duration, default="1m", show_default=True,
              help="The longest time between two syncs of a pod. Up to half of it is added at "
              "random.",
              )  # fmt: skip
@click.option("--node-lease-duration-seconds", "lease_duration", type=click.IntRange(1, 3600),
              default=40, show_default=True,
              help="How long the node's lease is valid; it is renewed four times as "
              "often.")  # fmt: skip
@click.option("--node-status-update-frequency", callback=parse_positive_duration, default="10s",
              show_default=True, help="How often the node's status is computed.")  # fmt: skip
@click.option("--node-status-report-frequency", callback=parse_positive_duration, default="5m",
              show_default=True, help="How often an unchanged status is reported.",
              )  # fmt: skip
@click.option("--allowed-host-paths", metavar="DIR,DIR",
              help="Folders below which hostPath volumes are allowed. Default: none.")  # fmt: skip
@click.option("--allowed-users", metavar="UID,UID-UID",
              help="Users as whom containers may run, besides the kubelet's own (needs "
              "root).")  # fmt: skip
@click.option("--allowed-groups", metavar="GID,GID-GID",
              help="Groups that containers may have, besides their user's own (needs root). A "
              "group of the machine gives pods access to that group's files.")  # fmt: skip
@click.option("--unenforced-security", type=click.Choice(["warn", "refuse"]), default="warn",
              show_default=True,
              help="What becomes of pods that ask for what a process cannot have, as a seccomp "
              "profile or readOnlyRootFilesystem: they run with an Event that says so, or their "
              "containers are not started.")  # fmt: skip
@click.option("--service-account-signing-key-file", type=click.Path(), default=None,
              help="The key with which the API server signs service account tokens. A kubelet that "
              "works on Redis signs those of its pods itself. Default: sa.key in the state folder, "
              "if that exists.",
              )  # fmt: skip
@click.option("--service-account-issuer", default=None,
              help="The issuer of these tokens, as the API server's flag says.")  # fmt: skip
@click.option("--pod-api-server", metavar="HOST:PORT", default=None,
              help="Where pods reach the API server: their KUBERNETES_SERVICE_HOST and _PORT. "
              "Default: the server of --kubeconfig, else the cluster IP of the Service kubernetes.",
              )  # fmt: skip
@click.option("--own-pod-addresses/--host-addresses", default=True, show_default=True,
              help="Give pods addresses of 127.64.0.0/10, which only this machine reaches, or the "
              "machine's own address.")  # fmt: skip
@click.option("--pod-max-pids", type=int, default=1024, show_default=True,
              help="The most processes and threads of a pod; -1 means no limit.",
              )  # fmt: skip
@click.option("--container-log-max-size", default="10Mi", show_default=True,
              help="The size at which a container's log is rotated.")  # fmt: skip
@click.option("--container-log-max-files", type=click.IntRange(2), default=5, show_default=True,
              help="Log files that are kept of each container.")  # fmt: skip
@click.option("--container-log-monitor-interval", callback=parse_positive_duration, default="10s",
              show_default=True,
              help="How often logs of a container runtime are looked at.")  # fmt: skip
@click.option("--container-runtime", type=click.Choice(["process", "cri", "simulated"]),
              default=None,
              help="How containers run: as processes of this machine; in a container runtime that "
              "speaks CRI v1, as containerd and CRI-O do; or as timers that a pod's annotations "
              "control, which kcm nodes stages explains. Default: process, or cri with "
              "--container-runtime-endpoint.")  # fmt: skip
@click.option("--container-runtime-endpoint", metavar="unix://PATH", default=None,
              help="Where the container runtime listens, for --container-runtime cri. Needs root, "
              "and kcm[cri]. Default: unix:///run/containerd/containerd.sock.")  # fmt: skip
@click.option("--cgroup-root", metavar="NAME", default=None,
              help="The control group below which pods of a container runtime have theirs, in each "
              "hierarchy. Default: one named after the root folder.")  # fmt: skip
@click.option("--cgroup-driver", type=click.Choice(["cgroupfs", "systemd"]), default=None,
              help="Who makes control groups, as the container runtime is configured. Default: "
              "cgroupfs.")  # fmt: skip
@click.option("--max-parallel-image-pulls", type=click.IntRange(1), default=1, show_default=True,
              help="How many images a container runtime pulls at a time.")  # fmt: skip
@click.option("--image-credential-provider-config", metavar="FILE", default=None,
              help="A CredentialProviderConfig of kubelet.config.k8s.io/v1: programs that give "
              "credentials for images.")  # fmt: skip
@click.option("--image-credential-provider-bin-dir", metavar="DIR", default=None,
              help="The folder with these programs.")  # fmt: skip
@click.option("--image-gc-high-threshold", type=click.IntRange(0, 100), default=85,
              show_default=True,
              help="Unused images are removed when the disk that they are on is full to so many "
              "percent; 100 means never.")  # fmt: skip
@click.option("--image-gc-low-threshold", type=click.IntRange(0, 100), default=80,
              show_default=True, help="Until it is full to so many percent.")  # fmt: skip
@click.option("--minimum-image-ttl-duration", callback=parse_duration, default="2m",
              show_default=True, help="No image is removed that is younger.")  # fmt: skip
@click.option("--cluster-dns", metavar="IP,IP", default=None,
              help="The cluster's name servers, for pods of a container runtime whose dnsPolicy is "
              "ClusterFirst. Without it, they have those of this machine.")  # fmt: skip
@click.option("--cluster-domain", default="cluster.local", show_default=True,
              help="The domain of the cluster's names.")  # fmt: skip
@click.option("--resolv-conf", type=click.Path(), default="/etc/resolv.conf", show_default=True,
              help="This machine's name servers, for pods whose dnsPolicy is Default."
              )  # fmt: skip
@click.option("--stages", type=click.Path(), default=None,
              help="A stages file for simulated containers.")  # fmt: skip
@click.option("--end-containers/--keep-containers", default=False, show_default=True,
              help="Kill all containers when the kubelet is stopped. The pods stay, and the next "
              "start runs them again, as after a restart of the machine.")  # fmt: skip
@click.option("--bind-address", metavar="ADDRESS", default=None,
              help="The address at which the node's HTTP API listens. Default: the "
              "node's.")  # fmt: skip
@click.option("--tls-cert-file", type=click.Path(), default=None,
              help="The certificate of the node's HTTP API. Without it, the API is plain HTTP, "
              "which is for one machine only. With it, API servers need "
              "--kubelet-certificate-authority.")  # fmt: skip
@click.option("--tls-private-key-file", type=click.Path(), default=None,
              help="The private key of that certificate.")  # fmt: skip
@click.option("--client-ca-file", type=click.Path(), default=None,
              help="Certificates of authorities. Who shows a client certificate of theirs with the "
              "organization system:masters, as API servers do, may use the node's HTTP API. Needs "
              "TLS.")  # fmt: skip
@click.option("--system-reserved", metavar="cpu=100m,memory=500Mi",
              help="Resources that pods do not get, because the system needs them.")  # fmt: skip
@click.option("--kube-reserved", metavar="cpu=100m,memory=500Mi",
              help="Resources that pods do not get, because kcm needs them.")  # fmt: skip
@click.option("--eviction-hard", metavar="SIGNAL<AMOUNT,...", default=DEFAULT_HARD,
              show_default=True,
              help="Thresholds at which a pod is evicted at once. Signals: memory.available, "
              "nodefs.available, nodefs.inodesFree, pid.available; imagefs.available and "
              "imagefs.inodesFree are those of the same disk.")  # fmt: skip
@click.option("--eviction-soft", metavar="SIGNAL<AMOUNT,...",
              help="Thresholds at which a pod is evicted after a grace period.")  # fmt: skip
@click.option("--eviction-soft-grace-period", metavar="SIGNAL=DURATION,...", callback=_graces,
              help="The grace period of each soft threshold.")  # fmt: skip
@click.option("--eviction-minimum-reclaim", metavar="SIGNAL=AMOUNT,...",
              help="How much more than the threshold must be available before evictions "
              "stop.")  # fmt: skip
@click.option("--eviction-pressure-transition-period", callback=parse_positive_duration,
              default="5m", show_default=True,
              help="How long the node reports a pressure condition after it was last observed.",
              )  # fmt: skip
@click.option("--eviction-max-pod-grace-period", type=click.IntRange(0), default=0,
              show_default=True, help="Grace period, in seconds, of pods that a soft threshold "
              "evicts.",
              )  # fmt: skip
@click.option("--shutdown-grace-period", callback=parse_duration, default="0s", show_default=True,
              help="How long pods may take to terminate when the kubelet gets SIGTERM; with 0s "
              "they keep running.",
              )  # fmt: skip
@click.option("--shutdown-grace-period-critical-pods", callback=parse_duration, default="0s",
              show_default=True, help="The part of --shutdown-grace-period that is reserved for "
              "critical pods, at its end.",
              )  # fmt: skip
@click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path),
              help="Work for the API server of this kubeconfig, instead of the Redis of "
              "KCM_REDIS_URL or of the state folder. With --bootstrap-kubeconfig it is written, "
              "and the default is kubeconfig in the root folder.")  # fmt: skip
@click.option("--bootstrap-kubeconfig", type=click.Path(dir_okay=False, path_type=Path),
              help="Join the cluster of this kubeconfig, whose token has the right to request "
              "certificates: get a client certificate, and write --kubeconfig with it. It is not "
              "read once there is a valid certificate.")  # fmt: skip
@click.option("--cert-dir", type=click.Path(file_okay=False, path_type=Path), default=None,
              help="The folder of certificates that the kubelet requests. Default: pki in the "
              "root folder.")  # fmt: skip
@click.option("--rotate-certificates/--no-rotate-certificates", default=True, show_default=True,
              help="Request a new client certificate when 70 to 90 % of the life of the one in "
              "--cert-dir are over.")  # fmt: skip
@click.option("--rotate-server-certificates/--no-rotate-server-certificates", default=None,
              help="Request the certificate of the node's HTTP API, too, which somebody has to "
              "approve, and rotate it. Default: with --bootstrap-kubeconfig, unless there is "
              "--tls-cert-file.")  # fmt: skip
@click.option("--celery/--no-celery", default=True, show_default=True,
              help="Run as a Celery worker with a queue of its own, so that Flower shows the "
              "node's work. With --kubeconfig, it never does.")  # fmt: skip
@click.option("--concurrency", type=click.IntRange(1), default=16, show_default=True,
              help="Threads of that worker. When they are busy, the kubelet uses threads of its "
              "own.",
              )  # fmt: skip
def kubelet(
    *,
    kubeconfig: Path | None,
    bootstrap_kubeconfig: Path | None,
    cert_dir: Path | None,
    rotate_certificates: bool,
    rotate_server_certificates: bool | None,
    celery: bool,
    concurrency: int,
    **flags: Any,
) -> None:
    """Make this machine a node: pods that are bound to it run here.

    They run as processes, without images: a pod's command and args run as this
    user, with the programs of this machine, so users who may create pods can
    run programs here. With --container-runtime-endpoint they run as containers
    of containerd or CRI-O, with images and a network of their own.

    \b
    Examples:
      kcm kubelet --node-name worker-1
      kcm kubelet --node-name gpu-1 --node-labels gpu=yes --register-with-taints gpu=yes:NoSchedule
      kcm kubelet --pod-manifest-path /etc/kcm/manifests      pods from files
      kcm kubelet --container-runtime-endpoint unix:///run/containerd/containerd.sock
      kcm kubelet --kubeconfig ~/.kube/config --node-ip 10.0.0.7
      kcm kubelet --bootstrap-kubeconfig join.kubeconfig      see kcm token create

    Stop it with Ctrl-C or SIGTERM: its pods keep running, and the next start
    finds them. kubectl delete pod, or kcm delete, stops them. With
    --shutdown-grace-period they are stopped with the kubelet, as when a machine
    shuts down.
    """
    settings = Settings()
    flags["node_name"] = flags["node_name"].lower()
    flags["root_dir"] = str(
        Path(flags["root_dir"] or _root(settings, flags["node_name"])).absolute()
    )
    remote = kubeconfig or bootstrap_kubeconfig
    if flags["service_account_signing_key_file"] is None and remote is None:
        key = Path(settings.state_dir).absolute() / "sa.key"
        flags["service_account_signing_key_file"] = str(key) if key.is_file() else None
    # Invalid flags are reported here, before a worker starts and reports them in its own way.
    options = parse_flags(flags)
    lock_root_dir(options.root_dir).close()
    check_runtime(options)
    end_quickly()
    if celery and remote is None:
        _become_worker(flags, concurrency)
    if rotate_server_certificates is None:
        rotate_server_certificates = bool(bootstrap_kubeconfig) and options.certificate is None
    files = CertificateFlags(
        kubeconfig or (options.root_dir / "kubeconfig" if bootstrap_kubeconfig else None),
        bootstrap_kubeconfig,
        cert_dir or options.root_dir / "pki",
        rotate_certificates=rotate_certificates,
        rotate_server_certificates=rotate_server_certificates,
    )
    files.check()
    run(settings, options, files)


def _root(settings: Settings, node: str) -> Path:
    return Path(settings.state_dir) / "kubelet" / node


def _become_worker(flags: Mapping[str, Any], concurrency: int) -> None:
    """Runs a Celery worker in this process, which has already loaded half of the worker's
    modules.
    """
    os.environ[FLAGS_VARIABLE] = json.dumps(dict(flags))
    _, _, module, *sys.argv[1:] = commandlines.kubelet(str(flags["node_name"]), concurrency)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def run(settings: Settings, options: KubeletOptions, files: CertificateFlags) -> None:
    """Runs the kubelet without Celery, until a signal. Raises ConfigurationError."""
    configure(settings.log_format, settings.log_level)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    joined = files.join(options, stop)
    if joined is None:
        return
    options, joining = joined
    process = KubeletProcess(
        settings,
        options,
        kubeconfig=files.kubeconfig,
        joining=joining,
        runtimes={SIMULATED: new_simulated_services},
    )
    process.start()
    stop.wait()
    process.stop()
