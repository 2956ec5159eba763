"""The options about the model: which one, its weights, and how its texts are read."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from ouzel.config.adapters import read_adapters
from ouzel.config.option import option
from ouzel.config.weights import WeightPlan, read_weights

Demo = Literal["text", "vision"]
TaskOption = Literal["auto", "generate", "embed", "score"]
PoolingOption = Literal["auto", "cls", "mean", "lasttoken"]


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Model"

    model: Annotated[
        str,
        option(
            "A local directory, a GGUF file, or a Hugging Face repo id (of GGUF: id:Q4_K_M).",
            unset="the bundled demo model",
            is_common=True,
        ),
    ] = ""
    draft_model: Annotated[
        str,
        option(
            "A smaller model with the same tokens, named as MODEL is. It guesses tokens; MODEL takes or refuses them.",
            unset="none",
        ),
    ] = ""
    mtp: Annotated[
        bool,
        option(
            "Guess tokens with the layer that the checkpoint has for it (Qwen3.5, 3.6, 3.8, Qwen3-Next, DeepSeek-V3, "
            "GLM-4.7-Flash). The model accepts or rejects each guess."
        ),
    ] = False
    task: Annotated[
        TaskOption,
        option("What the model is for; auto goes by its files."),
    ] = "auto"
    matryoshka: Annotated[
        bool,
        option("Embeddings may have fewer `dimensions`."),
    ] = False
    pooling: Annotated[
        PoolingOption,
        option(
            "How the rows of a text become its vector: auto (as the model's files say), cls (the first row), mean, or "
            "lasttoken. A decoder has lasttoken only."
        ),
    ] = "auto"
    normalize: (
        Annotated[
            bool,
            option(
                "Vectors have the length 1 where a request does not say.",
                unset="as the model's files say; on with --profile ovms",
            ),
        ]
        | None
    ) = None
    truncate: Annotated[
        bool,
        option(
            "Cut texts that are longer than the model takes, where a request does not say; else they are refused."
        ),
    ] = False
    max_document_chunks: Annotated[
        int,
        Meta(ge=0, lt=2**31),
        option(
            "Most pieces to which the documents of one request to rerank may come: a document that is too long is "
            "divided, and its best piece counts. 0: it is refused."
        ),
    ] = 10_000
    demo: Annotated[
        Demo,
        option("The demo, if no model is named."),
    ] = "text"
    served_model_name: Annotated[
        tuple[str, ...],
        option(
            "A `model` value that clients may send; the first is the one in answers.",
            unset="the directory's name or the repo id",
            is_common=True,
        ),
    ] = ()
    weights: Annotated[
        str,
        option(
            "Compression of weights while reading: auto (keeps what is quantised already, and makes int8 of the rest), "
            "int8, int4, bf16 or f32; then those of parts that differ, of layers, experts, embedding and head: "
            "int4,head=int4.",
            is_common=True,
        ),
    ] = "auto"
    recompress: Annotated[
        bool,
        option(
            "Round quantised weights again to the width that --weights names, also where the checkpoint stores them in "
            "as few bits already: less memory in some cases, and always a loss of quality."
        ),
    ] = False
    lora: Annotated[
        tuple[str, ...],
        option(
            "NAME=PATH: a LoRA adapter, a directory of PEFT's, for requests whose `model` is NAME; may be given again.",
            unset="none",
        ),
    ] = ()
    max_loras: (
        Annotated[
            int,
            Meta(ge=0, le=64),
            option(
                "Adapters that can be loaded at a time; all of them may be in one batch.",
                unset="as many as --lora names",
            ),
        ]
        | None
    ) = None
    max_lora_rank: (
        Annotated[
            int,
            Meta(ge=1, le=512),
            option(
                "Largest rank of an adapter; each takes memory and time as one of this rank.",
                unset="the largest of --lora's, 16 at least",
            ),
        ]
        | None
    ) = None
    max_model_len: (
        Annotated[
            int,
            Meta(ge=1),
            option(
                "Prompt plus completion limit in tokens.",
                unset="the model's own, with LongRoPE its original context",
                is_common=True,
            ),
        ]
        | None
    ) = None
    max_tokens_limit: (
        Annotated[
            int,
            Meta(ge=1),
            option(
                "Most tokens that a request may ask for, and what it gets when it does not say.",
                unset="what the context leaves",
            ),
        ]
        | None
    ) = None
    max_hidden_tokens: Annotated[
        int,
        Meta(ge=0),
        option(
            "Tokens in a row that may give a client no text but blanks, where the request has no limit of tokens; then "
            "the answer ends with `length`. 0: any number."
        ),
    ] = 8192
    chat_template: Annotated[
        str, option("A Jinja file with the chat template.", unset="the model's own")
    ] = ""
    tool_parser: Annotated[
        str,
        option(
            "How the model writes tool calls: auto (by its chat template, or else its response_template), none, "
            "response_template, or a family's name."
        ),
    ] = "auto"
    reasoning_parser: Annotated[
        str,
        option(
            "How the model marks its reasoning: auto, none, response_template, or a family's name."
        ),
    ] = "auto"
    forced_thinking_budget: Annotated[
        int,
        Meta(ge=-1, le=2**31 - 1),
        option(
            "Most tokens of reasoning before a call that must come or an answer of a form, and half of the answer's "
            "tokens at most; a request's own budget replaces it. -1: no limit."
        ),
    ] = 4096
    calls_in_reasoning: Annotated[
        Literal["call", "text"],
        option(
            "A call's mark within the reasoning, if it is a token of its own: call ends the reasoning there and reads "
            "the call, text leaves both in the reasoning."
        ),
    ] = "call"
    trust_request_chat_template: Annotated[
        bool,
        option(
            "Render chats with a request's own chat_template, in a process of its own with limits of time and memory."
        ),
    ] = False
    enable_tool_guided_generation: Annotated[
        bool,
        option(
            "Arguments of every call obey their schema, as for strict functions; a request may differ."
        ),
    ] = False
    lenient_formats: Annotated[
        bool,
        option(
            "Answer a request without those parts of its response_format, or of a tool's schema, that cannot be "
            "honoured, rather than with a 400; the header x-ouzel-format-ignored says why. On with --profile ovms."
        ),
    ] = False
    bare_calls: Annotated[
        bool,
        option(
            "Take a whole answer that is the JSON of calls, without the model's own marks around it, for these calls "
            "where tools may be called."
        ),
    ] = True
    unknown_tools: Annotated[
        Literal["ignore", "refuse"],
        option(
            "Tools that a server would have to run (web_search, mcp, ...): ignore leaves them out where others are "
            "offered, refuse answers with a 400."
        ),
    ] = "ignore"
    reasoning_field: Annotated[
        Literal["both", "reasoning_content", "reasoning"],
        option("Under which name a chat's answer shows the reasoning; clients differ."),
    ] = "both"
    cache_dir: Annotated[
        str,
        option(
            "Where compressed weights are kept.", unset="$XDG_CACHE_HOME/ouzel or ~/.cache/ouzel"
        ),
    ] = ""

    @property
    def weight_plan(self) -> WeightPlan:
        return read_weights(self.weights, recompress=self.recompress)

    @property
    def pooling_mode(self) -> Literal["cls", "mean", "lasttoken"] | None:
        """Returns None where the model's files say the pooling."""
        return None if self.pooling == "auto" else self.pooling

    def __post_init__(self) -> None:
        read_weights(self.weights)
        if self.lora:
            read_adapters(self.lora)
