"""What the parts of one simulator share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kcm.kubelet.recorder import EventSink, KubeletEventRecorder
from kcm.reconcile.cloudprovider.sim.scriptbook import ScriptBook
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.scripting.stages import Stages
from kcm.simulation.timers import Timers
from kcm.store import Store

Task = Literal["lease", "report", "script", "pod", "usage", "storage"]
Key = tuple[Task, str]


@dataclass(frozen=True, slots=True)
class SimulatorContext:
    """What the nodes, pods and volumes of one simulator share."""

    store: Store
    options: SimulatorOptions
    stages: Stages
    timers: Timers[Key]
    sink: EventSink | None  # of Events

    def recorder(self, node: str) -> KubeletEventRecorder:
        """Returns a recorder of Events with a node's kubelet as their source."""
        return KubeletEventRecorder(self.sink, node)

    def storage_scripts(self) -> ScriptBook:
        """Returns the scripts of the simulated CSI driver."""
        return storage_scripts(self.store)


def storage_scripts(store: Store) -> ScriptBook:
    """Returns the scripts of the simulated CSI driver in a store."""
    return ScriptBook(store.io, store.io.keys.simulated_storage)
