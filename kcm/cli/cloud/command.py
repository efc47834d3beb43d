"""The command `kcm cloud`."""

from __future__ import annotations

from collections.abc import Mapping

import click

from kcm.cli.lazy_group import LazyGroup

_SUBCOMMANDS: Mapping[str, str] = {
    "instances": "kcm.cli.cloud.showing:list_instances",
    "balancers": "kcm.cli.cloud.showing:list_balancers",
    "routes": "kcm.cli.cloud.showing:list_routes",
    "calls": "kcm.cli.cloud.showing:list_calls",
    "shutdown": "kcm.cli.cloud.instances:shutdown",
    "start": "kcm.cli.cloud.instances:start",
    "delete": "kcm.cli.cloud.instances:delete",
    "set": "kcm.cli.cloud.instances:set_instance",
    "pool": "kcm.cli.cloud.showing:pool",
    "slow": "kcm.cli.cloud.scripting:slow",
    "fail": "kcm.cli.cloud.scripting:fail",
    "scripts": "kcm.cli.cloud.scripting:list_scripts",
    "heal": "kcm.cli.cloud.scripting:heal",
}


@click.group(cls=LazyGroup, places=_SUBCOMMANDS)
def cloud() -> None:
    """Look at the simulated cloud, and script it.

    The cloud `sim` (--cloud-provider=sim, which kcm up sets) has an instance for
    each simulated node, and gives addresses to Services of type LoadBalancer.
    Nothing listens at these addresses. Its state is in Redis.

    \b
    Try:
      kubectl expose deployment web --port 80 --type LoadBalancer
      kcm cloud balancers              which address it got, and its nodes
      kcm cloud shutdown node-2        its machine is off: the node becomes
                                       unreachable, and is tainted
      kcm cloud delete node-3          its machine is gone: so is its node,
                                       once it is unreachable
      kcm cloud start node-2 node-3    both are back
      kcm cloud slow EnsureLoadBalancer 20s --times 1
      kcm cloud fail EnsureLoadBalancer "quota exceeded" --for default/web
      kcm cloud calls                  what was called, how long it took
      kcm cloud heal                   no call is slow or fails any more
    """
