"""The reconcile sync: compares what nodes list as attached with the VolumeAttachments.

It also counts volumes for the gauges on /metrics. Where both agree, it writes nothing else.

Source: VerifyVolumesAreAttached in pkg/volume/util/operationexecutor/operation_generator.go and
pkg/controller/volume/attachdetach/metrics/metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections import Counter

from kcm.api.attachments import PLUGIN, name_for_node
from kcm.api.core_v1 import Node, PersistentVolume
from kcm.api.storage_v1 import CSIDriver, VolumeAttachment
from kcm.controllers.attachdetach.keys import first_name
from kcm.controllers.attachdetach.listing import unlist_volume
from kcm.controllers.attachdetach.state import VolumeState
from kcm.helpers.volumes.attachments import is_attachable
from kcm.sdk import PassPlan, PassView, Patch, View

VERIFYING = "verifyVolumesAreAttached"  # the name of the loop
TOTALS, IN_USE = "totals", "in-use"  # the fields of the state, JSON lists of labels and a number
ACTUAL, DESIRED = "actual_state_of_world", "desired_state_of_world"


def verify(view: PassView) -> PassPlan:
    """Returns the plan of one pass: entries without a VolumeAttachment are taken away."""
    attachments = view.lister(VolumeAttachment)
    patches: list[Patch] = []
    for node in view.lister(Node).list():
        for listed in node.status.volumes_attached or ():
            name = name_for_node(listed.name, node.name)
            if name and attachments.find(name) is None:
                patches.append(unlist_volume(node, listed.name, although_used=True))
    return PassPlan(state=_count(view), waits=()).then(*patches)


def _count(view: View) -> dict[str, str]:
    """Returns the numbers of volumes by plugin and state, and by node and plugin."""
    totals: Counter[tuple[str, str]] = Counter()
    in_use: Counter[tuple[str, str]] = Counter()
    for volume in view.lister(PersistentVolume).list():
        csi = volume.spec.csi
        if csi is None or not is_attachable(volume, view.lister(CSIDriver).find(csi.driver)):
            continue
        if first_name(volume.name, view) != volume.name:
            continue
        plugin, state = f"{PLUGIN}:{csi.driver}", VolumeState.read(volume.name, view)
        totals[plugin, ACTUAL] += sum(a.status.attached for a in state.attachments.values())
        totals[plugin, DESIRED] += len(state.users)
        for node, pods in state.users.items():
            in_use[node, plugin] += len(pods)
    return {
        name: json.dumps([[*labels, number] for labels, number in sorted(counts.items()) if number])
        for name, counts in ((TOTALS, totals), (IN_USE, in_use))
        if counts
    }
