"""The admission plugin DefaultTolerationSeconds: a pod stays some minutes on a node that fails.

Source: plugin/pkg/admission/defaulttolerationseconds/admission.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.admissionregistration_v1 import CREATE, UPDATE
from kcm.api.core_v1 import Pod, Toleration
from kcm.settings import Settings
from kcm.store.admission.plugin import Plugin, Write


class DefaultTolerationSeconds(Plugin):
    """Adds tolerations to new and updated pods that have none of their own for nodes that fail."""

    name = "DefaultTolerationSeconds"

    def __init__(self, settings: Settings) -> None:
        self._tolerations = (
            _toleration("not-ready", settings.default_not_ready_toleration_seconds),
            _toleration("unreachable", settings.default_unreachable_toleration_seconds),
        )

    def handles(self, resource: str, subresource: str, operation: str) -> bool:
        return (resource, subresource) == (Pod.resource.name, "") and operation in (CREATE, UPDATE)

    def admit(self, write: Write) -> Write:
        pod = write.new_as(Pod)
        tolerations = pod.spec.tolerations or []
        added = [
            wanted
            for wanted in self._tolerations
            if not any(
                (not mine.key or mine.key == wanted.key) and mine.effect in (None, "", "NoExecute")
                for mine in tolerations
            )
        ]
        if not added:
            return write
        return write.with_new(pod.with_spec(pod.spec.replace(tolerations=[*tolerations, *added])))


def _toleration(state: str, seconds: int) -> Toleration:
    return Toleration(
        key=f"node.kubernetes.io/{state}",
        operator="Exists",
        effect="NoExecute",
        toleration_seconds=seconds,
    )
