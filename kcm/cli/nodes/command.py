"""The command `kcm nodes`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from kcm import errors
from kcm.cli.connect import unavailable
from kcm.cli.durations import parse_duration
from kcm.cli.lazy_group import LazyGroup
from kcm.logs import configure
from kcm.settings import Settings
from kcm.simulation import options as simulation
from kcm.simulation import process
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.scripting import stages
from kcm.simulation.scripting.behaviour import Pace

_DEFAULTS = SimulatorOptions()
_PACE = Pace()
_SUBCOMMANDS: Mapping[str, str] = {
    "list": "kcm.cli.nodes.listing:list_nodes",
    "stop": "kcm.cli.nodes.subcommands:stop",
    "start": "kcm.cli.nodes.subcommands:start",
    "partition": "kcm.cli.nodes.subcommands:partition",
    "heal": "kcm.cli.nodes.subcommands:heal",
    "stages": "kcm.cli.nodes.stages:show_stages",
    "storage": "kcm.cli.nodes.storage:storage",
}


@click.group(cls=LazyGroup, places=_SUBCOMMANDS, invoke_without_command=True)
@click.option("--count", type=click.IntRange(0, 100_000), default=_DEFAULTS.count,
              show_default=True, help="The number of nodes.")  # fmt: skip
@click.option("--zones", default=",".join(_DEFAULTS.zones), show_default=True,
              help="The zones to which nodes are assigned in turn.")  # fmt: skip
@click.option("--region", default=_DEFAULTS.region, show_default=True,
              help="The region of all nodes.")  # fmt: skip
@click.option("--name-prefix", default=_DEFAULTS.name_prefix, show_default=True,
              help="Nodes are named by this prefix and a number from 1 on.")  # fmt: skip
@click.option("--capacity", default=simulation.CAPACITY, show_default=True,
              help="The capacity of each node.")  # fmt: skip
@click.option("--stages", "stages_file", type=click.Path(path_type=Path), metavar="FILE",
              help="A file that says what pods and nodes do; kcm nodes stages --example shows one.",
              )  # fmt: skip
@click.option("--programs/--no-programs", default=_DEFAULTS.programs, show_default=True,
              help="Let containers do what their commands say, as far as that is understood: echo, "
              "exit, env, cat, sleep and the like.")  # fmt: skip
@click.option("--service-account-signing-key-file", type=click.Path(path_type=Path), default=None,
              help="The key for the service account tokens that these read. Default: sa.key in the "
              "state folder, if that exists.")  # fmt: skip
@click.option("--start-after", callback=parse_duration, default="300ms", show_default=True,
              help="How long a container takes to start.")  # fmt: skip
@click.option("--run-for", callback=parse_duration, default="1s", show_default=True,
              help="How long containers run if their restartPolicy is not Always.",
              )  # fmt: skip
@click.option("--node-lease-duration-seconds", type=click.IntRange(1, 3600),
              default=_DEFAULTS.lease_duration, show_default=True,
              help="How long a lease is valid; it is renewed four times as often.")  # fmt: skip
@click.option("--node-status-report-frequency", callback=parse_duration, default="5m",
              show_default=True, help="How often an unchanged status is reported.",
              )  # fmt: skip
@click.option("--metric-resolution", callback=parse_duration, default="15s", show_default=True,
              help="How often nodes report the usage of themselves and their pods; 0 means never.",
              )  # fmt: skip
@click.option("--pod-cidr", default=_DEFAULTS.pod_cidr, show_default=True,
              help="Addresses of pods on nodes without a podCIDR.")  # fmt: skip
@click.option("--node-cidr", default=_DEFAULTS.node_cidr, show_default=True,
              help="Addresses of nodes.")  # fmt: skip
@click.option("--storage-delay", callback=parse_duration, default="300ms", show_default=True,
              help="How long a call to the simulated CSI driver takes.")  # fmt: skip
@click.option("--volume-attach-limit", type=click.IntRange(1, 10_000),
              default=_DEFAULTS.volume_limit, show_default=True,
              help="How many volumes of the simulated CSI driver a node can have.")  # fmt: skip
@click.option("--cloud-provider", type=click.Choice(("", "external")), default="",
              help="external: nodes wait for the cloud-node controller, as kcm up sets it.",
              )  # fmt: skip
@click.option("--events/--no-events", default=True, show_default=True,
              help="Record Events: Pulled, Created, Started and so on.")  # fmt: skip
@click.option("--node-monitor-grace-period", callback=parse_duration, default="50s",
              show_default=True,
              help="The value of the manager's flag of this name, for forecasts of kcm nodes stop.",
              )  # fmt: skip
@click.pass_context
def nodes(ctx: click.Context, /, **flags: object) -> None:
    """Simulate nodes, all in this one process, until Ctrl-C.

    `kcm up` runs five of them. Each registers, renews its lease and reports its
    status as a kubelet does. Pods that are bound to it run, become ready, fail,
    are restarted and stop as annotations or a stages file say:

    \b
      simulation.kcm.dev/outcome: crash     kcm nodes stages lists outcomes and fields

    \b
    Examples:
      kcm nodes --count 100 --zones a,b,c
      kcm nodes --count 3 --name-prefix gpu- --capacity cpu=64,nvidia.com/gpu=8
      kcm nodes list
      kcm nodes stop node-2            it becomes unreachable; prints what will happen
      kcm nodes start node-2
      kcm nodes partition --zone a     cuts off a whole zone;
      kcm nodes heal                   and brings it back
      kcm nodes storage slow attach 20s
    """
    if ctx.invoked_subcommand is None:
        run(**flags)


def run(**flags: object) -> None:
    """Simulates nodes until a signal. Raises ConfigurationError and StoreUnavailable."""
    options, file = options_of(flags)
    parsed = stages.load(file) if file else stages.NO_STAGES
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    settings = Settings()
    key = Path(settings.state_dir).absolute() / "sa.key"
    if options.programs and options.signing_key_file is None and key.is_file():
        options = replace(options, signing_key_file=key)
    if not settings.redis_url and not settings.socket_path.exists():
        raise unavailable(settings, "no such socket")
    configure(settings.log_format, settings.log_level)
    process.run(settings, options, parsed, stop)


def options_of(flags: Mapping[str, object]) -> tuple[SimulatorOptions, Path | None]:
    """Returns the simulator's options and the stages file from the flags.

    Raises ConfigurationError.
    """

    def number(name: str) -> float:
        value = flags[name]
        assert isinstance(value, int | float)  # the option is a number
        return value

    key = flags["service_account_signing_key_file"]
    file = flags["stages_file"]
    if file is not None and not isinstance(file, Path):
        raise errors.ConfigurationError("--stages must name a file")
    return SimulatorOptions(
        count=int(number("count")),
        zones=tuple(zone.strip() for zone in str(flags["zones"]).split(",")),
        region=str(flags["region"]),
        name_prefix=str(flags["name_prefix"]),
        capacity=simulation.parse_capacity(str(flags["capacity"])),
        lease_duration=int(number("node_lease_duration_seconds")),
        report_every=number("node_status_report_frequency"),
        metric_resolution=number("metric_resolution"),
        pod_cidr=str(flags["pod_cidr"]),
        node_cidr=str(flags["node_cidr"]),
        pace=Pace(
            start_after=number("start_after"),
            start_jitter=min(_PACE.start_jitter, number("start_after")),
            run_for=number("run_for"),
        ),
        events=bool(flags["events"]),
        external_cloud=flags["cloud_provider"] == "external",
        monitor_grace_period=number("node_monitor_grace_period"),
        storage_delay=number("storage_delay"),
        volume_limit=int(number("volume_attach_limit")),
        programs=bool(flags["programs"]),
        signing_key_file=key if isinstance(key, Path) else None,
    ), file
