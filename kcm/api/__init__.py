"""The API types as pydantic models, and the scheme of all kinds. No I/O.

There is one module for each group and version, as upstream has one package. Import what you need
from the modules.
"""

import kcm.api.scheme  # noqa: F401 - so that every model has its resource
