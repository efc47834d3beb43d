"""The API server of the assets with controllers and simulated nodes beside it."""

from __future__ import annotations

from kcm.testing.control_plane.assembly import Assembly
from kcm.testing.control_plane.options import PlaneOptions
from kcm.testing.envtest.options import EnvtestOptions
from kcm.testing.envtest.shared_store import SharedStore


def build(wanted: EnvtestOptions, store: SharedStore) -> Assembly:
    """Returns a control plane for the options. Raises ConfigurationError."""
    key = wanted.signing_key
    plane = PlaneOptions(
        controllers=wanted.controllers,
        nodes=wanted.nodes,
        flags=[f"--service-account-private-key-file={key}"] if key else [],
        api=wanted.api,
        settings=wanted.settings,
    )
    return Assembly(plane, store)
