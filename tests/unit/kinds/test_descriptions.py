from __future__ import annotations

from kcm.api.scheme import BUILT_IN
from kcm.apiserver import computed_kinds
from kcm.kinds.descriptions import describe_column
from kcm.kinds.printing.columns import columns_of


def test_every_column_of_a_table_is_described() -> None:
    missing = [
        (resource.kind, column.title)
        for resource in (*BUILT_IN.served(), *computed_kinds.LISTED)
        for column in columns_of(resource, wide=True)
        if not describe_column(resource.kind, column.title)
    ]
    assert missing == []
