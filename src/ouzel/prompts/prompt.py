from dataclasses import dataclass

from ouzel.types.engine_request import MediaInput


@dataclass(frozen=True, slots=True)
class Prompt:
    """Holds a prompt that fits into `max_model_len`, with a token of completion if there is any."""

    text: str
    token_ids: list[int]  # never empty
    end_token_ids: tuple[int, ...] = ()  # end the output, besides the tokenizer's end tokens
    # `text` with broken marks of clients: the parser finds in it where the answer begins
    text_to_parse: str = ""
    images: tuple[MediaInput, ...] = ()  # ordered by their placeholder tokens

    def __post_init__(self) -> None:
        if not self.text_to_parse:
            object.__setattr__(self, "text_to_parse", self.text)
