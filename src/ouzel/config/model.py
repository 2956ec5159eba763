"""Defines the options of a model: its files, its weights and the reading of its output."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from ouzel.config.adapters import AdapterPart, read_adapters
from ouzel.config.option import option
from ouzel.config.weights import WeightPlan, read_weights

Demo = Literal["text", "vision"]
TaskOption = Literal["auto", "generate", "embed", "score", "transcribe", "speak"]
PoolingOption = Literal["auto", "cls", "mean", "lasttoken"]


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Model"

    model: Annotated[
        str,
        option(
            "A local directory, a GGUF file, a short name like qwen3:0.6b (see ouzel models), or a "
            "Hugging Face repo id (of GGUF: id:Q4_K_M).",
            unset="the bundled demo model",
            is_common=True,
        ),
    ] = ""
    mmproj: Annotated[
        str,
        option(
            "The GGUF file of the vision encoder, for a GGUF model: auto (the file with mmproj in "
            "its name beside the model, or in its repository), none, or a path. --no-mmproj is the "
            "same as none."
        ),
    ] = "auto"
    draft_model: Annotated[
        str,
        option(
            "A smaller model with the same tokens, or an EAGLE-3 head or an assistant for MODEL, "
            "named like MODEL. It proposes tokens; MODEL accepts or rejects each.",
            unset="none",
        ),
    ] = ""
    mtp: Annotated[
        bool,
        option(
            "Propose tokens with the prediction layer of the checkpoint (Qwen3.5, 3.6, 3.8, "
            "Qwen3-Next, DeepSeek-V3, GLM-4.5 to 4.7, GLM-OCR). The model accepts or rejects each."
        ),
    ] = False
    task: Annotated[
        TaskOption,
        option("The task of the model; auto: the task that its files describe."),
    ] = "auto"
    matryoshka: Annotated[
        bool,
        option("Allow requests for embeddings with fewer `dimensions`."),
    ] = False
    pooling: Annotated[
        PoolingOption,
        option(
            "How a text's rows become one vector: auto (as the model's files say), cls (the first "
            "row), mean, or lasttoken. A decoder supports lasttoken only."
        ),
    ] = "auto"
    normalize: (
        Annotated[
            bool,
            option(
                "Scale vectors to length 1, unless a request says otherwise.",
                unset="as the model's files say; on with --profile ovms",
            ),
        ]
        | None
    ) = None
    truncate: Annotated[
        bool,
        option(
            "Cut texts that are too long for the model, unless a request says otherwise; off: "
            "refuse them."
        ),
    ] = False
    max_document_chunks: Annotated[
        int,
        Meta(ge=0, lt=2**31),
        option(
            "Largest number of pieces of all documents in one rerank request: a document that is "
            "too long is cut into pieces, and its best piece counts. 0: refuse such a document."
        ),
    ] = 10_000
    demo: Annotated[
        Demo,
        option("The demo model, if no model is named."),
    ] = "text"
    served_model_name: Annotated[
        tuple[str, ...],
        option(
            "A name of the model in requests; the first name appears in answers.",
            unset="the directory's name or the repo id",
            is_common=True,
        ),
    ] = ()
    weights: Annotated[
        str,
        option(
            "Compression of the weights: auto (quantised weights stay as they are, the rest "
            "becomes int8), int8, int4, bf16 or f32; then the widths of single parts (layers, "
            "experts, embedding, head), as in int4,head=int4.",
            is_common=True,
        ),
    ] = "auto"
    recompress: Annotated[
        bool,
        option(
            "Quantise weights again to the width in --weights, even if the checkpoint stores them "
            "in as few bits. Saves memory in some cases and always costs quality."
        ),
    ] = False
    lora: Annotated[
        tuple[str, ...],
        option(
            "NAME=PATH: a LoRA adapter in a PEFT directory, for requests whose `model` is NAME.",
            unset="none",
        ),
    ] = ()
    max_loras: (
        Annotated[
            int,
            Meta(ge=0, le=64),
            option(
                "Largest number of adapters in memory; one batch may use all of them.",
                unset="the number of adapters in --lora",
            ),
        ]
        | None
    ) = None
    max_lora_rank: (
        Annotated[
            int,
            Meta(ge=1, le=512),
            option(
                "Largest rank of an adapter; every adapter takes the memory and time of this rank.",
                unset="the largest rank in --lora, at least 16",
            ),
        ]
        | None
    ) = None
    lora_parts: Annotated[
        tuple[AdapterPart, ...],
        option(
            "Parts of adapters that are loaded later, beside matrices of layers: dora, bias, norm, "
            "embedding, head. Adapters in --lora bring their own parts.",
            unset="none",
        ),
    ] = ()
    max_model_len: (
        Annotated[
            int,
            Meta(ge=1),
            option(
                "Limit of prompt and completion together, in tokens.",
                unset="the model's own limit; with LongRoPE its original context",
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
                "Largest max_tokens of a request, and the value for requests without it.",
                unset="the rest of the context",
            ),
        ]
        | None
    ) = None
    max_hidden_tokens: Annotated[
        int,
        Meta(ge=0),
        option(
            "Largest number of tokens in a row without visible text, for requests without a token "
            "limit; then the answer ends with `length`. 0: no limit."
        ),
    ] = 8192
    chat_template: Annotated[
        str, option("A Jinja file with the chat template.", unset="the model's own template")
    ] = ""
    tool_parser: Annotated[
        str,
        option(
            "Format of the model's tool calls: auto (by its chat template, else by its "
            "response_template), none, response_template, or the name of a family."
        ),
    ] = "auto"
    reasoning_parser: Annotated[
        str,
        option(
            "Format of the model's reasoning: auto, none, response_template, or the name of a "
            "family."
        ),
    ] = "auto"
    forced_thinking_budget: Annotated[
        int,
        Meta(ge=-1, le=2**31 - 1),
        option(
            "Most tokens of reasoning before a required tool call or a structured answer, and at "
            "most half of the answer's tokens; a request's own budget replaces it. -1: no limit."
        ),
    ] = 4096
    calls_in_reasoning: Annotated[
        Literal["call", "text"],
        option(
            "If a tool call's mark is a token of its own and appears within the reasoning: call "
            "ends the reasoning there and reads the call, text leaves both in the reasoning."
        ),
    ] = "call"
    trust_request_chat_template: Annotated[
        bool,
        option(
            "Render chats with a request's own chat_template, in a separate process with limits of "
            "time and memory."
        ),
    ] = False
    enable_tool_guided_generation: Annotated[
        bool,
        option(
            "Force the arguments of every tool call to follow the tool's schema, as for strict "
            "functions; a request may override it."
        ),
    ] = False
    lenient_formats: Annotated[
        bool,
        option(
            "Ignore the unsupported parts of a response_format or of a tool's schema, instead of "
            "answering 400; the header x-ouzel-format-ignored names them. On with --profile ovms."
        ),
    ] = False
    bare_calls: Annotated[
        bool,
        option(
            "Accept an answer that is only the JSON of tool calls, without the model's marks "
            "around it, as these calls if the request offers tools."
        ),
    ] = True
    unknown_tools: Annotated[
        Literal["ignore", "refuse"],
        option(
            "Tools that a server would have to run (web_search, mcp, ...): ignore drops them if a "
            "request offers other tools too, refuse answers 400."
        ),
    ] = "ignore"
    reasoning_field: Annotated[
        Literal["both", "reasoning_content", "reasoning"],
        option("Name of the field with the reasoning in chat answers; clients differ."),
    ] = "both"
    idle_unload_s: (
        Annotated[
            float,
            Meta(ge=-1),
            option(
                "Unload the model after so many seconds without requests; the next request loads "
                "it again. -1: never.",
                unset="never; 300 for models of --models-dir and for pulled models",
            ),
        ]
        | None
    ) = None
    group: Annotated[
        str,
        option(
            "Models of one group are loaded and unloaded together; the group `permanent` is never "
            "unloaded.",
            unset="each model is a group of its own",
        ),
    ] = ""
    cache_dir: Annotated[
        str,
        option("Directory of compressed weights.", unset="$XDG_CACHE_HOME/ouzel or ~/.cache/ouzel"),
    ] = ""
    catalogue: Annotated[
        str,
        option(
            "A JSON file, or its URL, with short names of models, which replaces the bundled one.",
            unset="the bundled catalogue",
        ),
    ] = ""
    check_fit: Annotated[
        bool,
        option(
            "Refuse to download a model with a short name that does not fit the memory or the disk."
        ),
    ] = True

    @property
    def weight_plan(self) -> WeightPlan:
        return read_weights(self.weights, recompress=self.recompress)

    @property
    def pooling_mode(self) -> Literal["cls", "mean", "lasttoken"] | None:
        """Returns the pooling of the option; None if the model's files decide."""
        return None if self.pooling == "auto" else self.pooling

    def make_draft_config(self) -> "ModelConfig":
        """Returns the options of the smaller model that `draft_model` names."""
        return msgspec.structs.replace(
            self,
            model=self.draft_model,
            draft_model="",
            max_model_len=None,
            lora=(),
            max_loras=None,
            lora_parts=(),
        )

    def __post_init__(self) -> None:
        read_weights(self.weights)
        if self.lora:
            read_adapters(self.lora)
