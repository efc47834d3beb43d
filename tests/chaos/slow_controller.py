"""A user's controller whose sync takes as long as a file says: for tests that stop it midway."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from kcm.api.core_v1 import Namespace
from kcm.reconcile.contract import Controller, View, Watch, own_key
from kcm.reconcile.plan import Plan, Update
from kcm.testing.waiting import until


class SlowLabeller(Controller):
    """Writes its process id on a namespace, after it has told where it is and was let go on."""

    name: ClassVar[str] = "slow-labeller-controller"
    short_name: ClassVar[str] = "slowlabeller"
    group: ClassVar[str] = "slow"

    def watches(self) -> tuple[Watch, ...]:
        return (Watch(Namespace, own_key),)

    def reconcile(self, key: str, view: View) -> Plan:
        namespace = view.lister(Namespace).find(key)
        if namespace is None or "labelled-by" in namespace.labels:
            return Plan()
        folder = Path(os.environ["SLOW_FOLDER"])
        (folder / f"in-{os.getpid()}").touch()
        until((folder / "go").exists, "the word to go on")
        labels = {**namespace.labels, "labelled-by": str(os.getpid())}
        return Plan().then(Update(namespace.with_metadata(labels=labels), namespace))
