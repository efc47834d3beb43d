"""The EndpointSlice controller is in `controller`; `packing` assigns endpoints to slices."""

from kcm.controllers.endpoints.endpointslice.controller import (
    EndpointSliceController,
    EndpointSliceOptions,
)

__all__ = ["EndpointSliceController", "EndpointSliceOptions"]
