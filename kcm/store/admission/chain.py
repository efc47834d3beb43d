"""`AdmissionChain`: passes a write through the plugins of `kcm.store.admission.plugins`.

Source: staging/src/k8s.io/apiserver/pkg/admission/{chain,reinvocation}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kcm.api.scheme import Resource
from kcm.store.admission.plugin import Plugin, Write

_MOST_KEPT = 4096  # sorts of writes whose plugins are kept
Complete = Callable[[Write], Write]
_Sort = tuple[str, str, str]  # name of the resource, subresource, operation


@dataclass(frozen=True, slots=True)
class _Steps:
    """The plugins for one sort of writes."""

    mutating: Sequence[Plugin]
    validating: Sequence[Plugin]


def keep(write: Write) -> Write:
    """Returns the write: nothing is left to complete."""
    return write


class AdmissionChain:
    """Passes writes through plugins in their order. Thread-safe, as far as the plugins are."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.plugins = plugins
        self._steps: dict[_Sort, _Steps] = {}

    def run(self, write: Write, complete: Complete = keep) -> Write:
        """Returns a write as it was admitted: changed by the mutating plugins, completed, and
        accepted by the validating plugins.

        `complete` makes the object that is stored of the one that was admitted, and validates it.
        Raises the error of the plugin that refuses the write, and what `complete` raises.
        """
        steps = self._find_steps(write)
        for plugin in steps.mutating:
            write = plugin.admit(write)
        if write.is_patched:
            for plugin in steps.mutating:
                write = plugin.admit(write)
        write = complete(write)
        for plugin in steps.validating:
            plugin.validate(write)
        return write

    def admit_unreadable(self, write: Write) -> None:
        """Passes the deletion of an object that cannot be read to the plugins that need not see it.

        Raises the error of the plugin that refuses it.
        """
        for plugin in self._find_steps(write).mutating:
            if plugin.admits_unreadable:
                plugin.admit(write)

    def decides(self, resource: Resource, subresource: str, operation: str) -> bool:
        """Reports whether a webhook or policy is about such writes; see `Plugin.decides`."""
        return any(plugin.decides(resource, subresource, operation) for plugin in self.plugins)

    def _find_steps(self, write: Write) -> _Steps:
        sort = (write.resource.name, write.subresource, write.operation)
        steps = self._steps.get(sort)
        if steps is None:
            if len(self._steps) >= _MOST_KEPT:
                self._steps.clear()
            handling = [plugin for plugin in self.plugins if plugin.handles(*sort)]
            steps = self._steps[sort] = _Steps(
                [plugin for plugin in handling if type(plugin).admit is not Plugin.admit],
                [plugin for plugin in handling if type(plugin).validate is not Plugin.validate],
            )
        return steps
