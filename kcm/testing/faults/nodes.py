"""`cp.nodes`: what a test has happen to simulated nodes.

It sends what `kcm nodes` sends: commands in a ConfigMap, and annotations of Node objects. What
follows is up to the control plane: its conditions, taints and evictions are the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from kcm import errors
from kcm.api.core_v1 import Node
from kcm.clock import Clock
from kcm.simulation import commands
from kcm.simulation.commands import NodeCommand, State
from kcm.simulation.scripting.scripts import PREFIX, node_states
from kcm.store import Store

_NODES = Node.resource
_STATE = PREFIX + "state"


class FaultyNode:
    """One simulated node. Its methods return at once; the node follows within a second."""

    def __init__(self, name: str, store: Callable[[], Store], clock: Clock) -> None:
        self.name = name
        self._store = store
        self._clock = clock

    def stop(self) -> None:
        """Stops its kubelet: it renews no lease and reports nothing, until `start`.

        Containers go on unseen, as without a kubelet, and pods that are deleted end after its
        start. For a loss of power, have the pods `crash` before.
        """
        self._command("stopped")

    def start(self) -> None:
        """Starts its kubelet, which registers the node if its object is gone."""
        self._command("started")

    def partition(self) -> None:
        """Cuts it off from the API: its kubelet and containers run on, and nobody sees it."""
        self._command("partitioned")

    def full(self) -> None:
        """Sets its condition DiskPressure. Simulated kubelets evict nothing, so its pods stay."""
        self._add_state("disk-pressure")

    def memory_pressure(self) -> None:
        """Sets its condition MemoryPressure. Simulated kubelets evict nothing: its pods stay."""
        self._add_state("memory-pressure")

    def pid_pressure(self) -> None:
        """Sets its condition PIDPressure."""
        self._add_state("pid-pressure")

    def not_ready(self) -> None:
        """Sets its condition Ready to False, as a kubelet without its container runtime does."""
        self._add_state("not-ready")

    def heal(self) -> None:
        """Ends all of the above: it is reachable, runs, and reports that nothing is wrong."""
        state = self._sent().state
        if state == "stopped":
            self._command("started")
        elif state == "partitioned":
            commands.send(self._store(), {self.name: None})
        if self.states - {"stopped", "partitioned"}:
            self._annotate(None)

    @property
    def states(self) -> frozenset[str]:
        """What was done to it and lasts, such as `stopped` or `disk-pressure`."""
        sent = self._sent()
        return self._read_states() | ({sent.state} if sent.silent else set())

    @property
    def ready(self) -> bool:
        """Whether its Node object says that it is ready."""
        node = self._find()
        conditions = (node.status.conditions or ()) if node is not None else ()
        return any(one.type == "Ready" and one.status == "True" for one in conditions)

    def __repr__(self) -> str:
        return f"<Node {self.name}: {', '.join(sorted(self.states)) or 'as usual'}>"

    def _command(self, state: State) -> None:
        """Sends a command. Commands tell the second of their time, and no two are the same."""
        since, last = self._clock.now().replace(microsecond=0), self._sent().since
        if last is not None and last >= since:
            since = last + timedelta(seconds=1)
        commands.send(self._store(), {self.name: NodeCommand(state, since)})

    def _sent(self) -> NodeCommand:
        sent = commands.parse(commands.get_stored(self._store()))
        return sent.get(self.name, commands.AS_USUAL)

    def _find(self) -> Node | None:
        found = self._store().find(_NODES, self.name)
        return found if isinstance(found, Node) else None

    def _read_states(self) -> frozenset[str]:
        node = self._find()
        return node_states(node.annotations.get(_STATE, "")) if node is not None else frozenset()

    def _add_state(self, state: str) -> None:
        self._annotate(",".join(sorted(self._read_states() | {state})))

    def _annotate(self, states: str | None) -> None:
        self._store().patch(_NODES, self.name, {"metadata": {"annotations": {_STATE: states}}})


class Nodes:
    """The simulated nodes of one control plane, by name."""

    def __init__(self, names: Sequence[str], store: Callable[[], Store], clock: Clock) -> None:
        self._by_name = {name: FaultyNode(name, store, clock) for name in names}

    def __getitem__(self, name: str) -> FaultyNode:
        """Returns the node with this name. Raises NotFound."""
        node = self._by_name.get(name)
        if node is None:
            names = ", ".join(self._by_name) or "none: start with ControlPlane(nodes=1)"
            raise errors.NotFound(f'no simulated node "{name}"; there are {names}')
        return node

    def __iter__(self) -> Iterator[FaultyNode]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def heal(self) -> None:
        """Heals all nodes."""
        for node in self:
            if node.states:
                node.heal()

    def __repr__(self) -> str:
        return f"<Nodes {list(self)}>"
