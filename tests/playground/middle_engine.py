"""An engine that repeats prompts, and fills each gap with the same text."""

import msgspec

from ouzel.backends.fake import FakeEngine, FakeOptions, echo
from ouzel.types.engine_request import EngineRequest
from tests.api.byte_tokens import END, byte_tokenizer

MARKS = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>")
MIDDLE = "-in between-"
_MIDDLE_MARK = byte_tokenizer(*MARKS).encode("<fim_middle>", add_special_tokens=False)[0]


def create_middle_parrot(options: dict[str, object]) -> FakeEngine:
    def say(request: EngineRequest, position: int) -> int:
        if _MIDDLE_MARK not in request.prompt_token_ids:
            return echo(request, position)
        return MIDDLE.encode()[position] if position < len(MIDDLE) else END

    return FakeEngine(msgspec.convert(options, FakeOptions), say)
