"""The EndpointSlice controller: `controller` is its entry, and `packing` puts endpoints into
slices.
"""

from kcm.controllers.endpointslice.controller import (
    EndpointSliceController,
    EndpointSliceOptions,
)

__all__ = ["EndpointSliceController", "EndpointSliceOptions"]
