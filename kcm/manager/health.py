"""Health, metrics, configuration and debug pages of one manager, as an ASGI app.

`/livez` and `/healthz` report whether this process works. An outage of the store does not fail
them, since a restart would not help. `/readyz` also needs the store, synced caches, and leadership
if there is an election.

Source of paths and forms: staging/src/k8s.io/apiserver/pkg/server/healthz and
staging/src/k8s.io/controller-manager/app/serve.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from kcm.http import health_metrics
from kcm.http.health_metrics import HealthMetrics
from kcm.manager.access import PageAccess
from kcm.manager.debug import DebugPages

Check = Callable[[], str | None]  # returns what is wrong, or None


@dataclass(frozen=True)
class ManagerPages:
    """The checks, metrics and documents that the pages show.

    `notes` says in the verbose form of /readyz what costs no readiness.
    """

    live: Mapping[str, Check]
    ready: Mapping[str, Check]
    notes: Callable[[], Iterable[str]]
    registry: CollectorRegistry
    config: Callable[[], Mapping[str, object]]
    debug: DebugPages


def build_app(pages: ManagerPages, access: PageAccess) -> PageAccess:
    """Returns an app that serves the pages to those whom `access` lets pass."""
    slis = HealthMetrics()
    routes = [
        *_health_routes("healthz", pages.live, slis),
        *_health_routes("livez", pages.live, slis),
        *_health_routes("readyz", pages.ready, slis, pages.notes),
        Route("/metrics", _metrics(pages.registry)),
        Route(health_metrics.PATH, _metrics(slis.registry)),
        Route("/configz", _json(pages.config)),
        Route("/debug/controllers", _json(pages.debug.controllers)),
        Route("/debug/controllers/{name}", _controller(pages.debug)),
        Route("/debug/threads", _threads(pages.debug)),
    ]
    access.app = Starlette(routes=routes)
    return access


def _health_routes(
    name: str,
    checks: Mapping[str, Check],
    slis: HealthMetrics,
    notes: Callable[[], Iterable[str]] = lambda: (),
) -> list[Route]:
    def everything(request: Request) -> Response:
        excluded = set(request.query_params.getlist("exclude"))
        faults = {check: run() for check, run in checks.items() if check not in excluded}
        slis.count(name, faults)
        unknown = excluded - checks.keys()
        told = [*notes()] if "verbose" in request.query_params else None
        return _report(name, faults, excluded, unknown, told)

    def run_check(request: Request) -> Response:
        check = checks.get(request.path_params["check"])
        if check is None:
            return PlainTextResponse("404 page not found\n", 404)
        fault = check()
        if fault is None:
            return PlainTextResponse("ok")
        return PlainTextResponse(f"internal server error: {fault}\n", 500)

    return [Route(f"/{name}", everything), Route(f"/{name}/{{check}}", run_check)]


def _report(
    name: str,
    faults: Mapping[str, str | None],
    excluded: set[str],
    unknown: set[str],
    notes: Sequence[str] | None,
) -> Response:
    """Returns the page, whose verbose form has notes."""
    failed = any(fault is not None for fault in faults.values())
    if not failed and notes is None:
        return PlainTextResponse("ok")
    lines = [
        f"[+]{check} ok" if fault is None else f"[-]{check} failed: {fault}"
        for check, fault in faults.items()
    ]
    lines += [f"[+]{check} excluded: ok" for check in sorted(excluded - unknown)]
    if unknown:
        names = ", ".join(sorted(unknown))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    lines += [f"[!]{note}" for note in notes or ()]
    lines.append(f"{name} check {'failed' if failed else 'passed'}")
    return PlainTextResponse("\n".join(lines) + "\n", 500 if failed else 200)


def _metrics(registry: CollectorRegistry) -> Callable[[Request], Response]:
    def page(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return page


def _json(read: Callable[[], object]) -> Callable[[Request], Response]:
    return lambda request: JSONResponse(read())


def _controller(debug: DebugPages) -> Callable[[Request], Response]:
    def page(request: Request) -> Response:
        description = debug.controller(request.path_params["name"])
        if description is None:
            return PlainTextResponse("404 page not found\n", 404)
        return JSONResponse(description)

    return page


def _threads(debug: DebugPages) -> Callable[[Request], Response]:
    return lambda request: PlainTextResponse(debug.threads())
