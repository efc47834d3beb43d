from typing import Any

import pytest

from kcm.errors import ConfigurationError
from kcm.informers.options import InformerOptions


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"block_ms": 0}, "block_ms"),
        ({"merge_seconds": -1.0}, "merge_seconds"),
        ({"default_resync": -1.0}, "default_resync"),
        ({"handler_queue_size": 0}, "handler_queue_size"),
        ({"read_interval": 0.0}, "read_interval"),
        ({"read_burst": 0}, "read_burst"),
        ({"follow_busy": 2.0}, "follow_busy"),
        ({"list_backoff_initial": 60.0}, "list_backoff_initial"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        InformerOptions(**wrong)
