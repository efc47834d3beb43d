"""A kubelet as a process: an agent, its stores, its Events and its signs of life.

Guarantees: starts also while the store is away; then static pods run, and the rest
follows when it is back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from kcm.api.core_v1 import Pod
from kcm.apimachinery.quantity import Quantity
from kcm.clock import Clock, RealClock
from kcm.coordination.lease import new_holder
from kcm.coordination.presence import Member, Presence
from kcm.errors import ConfigurationError
from kcm.kubelet.assembly.agent import Agent, KubeletStore, Plugs, Stores
from kcm.kubelet.assembly.duties import Duties
from kcm.kubelet.assembly.equipment import Equipment, equipment_of
from kcm.kubelet.duty_options import DutyOptions
from kcm.kubelet.options import KubeletOptions, parse_ids, parse_labels, parse_taints
from kcm.kubelet.stats.reporting import Write
from kcm.reconcile.events import EventRecorder
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.resource_metrics.usage import UsageBoard

log = structlog.get_logger("kcm.kubelet")

KIND = "kubelet"  # of the process in `kcm status`

Flags = Mapping[str, Any]


def options_of(flags: Flags) -> KubeletOptions:
    """The command's flags (names with underscores) as options. Raises ConfigurationError."""
    given = {name: value for name, value in flags.items() if value is not None}
    parsed: dict[str, Callable[[Any], Any]] = {
        "root_dir": Path,
        "pod_manifest_path": Path,
        "stages": Path,
        "node_labels": parse_labels,
        "register_with_taints": parse_taints,
        "allowed_users": lambda text: parse_ids(text, "--allowed-users"),
        "allowed_groups": lambda text: parse_ids(text, "--allowed-groups"),
        "allowed_host_paths": lambda text: tuple(Path(p) for p in text.split(",") if p),
        "manifest_url_headers": _headers,
        "container_log_max_size": lambda text: Quantity(text).value(),
    }
    known = KubeletOptions.__dataclass_fields__
    values = {name: value for name, value in given.items() if name in known}
    for name, parse in parsed.items():
        if name in values:
            try:
                values[name] = parse(values[name])
            except ValueError as error:
                flag = name.replace("_", "-")
                raise ConfigurationError(f"--{flag} {values[name]!r}: {error}") from None
    return KubeletOptions(**values, adopts_orphans=True)


def _headers(text: str) -> dict[str, str]:
    pairs = (part.partition(":") for part in text.split(",") if part.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


class KubeletProcess:
    """See the module."""

    def __init__(
        self,
        settings: Settings,
        options: KubeletOptions,
        *,
        duties: DutyOptions | None = None,
        kubeconfig: Path | None = None,
        wake: Callable[[str], None] | None = None,
    ) -> None:
        """Opens no connection. Raises ConfigurationError."""
        self._clock: Clock = RealClock()
        self._stop = threading.Event()
        self._closers: list[Callable[[], None]] = []
        self._threads: list[threading.Thread] = []
        make = self._remote(kubeconfig) if kubeconfig else self._local(settings)
        self._recorder = EventRecorder(make("events"), self._clock)
        stores = Stores(make("main"), make("watch"), make("status"), make("node"))
        self._works: list[Callable[[threading.Event], None]] = [self._recorder.run]
        if kubeconfig is None:
            self._works.append(self._presence(settings, options).run)
        equipment = self._equipment(options)
        self._duties = Duties(options, duties, equipment.prober)
        options = self._duties.options
        plugs = Plugs(events=self._recorder, wake=wake, images=equipment.images)
        plugs = self._duties.plugs(plugs)
        self.agent = Agent(options, stores, equipment.runtime, plugs=plugs, clock=self._clock)
        usage = self._usage(settings) if kubeconfig is None else None
        self._duties.attach(self.agent, make("api"), usage)

    def _local(self, settings: Settings) -> Callable[[str], KubeletStore]:
        def make(part: str) -> KubeletStore:
            # Pods are started from what "main" says, or said: a silent link must not hold them up.
            io = RedisIO(settings, name=f"kcm-kubelet-{part}", patient=part != "main")
            self._closers.append(io.close)
            return Store(io, self._clock)

        return make

    def _equipment(self, options: KubeletOptions) -> Equipment:
        """What asks the agent does so only once it is there."""

        def pod_named(uid: str) -> Pod | None:
            return self.agent.pod_named(uid)

        def cidrs() -> Sequence[str]:
            spec = self.agent.node.node.spec
            return spec.pod_cidrs or ([spec.pod_cidr] if spec.pod_cidr else ())

        found = equipment_of(options, self._clock, pod_named, cidrs)
        self._closers.append(found.close)
        return found

    def _usage(self, settings: Settings) -> Write:
        io = RedisIO(settings, name="kcm-kubelet-usage")
        self._closers.append(io.close)
        return UsageBoard(io).report

    def _remote(self, kubeconfig: Path) -> Callable[[str], KubeletStore]:
        # Their HTTP client takes 0.1 s to import, which nobody else shall wait for.
        from kcm.store.remote.kubeconfig import load as load_kubeconfig  # noqa: PLC0415
        from kcm.store.remote.rest import RestClient  # noqa: PLC0415
        from kcm.store.remote.store import RemoteStore  # noqa: PLC0415

        connection = load_kubeconfig(kubeconfig)

        def make(part: str) -> KubeletStore:
            client = RestClient(connection, "kubelet")
            store = RemoteStore(client, lambda _: True, self._clock)
            self._closers.append(store.close)
            return store

        return make

    def _presence(self, settings: Settings, options: KubeletOptions) -> Presence:
        io = RedisIO(settings, name="kcm-kubelet-presence")
        self._closers.append(io.close)
        member = Member(new_holder(options.node_name), KIND, name=options.node_name)
        return Presence(io, member, clock=self._clock)

    def start(self) -> None:
        """Start everything."""
        for work in self._works:
            thread = threading.Thread(target=work, args=(self._stop,), daemon=True)
            thread.start()
            self._threads.append(thread)
        self._duties.start()
        self.agent.start()

    def stop(self) -> None:
        """Stop everything; pods end only where a time for that was given."""
        self._duties.shut_down()
        self.agent.stop()
        self._duties.stop()
        self._stop.set()
        for thread in self._threads:
            thread.join(2.0)
        for close in self._closers:
            close()
