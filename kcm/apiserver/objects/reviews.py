"""Handles access reviews, SelfSubjectRulesReview, TokenReview and SelfSubjectReview.

Source: pkg/registry/{authorization,authentication}, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcm import errors
from kcm.api import authentication_v1 as authentication
from kcm.api import authorization_v1 as authorization
from kcm.api import codec
from kcm.api.admissionregistration_v1 import CREATE
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.attributes import Attributes, User, as_authenticated
from kcm.apiserver.auth.authorizer import Caller, merge_rules
from kcm.apiserver.auth.token_review import TokenReviewer
from kcm.apiserver.http.bodies import reading
from kcm.apiserver.http.responses import ApiRequest, Response, json_response
from kcm.apiserver.http_errors import MethodNotAllowed, PathNotFound
from kcm.apiserver.objects import admission
from kcm.apiserver.objects.tables import partial_metadata
from kcm.errors import FieldError
from kcm.helpers.serviceaccount.tokens import InvalidToken
from kcm.store import Store
from kcm.store.admission.plugin import Write

_Access = authorization.SelfSubjectAccessReviewSpec


def respond(store: Store, request: ApiRequest, reviewer: TokenReviewer) -> Response:
    """Returns a response with the review of the request and its status.

    Raises BadRequest, Invalid, MethodNotAllowed, PathNotFound and StoreUnavailable.
    """
    info = request.info
    if info.subresource:
        raise PathNotFound
    if request.method != "POST" or info.name or (info.resource.namespaced != bool(info.namespace)):
        raise MethodNotAllowed
    asked, warnings = reading.read_object(request)
    asks = admission.write_request(request)
    admitted = store.admission.run(Write(CREATE, info.resource, asked, request=asks)).new
    assert admitted is not None  # no plugin removes the object
    answered = _with_status(request, admitted, reviewer)
    if request.form.as_:
        return json_response(partial_metadata(answered, request.form), 201, warnings)
    return Response(codec.encode(answered), 201, warnings=warnings)


def _with_status(request: ApiRequest, asked: KubeObject, reviewer: TokenReviewer) -> KubeObject:
    caller = request.caller
    match asked:
        case authentication.TokenReview():
            return asked.replace(status=_token(asked, reviewer))
        case authentication.SelfSubjectReview() | authentication.SelfSubjectReviewV1Beta1():
            info = authentication.SelfSubjectReviewStatus(user_info=_info(caller.user))
            return asked.replace(status=info)
        case authorization.SelfSubjectRulesReview():
            return asked.replace(status=_rules(asked, caller))
        case authorization.SelfSubjectAccessReview():
            return asked.replace(status=_access(asked, asked.spec, caller))
        case authorization.SubjectAccessReview() | authorization.LocalSubjectAccessReview():
            other = Caller(_subject(asked), caller.authorizer)
            return asked.replace(status=_access(asked, asked.spec, other))
    raise PathNotFound


# --- access


def _access(
    asked: KubeObject, spec: _Access, caller: Caller
) -> authorization.SubjectAccessReviewStatus:
    decision = caller.authorizer.authorize(caller.user, _attributes(asked, spec))
    return authorization.SubjectAccessReviewStatus(
        allowed=decision.allowed, reason=decision.reason or None
    )


def _attributes(asked: KubeObject, spec: _Access) -> Attributes:
    resource, other = spec.resource_attributes, spec.non_resource_attributes
    if (resource is None) == (other is None):
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _invalid(asked, FieldError("Invalid value", "spec.resourceAttributes", None, detail))
    if isinstance(asked, authorization.LocalSubjectAccessReview):
        _check_local(asked)
    if other is not None:
        return Attributes(other.verb or "", path=other.path or "/")
    assert resource is not None
    return Attributes(
        verb=resource.verb or "",
        group=resource.group or "",
        version=resource.version or "",
        resource=resource.resource or "",
        subresource=resource.subresource or "",
        namespace=resource.namespace or "",
        name=resource.name or "",
    )


def _check_local(asked: authorization.LocalSubjectAccessReview) -> None:
    resource = asked.spec.resource_attributes
    if resource is None:
        field = "spec.nonResourceAttributes"
        detail = "disallowed on this kind of request"
        raise _invalid(asked, FieldError("Invalid value", field, None, detail))
    if (resource.namespace or "") != asked.namespace:
        raise errors.BadRequest(
            f"spec.resourceAttributes.namespace must match namespace: {asked.namespace}"
        )


def _subject(
    asked: authorization.SubjectAccessReview | authorization.LocalSubjectAccessReview,
) -> User:
    spec = asked.spec
    if not spec.user and not spec.groups:
        detail = "at least one of user or group must be specified"
        raise _invalid(asked, FieldError("Invalid value", "spec.user", "", detail))
    extra = tuple((key, tuple(values)) for key, values in (spec.extra or {}).items())
    return User(spec.user or "", spec.uid or "", tuple(spec.groups or ()), extra)


def _invalid(asked: KubeObject, fault: FieldError) -> errors.Invalid:
    group = asked.api_version.partition("/")[0]
    return errors.Invalid([fault], kind=f"{asked.kind}.{group}", name=asked.name)


# --- rules


def _rules(
    asked: authorization.SelfSubjectRulesReview, caller: Caller
) -> authorization.SubjectRulesReviewStatus:
    namespace = asked.spec.namespace
    if not namespace:
        raise errors.BadRequest("no namespace on request")
    rights = caller.authorizer.rights(caller.user, namespace)
    rules = merge_rules(rule.policy for rule in rights.rules)
    return authorization.SubjectRulesReviewStatus(
        resource_rules=[
            authorization.ResourceRule(
                verbs=rule.verbs,
                api_groups=rule.api_groups,
                resources=rule.resources,
                resource_names=rule.resource_names,
            )
            for rule in rules
            if rule.resources
        ],
        non_resource_rules=[
            authorization.NonResourceRule(
                verbs=rule.verbs, non_resource_urls=rule.non_resource_urls
            )
            for rule in rules
            if rule.non_resource_urls
        ],
        incomplete=bool(rights.errors),
        evaluation_error=", ".join(rights.errors) or None,
    )


# --- who


def _token(
    asked: authentication.TokenReview, reviewer: TokenReviewer
) -> authentication.TokenReviewStatus:
    token, audiences = asked.spec.token or "", asked.spec.audiences or []
    if not token:
        raise errors.BadRequest("token is required for TokenReview in authentication")
    try:
        user, accepted = reviewer.review(token, audiences)
    except InvalidToken as error:
        return authentication.TokenReviewStatus(error=error.message)
    return authentication.TokenReviewStatus(
        authenticated=True,
        user=_info(as_authenticated(user)),
        audiences=accepted or None,
    )


def _info(user: User) -> authentication.UserInfo:
    extra: Mapping[str, list[str]] = {key: list(values) for key, values in user.extra}
    return authentication.UserInfo(
        username=user.name,
        uid=user.uid or None,
        groups=list(user.groups) or None,
        extra=dict(extra) or None,
    )
