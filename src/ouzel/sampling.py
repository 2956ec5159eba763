"""Defines sampling parameters: the wire fields with ranges and descriptions, and the engine's
values.

A new parameter is one field in `SamplingFields` and one in `SamplingParams` (and a line in
`DRAWING_FIELDS` when the parameter changes how a token is drawn), its value in
`generation/sampling_values.py`, its use in `engine/sampling/sampler.py`, and its reference function
in `tests/engine/reference_sampling.py`.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

# A division by a smaller value overflows float32, and the draw is greedy anyway.
SMALLEST_TEMPERATURE = 1e-5


class SamplingFields(msgspec.Struct, kw_only=True):
    """Defines the sampling fields of all generating endpoints.

    `None` stands for an absent field.
    """

    temperature: (
        Annotated[float, Meta(ge=0.0, le=2.0, description="Divides the logits; 0 is greedy.")]
        | None
    ) = None
    top_p: (
        Annotated[
            float,
            Meta(
                gt=0.0,
                le=1.0,
                description="Keeps the smallest set of tokens whose probabilities reach this sum.",
            ),
        ]
        | None
    ) = None
    top_k: (
        Annotated[
            int,
            Meta(
                ge=-1, le=2**31 - 1, description="Keeps the most likely tokens; -1 or 0 keeps all."
            ),
        ]
        | None
    ) = None
    min_p: (
        Annotated[
            float,
            Meta(
                ge=0.0,
                lt=1.0,
                description="Drops tokens less likely than this share of the most likely token.",
            ),
        ]
        | None
    ) = None
    typical_p: (
        Annotated[
            float,
            Meta(
                gt=0.0,
                le=1.0,
                description="Keeps the smallest set of tokens with this probability whose "
                "information is nearest to the entropy, after top_k, min_p and top_p.",
            ),
        ]
        | None
    ) = None
    do_sample: Annotated[
        bool | None, Meta(description="false is greedy; contradicts a temperature that is not 0.")
    ] = None
    repetition_penalty: (
        Annotated[
            float,
            Meta(
                ge=0.01,
                le=10.0,
                description="Above 1, discourages tokens of the prompt and the output.",
            ),
        ]
        | None
    ) = None
    presence_penalty: (
        Annotated[
            float,
            Meta(ge=-2.0, le=2.0, description="Subtracted once from tokens already in the output."),
        ]
        | None
    ) = None
    frequency_penalty: (
        Annotated[
            float, Meta(ge=-2.0, le=2.0, description="Subtracted per occurrence in the output.")
        ]
        | None
    ) = None
    repeat_last_n: (
        Annotated[
            int,
            Meta(
                ge=-1,
                lt=2**31,
                description="Number of last tokens that the penalties count; "
                "-1: all; 0: no penalties.",
            ),
        ]
        | None
    ) = None
    seed: (
        Annotated[
            int,
            Meta(
                ge=-(2**63),
                le=2**63 - 1,
                description="Same seed, same request: same tokens "
                "(on a busy server with --deterministic, or if its log says deterministic).",
            ),
        ]
        | None
    ) = None
    min_tokens: (
        Annotated[
            int,
            Meta(
                ge=0, description="No end token, stop token or stop string before this many tokens."
            ),
        ]
        | None
    ) = None
    stop_token_ids: (
        Annotated[
            list[Annotated[int, Meta(ge=0)]],
            Meta(max_length=256, description="Token ids that end the output."),
        ]
        | None
    ) = None
    ignore_eos: Annotated[
        bool | None, Meta(description="Continues after the model's end token.")
    ] = None
    logit_bias: (
        Annotated[
            dict[str, Annotated[float, Meta(ge=-100.0, le=100.0)]],
            Meta(
                max_length=1024,
                description="Added to the logits, by token id (a string).",
                extra_json_schema={"propertyNames": {"pattern": "^(0|[1-9][0-9]{0,9})$"}},
            ),
        ]
        | None
    ) = None
    allowed_token_ids: (
        Annotated[
            list[Annotated[int, Meta(ge=0)]],
            Meta(min_length=1, description="Only these tokens may be generated."),
        ]
        | None
    ) = None
    bad_words: (
        Annotated[
            list[Annotated[str, Meta(min_length=1, max_length=256)]],
            Meta(
                max_length=128,
                description="Texts that may not be generated, with and without a space before.",
            ),
        ]
        | None
    ) = None
    no_repeat_ngram_size: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=64,
                description="No sequence of so many tokens in prompt and output repeats; 0: off.",
            ),
        ]
        | None
    ) = None


# Fields that change how a token is drawn. A beam search draws no tokens, so it allows each field
# only with one of these values.
DRAWING_FIELDS: Mapping[str, tuple[object, ...]] = {
    "do_sample": (False,),
    "temperature": (0,),
    "top_p": (1,),
    "top_k": (-1, 0),
    "min_p": (0,),
    "typical_p": (1,),
}


class BeamSearchParams(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a beam search, which takes the most likely tokens and draws none."""

    width: int  # number of beams over all groups
    num_groups: int = 1  # a divisor of the width
    # cost for each beam of an earlier group that takes the same token in the same step
    diversity_penalty: float = 0.0
    # a finished beam's score is its log probability / length ** length_penalty
    length_penalty: float = 1.0
    # true: at `width` finished beams; "never": when none can get better
    early_stopping: bool | Literal["never"] = False


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True):
    """The sampling values of one request; every field has a value."""

    max_tokens: int  # 0: only compute the prompt
    temperature: float = 1.0  # 0 is greedy
    top_p: float = 1.0
    top_k: int = 0  # 0 keeps all
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repeat_last_n: int = -1  # last tokens that the penalties count, at least one; -1: all tokens
    seed: int = 0  # any int64; random if the client gave none
    is_seed_random: bool = False  # the client gave no seed, so the draws need not be repeatable
    min_tokens: int = 0
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    logit_bias: tuple[tuple[int, float], ...] = ()  # (token_id, bias), token_id < vocab_size
    allowed_token_ids: tuple[int, ...] = ()  # empty allows all
    bad_words: tuple[tuple[int, ...], ...] = ()  # each has at least one token id
    no_repeat_ngram_size: int = 0  # 0 is off
    # None: no logprobs; 0: the sampled token; N: also the N most likely tokens
    num_logprobs: int | None = None
    logprob_token_ids: tuple[int, ...] = ()  # further tokens whose logprobs are shown
    num_prompt_logprobs: int | None = (
        None  # like num_logprobs, for every prompt token but the first
    )
    # replaces temperature, top_k, min_p, top_p, typical_p and seed
    beam_search: BeamSearchParams | None = None

    @property
    def is_greedy(self) -> bool:
        return self.temperature < SMALLEST_TEMPERATURE

    @property
    def adjusts_logits(self) -> bool:
        """Tells whether bias, penalties, bans or min_tokens change the model's logits."""
        return (
            self.penalises_tokens
            or self.min_tokens > 0
            or bool(self.logit_bias)
            or self.bans_tokens
        )

    @property
    def penalises_tokens(self) -> bool:
        return (
            self.repetition_penalty != 1.0
            or self.presence_penalty != 0.0
            or self.frequency_penalty != 0.0
        )

    @property
    def bans_tokens(self) -> bool:
        return bool(self.allowed_token_ids or self.bad_words or self.no_repeat_ngram_size)
