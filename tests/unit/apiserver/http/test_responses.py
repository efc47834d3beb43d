from __future__ import annotations

import pytest

from kcm.apiserver.http.responses import Form, negotiate
from kcm.apiserver.http_errors import NotAcceptable

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("", Form()),
        ("*/*", Form()),
        ("application/json", Form()),
        (f"{TABLE},application/json", Form("Table")),
        (TABLE.replace("v1;", "v1beta1;"), Form("Table", "v1beta1")),
        (f"application/json,{TABLE}", Form()),
        (f"application/json;q=0.5,{TABLE};q=0.9", Form("Table")),
        ("application/vnd.kubernetes.protobuf, application/json", Form()),
        (TABLE.replace("Table", "PartialObjectMetadataList"), Form("PartialObjectMetadata")),
        ("application/json;as=Unknown;v=v1;g=meta.k8s.io,application/json", Form()),
        ("application/json;q=odd", Form()),
    ],
)
def test_the_first_form_that_is_served_wins(header: str, form: Form) -> None:
    assert negotiate(header) == form


@pytest.mark.parametrize("header", ["text/html", "application/cbor", TABLE.replace("v1;", "v9;")])
def test_nothing_that_is_served_is_not_acceptable(header: str) -> None:
    with pytest.raises(NotAcceptable):
        negotiate(header)
