"""Makes random texts with a given number of tokens from common words; all prompts differ."""

import random
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TypeVar

import msgspec

from ouzel.client.base import UNREADABLE, ApiClient, ApiFailure

_TEXT = """
about above across after again air all almost along also always and animal another answer any
apple around ask at away back ball bank bear because bed before begin bell below best better
between big bird black blue boat body book both box boy bread bring brother build bus busy but buy
by call came can car carry cat chair change child city class clean clear clock close cloud cold
come cook cool corn could country cow cross cup cut dark day deep desk dinner do dog door down
draw dream dress drink drive dry each ear early earth east easy eat egg eight end enough even ever
every eye face fall family far farm fast father feel few field find fine fire first fish five fly
follow food foot for forest form four free friend from front fruit full game garden gave get girl
give glad glass go gold good grass great green ground group grow half hand happy hard hat have
head hear heart heavy help here high hill hold home horse hot hour house how idea ice in inside
into island it job jump just keep kind king know lake land large last late laugh learn leave left
leg less letter life light like line lion list little live long look lost lot love low lunch make
man many map mark market may me mean meat meet milk mind minute miss money moon more morning most
mother mountain mouth move much music must my name near
"""
_WORDS = _TEXT.split()
_NUM_TRIES = 4


_Shape = TypeVar("_Shape")


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Text(msgspec.Struct):
    prompt: str


class PromptTexts:
    """Makes texts; `/tokenize` of the server counts the tokens.

    If the server has no `/tokenize` and `/detokenize` like vLLM's, each word counts as a token.
    """

    def __init__(self, client: ApiClient, model: str, *, counts_tokens: bool) -> None:
        self._client = client
        self._model = model
        self.counts_tokens = counts_tokens

    async def make(self, num_tokens: int, rng: random.Random) -> str:
        """Makes a text of `num_tokens` tokens, without the tokens of a chat template.

        Raises ApiFailure.
        """
        text = " ".join(rng.choices(_WORDS, k=num_tokens))  # each word has at least one token
        if not self.counts_tokens or num_tokens == 0:
            return text
        token_ids = await tokenize(self._client, self._model, text)
        num_taken = num_tokens
        for _ in range(_NUM_TRIES):
            text = await self._detokenize(token_ids[:num_taken])
            excess = len(await tokenize(self._client, self._model, text)) - num_tokens
            if excess == 0:
                break
            # The cut text may split into other tokens.
            num_taken = max(num_taken - excess, 1)
        return text

    async def _detokenize(self, token_ids: Sequence[int]) -> str:
        body = {"model": self._model, "tokens": list(token_ids)}
        return (await _post(self._client, "/detokenize", body, _Text)).prompt


async def find_prompt_texts(client: ApiClient, model: str) -> PromptTexts:
    """Makes the source of texts, and finds out whether the server counts tokens."""
    try:
        counts_tokens = len(await tokenize(client, model, "one two")) > 0
        if counts_tokens:
            await PromptTexts(client, model, counts_tokens=True).make(2, random.Random(0))
    except ApiFailure:
        counts_tokens = False
    return PromptTexts(client, model, counts_tokens=counts_tokens)


async def tokenize(client: ApiClient, model: str, text: str) -> list[int]:
    body = {"model": model, "prompt": text, "add_special_tokens": False}
    return (await _post(client, "/tokenize", body, _Tokens)).tokens


async def _post(
    client: ApiClient, path: str, body: Mapping[str, object], answer_type: type[_Shape]
) -> _Shape:
    """Posts a body and decodes the answer. Raises ApiFailure for an answer of another form."""
    answer = await client.ask("POST", path, msgspec.json.encode(body))
    if answer.status != HTTPStatus.OK:
        raise ApiFailure(f"{path} answered {answer.status}", http_status=answer.status)
    try:
        return msgspec.json.decode(answer.body, type=answer_type)
    except UNREADABLE as error:
        raise ApiFailure(f"{path} answered unreadable JSON: {error}") from error
