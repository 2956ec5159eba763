"""Sends requests to the JSON API of a search engine."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any  # Any: JSON of other servers

import msgspec

from ouzel.config.media_hosts import AllowedHosts
from ouzel.hosted_tools.web_search.records import WebError
from ouzel.outbound.trusted import trust_host

if TYPE_CHECKING:
    import httpx2

_OPTION = "web_search_url"
_MAX_ANSWER_BYTES = 4 * 2**20
_TOO_MANY = 429
# Explains statuses to the operator.
_MEANINGS = {
    401: ": it does not accept the key",
    402: ": the plan of the key allows no further search",
    403: ": it allows no such request (SearXNG: `search.formats` must list json)",
    _TOO_MANY: ": it allows no further search now",
}


class SearchClient:
    """Sends requests to one configured address."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self.url = url
        self._allowed: AllowedHosts = trust_host(url, _OPTION)
        self._timeout_s = timeout_s

    async def ask(
        self,
        *,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> dict[str, Any]:
        """Returns the JSON object of an answer. Raises WebError."""
        import httpx2  # noqa: PLC0415  slow, and only searches need it

        from ouzel.outbound.http_transport import CheckedTransport  # noqa: PLC0415

        transport = CheckedTransport(
            self._allowed,
            connect_timeout_s=self._timeout_s,
            max_answer_bytes=_MAX_ANSWER_BYTES,
        )
        try:
            async with httpx2.AsyncClient(
                transport=transport, timeout=self._timeout_s, trust_env=False
            ) as client:
                answer = await self._send(client, params, headers, body)
            if answer.status_code != httpx2.codes.OK:
                meaning = _MEANINGS.get(answer.status_code, "")
                raise WebError(
                    f"the search engine answered with the status {answer.status_code}{meaning}"
                )
            return msgspec.json.decode(answer.content, type=dict[str, Any])
        except msgspec.MsgspecError:
            raise WebError("the search engine did not answer with JSON") from None
        except httpx2.TransportError as error:
            raise WebError(f"the search engine cannot be asked: {error}") from error

    async def _send(
        self,
        client: "httpx2.AsyncClient",
        params: Mapping[str, str | int] | None,
        headers: Mapping[str, str] | None,
        body: object,
    ) -> "httpx2.Response":
        if body is None:
            return await client.get(self.url, params=params, headers=headers)
        return await client.post(self.url, json=body, headers=headers)
