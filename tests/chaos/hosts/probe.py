"""A user's controller that shows whether a key is ever synced twice at once.

For each number that a ConfigMap `ask-*` asks for, it creates one ConfigMap with a random name, if
there is none. It deletes none, so what two syncs create for one number stays to be seen. It takes
its time between looking and creating, and notes when it began and ended.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from kcm.api.core_v1 import ConfigMap
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.reconcile.contract import Change, Controller, View, Watch
from kcm.reconcile.plan import Create, Plan
from kcm.testing.waiting import let_time_pass

NAMESPACE = "probes"
PREFIX = "ask-"
ANSWERS = "answers"  # the label of an answer: the name and the number that asked


def _asking_key(change: Change, view: View) -> Iterable[str]:
    key = change.object.key
    return (key,) if key.startswith(f"{NAMESPACE}/{PREFIX}") else ()


class Prober(Controller):
    """Creates one answer for each number that is asked for."""

    name: ClassVar[str] = "prober-controller"
    short_name: ClassVar[str] = "prober"

    def watches(self) -> tuple[Watch, ...]:
        return (Watch(ConfigMap, _asking_key),)

    def reconcile(self, key: str, view: View) -> Plan:
        began = time.monotonic()
        asked = view.lister(ConfigMap).find(key)
        if asked is None:
            return Plan()
        question = f"{asked.name}.{(asked.data or {}).get('number', '0')}"
        answers = (obj.labels.get(ANSWERS) for obj in view.lister(ConfigMap).list(NAMESPACE))
        if question in answers:
            return Plan()
        let_time_pass(0.1, "another sync of the key would fall into this time")
        with (Path(os.environ["PROBE_FOLDER"]) / f"syncs-{os.getpid()}").open("a") as out:
            out.write(f"{key} {began} {time.monotonic()}\n")
        name = f"answer-{question}-{os.getpid()}-{secrets.token_hex(3)}"
        meta = ObjectMeta(name=name, namespace=NAMESPACE, labels={ANSWERS: question})
        return Plan().then(Create(ConfigMap(metadata=meta)))
