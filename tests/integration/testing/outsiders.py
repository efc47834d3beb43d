"""A small operator, as a program outside of the control plane that thinks before it acts."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from kcm.testing import ControlPlane
from kcm.testing.waiting import let_time_pass, until

MAPS = "/api/v1/namespaces/default/configmaps"


@contextmanager
def counting_operator(
    plane: ControlPlane, up_to: int, thinks: float, may_act: threading.Event | None = None
) -> Iterator[None]:
    """Runs an operator that, `thinks` seconds after it has seen cm-1, makes cm-2, and so on.

    It makes nothing before `may_act` is set.
    """
    watching, ending = threading.Event(), threading.Event()
    with httpx.Client(
        base_url=plane.url,
        headers={"authorization": f"Bearer {plane.token}", "user-agent": "counting"},
        verify=ssl.create_default_context(cafile=plane.kubeconfig.parent / "apiserver.crt"),
        timeout=60,
    ) as client:

        def operate() -> None:
            try:
                with client.stream("GET", MAPS, params={"watch": "1"}) as stream:
                    watching.set()
                    for line in stream.iter_lines():
                        event = json.loads(line)
                        word, _, number = event["object"]["metadata"]["name"].partition("-")
                        if (event["type"], word) == ("ADDED", "cm") and int(number) < up_to:
                            assert may_act is None or may_act.wait(60)
                            let_time_pass(thinks, "the operator thinks")
                            name = {"name": f"cm-{int(number) + 1}"}
                            client.post(MAPS, json={"metadata": name}).raise_for_status()
            except httpx.TransportError:
                if not ending.is_set():  # else its watch was cut below
                    raise

        thread = threading.Thread(target=operate)
        thread.start()
        assert watching.wait(60)
        until(plane.faults.server.watches.list_open, "the operator's watch")
        try:
            yield
        finally:
            ending.set()
            plane.faults.watches(for_="counting")
            thread.join()
