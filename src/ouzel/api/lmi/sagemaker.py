"""Serves SageMaker's runtime in front of LMI: POST /endpoints/{name}/invocations.

/endpoints/{name}/invocations-response-stream is its streaming form. Programs that use AWS's
clients, as boto3's `sagemaker-runtime`, change only the client's `endpoint_url`. Bodies and answers
are the same as at /invocations; the endpoint's name is the name of a model. Signatures are not
checked.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.endpoint.operation import Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.http.exchange import get_exchange, get_header
from ouzel.api.lmi.choice import choose_by_name
from ouzel.api.lmi.event_stream import MEDIA_TYPE, PartsSend, encode_part
from ouzel.api.lmi.invocations import ANSWERS, BODIES, CHUNKS, make_invocations
from ouzel.errors import InvalidRequest

_CHOOSES = "the endpoint's name chooses the model"
# refused headers, with the reasons
_REFUSED_HEADERS = {
    "x-amzn-sagemaker-target-model": _CHOOSES,
    "x-amzn-sagemaker-target-variant": _CHOOSES,
    "x-amzn-sagemaker-inference-component": _CHOOSES,
    "x-amzn-sagemaker-target-container-hostname": _CHOOSES,
    "x-amzn-sagemaker-enable-explanations": "it explains no answers",
}
_MAX_SHOWN = 60  # longest part shown of a header's value, in characters


class Endpoint:
    """Answers invocations; with `sends_messages`, in messages of AWS's event stream."""

    def __init__(self, invocations: ASGIApp, *, sends_messages: bool) -> None:
        self._invocations = invocations
        self._sends_messages = sends_messages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        for name, reason in _REFUSED_HEADERS.items():
            if value := get_header(scope, name.encode()):
                raise InvalidRequest(
                    f"is not supported by this server: {reason}, given {value[:_MAX_SHOWN]!r}",
                    field=name,
                )
        if self._sends_messages:
            get_exchange(scope).envelope = encode_part
            send = PartsSend(send)
        await self._invocations(scope, receive, send)


def _make_endpoint(services: Services, *, sends_messages: bool) -> Endpoint:
    return Endpoint(make_invocations(services), sends_messages=sends_messages)


OPERATIONS = (
    Operation(
        method="post",
        path="/endpoints/{model_name}/invocations",
        summary="SageMaker's runtime: the same as /invocations.",
        endpoint=lambda services: _make_endpoint(services, sends_messages=False),
        choice=choose_by_name,
        bodies=BODIES,
        answers=ANSWERS,
        chunks=CHUNKS,
        words="sagemaker",
    ),
    Operation(
        method="post",
        path="/endpoints/{model_name}/invocations-response-stream",
        summary="SageMaker's runtime: the same as /invocations, in messages of AWS's event stream.",
        endpoint=lambda services: _make_endpoint(services, sends_messages=True),
        choice=choose_by_name,
        bodies=BODIES,
        media_type=MEDIA_TYPE,
        words="sagemaker",
    ),
)
