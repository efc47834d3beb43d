"""The metrics that Prometheus reads."""

from __future__ import annotations

from tests.integration.apiserver.manifests import pod
from tests.integration.apiserver.serving import Live

PODS = "/api/v1/namespaces/default/pods"
LABELS = (
    'component="apiserver",dry_run="",group="",resource="pods",scope="{}",subresource="",'
    'verb="{}",version="v1"'
)


def page(api: Live) -> str:
    return api.client.get("/metrics").text


def test_requests_are_counted_under_upstreams_names(api: Live) -> None:
    api.create(PODS, pod("m1"))
    api.get(PODS)
    api.client.get(f"{PODS}/none")
    output = page(api)
    assert 'apiserver_request_total{code="201",' + LABELS.format("namespace", "POST") in output
    assert 'apiserver_request_total{code="200",' + LABELS.format("namespace", "LIST") in output
    assert 'apiserver_request_total{code="404",' + LABELS.format("resource", "GET") in output
    assert "apiserver_request_duration_seconds_bucket" in output
    assert 'apiserver_current_inflight_requests{request_kind="readOnly"} 1.0' in output


def test_health_checks_are_counted_on_a_page_of_their_own(api: Live) -> None:
    assert api.client.get("/readyz").status_code == 200
    api.client.get("/livez/ping")  # one check alone is not counted
    counted = api.client.get("/metrics/slis").text
    assert 'kubernetes_healthcheck{name="redis",type="readyz"} 1.0' in counted
    assert 'kubernetes_healthchecks_total{name="redis",status="success",type="readyz"}' in counted
    assert 'type="livez"' not in counted


def test_open_watches_are_counted(api: Live) -> None:
    with api.client.stream("GET", PODS, params={"watch": "1"}):
        running = (
            'apiserver_longrunning_requests{group="",resource="pods",verb="WATCH",version="v1"}'
        )
        assert f"{running} 1.0" in page(api)
