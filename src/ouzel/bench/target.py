"""Describes the target of a benchmark: model, endpoint and accepted fields of requests."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any  # JSON

import msgspec

from ouzel.bench.conversation import Conversation, JsonObject, Turn
from ouzel.bench.endpoints import Endpoint, Form
from ouzel.bench.measurement import Measurement, measure
from ouzel.client.base import UNREADABLE, ApiClient, ApiFailure

_REFUSED_FIELD = (400, 422)


@dataclass(frozen=True, slots=True)
class Target:
    client: ApiClient
    endpoint: Endpoint
    model: str
    form: Form
    extra: Mapping[str, Any]  # fields of --extra-body for every body

    async def ask(
        self, turn: Turn, history: tuple[JsonObject, ...] = (), tools: tuple[JsonObject, ...] = ()
    ) -> Measurement:
        body = self._body((*history, *turn.messages), turn.max_tokens, tools)
        return await measure(self.client, self.endpoint, body, turn)

    async def with_accepted_form(self, conversation: Conversation) -> "Target":
        """Sends the first turn in one form after another until the server accepts a form.

        Raises ApiFailure if no form is accepted. The failure has the messages of all refusals,
        because each form may be refused for another field.
        """
        turn = conversation.turns[0]
        target, messages = self, dict[str, None]()
        while True:
            try:
                await target._try(turn, conversation.tools)
            except ApiFailure as failure:
                messages[str(failure)] = None
                form = target.form.without_refused()
                if failure.http_status not in _REFUSED_FIELD or form is None:
                    raise ApiFailure(
                        "; then ".join(messages), http_status=failure.http_status
                    ) from failure
                target = replace(target, form=form)
            else:
                return target

    async def _try(self, turn: Turn, tools: tuple[JsonObject, ...]) -> None:
        """Sends one request. Raises ApiFailure, with the HTTP status of a refusal."""
        body = self._body(turn.messages, turn.max_tokens, tools)
        async with self.client.events(self.endpoint.path, body) as events:
            async for event in events:
                try:
                    error = self.endpoint.read(event).error
                except UNREADABLE as failure:
                    raise ApiFailure(f"a chunk cannot be read: {failure}") from failure
                if error:
                    raise ApiFailure(error)

    def _body(
        self, messages: tuple[JsonObject, ...], max_tokens: int, tools: tuple[JsonObject, ...]
    ) -> bytes:
        return self.endpoint.body(
            messages,
            model=self.model,
            max_tokens=max_tokens,
            tools=tools,
            form=self.form,
            extra=self.extra,
        )


async def served_model(client: ApiClient) -> Mapping[str, Any]:
    """Returns the first model in the server's list of models. Raises ApiFailure."""
    answer = await client.ask("GET", "/v1/models")
    if answer.status != 200:
        raise ApiFailure(
            f"/v1/models answered {answer.status}; name the model with --model",
            http_status=answer.status,
        )
    try:
        models = msgspec.json.decode(answer.body)["data"]
        model: Mapping[str, Any] = models[0]
        if not isinstance(model["id"], str):
            raise ApiFailure("/v1/models lists no model; name the model with --model")
    except (*UNREADABLE, LookupError, TypeError) as error:
        raise ApiFailure("/v1/models lists no model; name the model with --model") from error
    return model


async def server_facts(client: ApiClient, model: str) -> dict[str, str]:
    """Returns version, owner and max_model_len of the server, as far as it tells them."""
    version, models = await asyncio.gather(_fetch(client, "/version"), _fetch(client, "/v1/models"))
    facts = {"version": str(version["version"])} if "version" in version else {}
    listed = models.get("data")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and each.get("id") == model:
            facts |= {
                name: str(each[name]) for name in ("owned_by", "max_model_len") if each.get(name)
            }
    return facts


async def _fetch(client: ApiClient, path: str) -> Mapping[str, Any]:
    """Returns the JSON object that the server answers, empty for any failure."""
    try:
        content = msgspec.json.decode((await client.ask("GET", path)).body)
    except (ApiFailure, *UNREADABLE):
        content = None
    return content if isinstance(content, dict) else {}
