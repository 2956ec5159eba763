"""Holds everything that a server needs to turn requests for one model into text."""

import hashlib
from dataclasses import dataclass, replace

from ouzel.checkpoint.model_facts import NO_FACTS, ModelFacts
from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.checkpoint.speech_tokens import SpeechTokens
from ouzel.engine_client import Engines
from ouzel.generation.demands import OutputForm, ToolUse, make_grammar
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.registry import PLAIN, OutputFormat
from ouzel.prompts.render import PromptRenderer
from ouzel.tokenizer.base import Tokenizer
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import Grammar


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """One model as clients know it: names, tokenizer, engine, defaults and limits."""

    # the `model` values that clients may send; the first one is in answers
    names: tuple[str, ...]
    tokenizer: Tokenizer
    renderer: PromptRenderer
    sampling_defaults: SamplingDefaults
    engine: Engines
    output_format: OutputFormat
    vocabulary: GrammarVocabulary
    # maximum of max_tokens, and its default
    max_tokens_limit: int | None = None
    # maximum of successive tokens without text, if a request has no token limit; 0: no limit
    max_hidden_tokens: int = 0
    # arguments of all calls obey their schemas unless a request says otherwise
    guides_tools: bool = False
    # a format that cannot be honoured is dropped, not refused
    has_lenient_formats: bool = False
    # a whole answer of JSON calls without marks counts as these calls
    reads_bare_calls: bool = True
    refuses_unknown_tools: bool = False  # refuses unknown tools; otherwise it ignores them
    # maximum of reasoning tokens before a forced form; -1: no limit
    forced_thinking_budget: int = 4096
    # fields of reasoning in the answers of chats
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    shares_prefix_cache: bool = False  # all API keys share one prefix cache
    facts: ModelFacts = NO_FACTS
    is_demo: bool = False  # one of the small models in this package
    # cuts texts of embedding and scoring requests by default; otherwise it refuses long ones
    cuts_long_texts: bool = False
    # pieces of all documents of a rerank request; 0: documents are not divided
    max_document_pieces: int = 10_000
    # settings of a model for vectors or scores; None: the model generates
    sentences: SentenceFiles | None = None
    speech: SpeechTokens | None = None  # tokens of a transcript; None: the model reads no sound
    speaks: bool = False  # the model reads texts aloud, and writes none
    # the model is unloaded when it is idle, and loaded for a request
    comes_and_goes: bool = False
    # adapter of its requests; engine and all else are shared with the base model
    adapter: str = ""
    parent_names: tuple[str, ...] = ()  # names of the base model
    created: int  # unix seconds
    system_fingerprint: str

    def with_adapter(self, name: str) -> "ServedModel":
        """Returns the model with this adapter; clients use the adapter's name."""
        return replace(self, names=(name,), adapter=name, parent_names=self.names)

    def cache_salt(self, key_id: str | None, own_salt: str) -> str:
        """Returns the salt under which a request's prompt is cached, so that API keys do not share.

        `own_salt` comes from the request. All key ids have one length, so no two pairs make the
        same salt.
        """
        return own_salt if key_id is None or self.shares_prefix_cache else f"{key_id}:{own_salt}"

    def make_grammar(
        self,
        use: ToolUse | None,
        form: OutputForm | None,
        *,
        prompt_text: str | None,
        continues_prompt: bool,
        guards_calls: bool,
    ) -> Grammar | None:
        """Makes the grammar of the output; None if the output is free.

        Raises InvalidRequest for demands that cannot be honoured. `prompt_text` is None for an
        output that is not parsed: then the whole output has the form. With `guards_calls`, a
        grammar may also check optional calls.
        """
        if use is None and form is None:
            return None
        output_format = PLAIN if prompt_text is None else self.output_format
        return make_grammar(
            use,
            form,
            output_format=output_format,
            vocabulary=self.vocabulary,
            prompt_text=prompt_text or "",
            continues_prompt=continues_prompt,
            guards_calls=guards_calls and self.engine.info.has_grammars,
        )


def system_fingerprint(model_name: str, info: EngineInfo, version: str) -> str:
    """Returns a text that differs for engines from which the same request may get another
    answer.
    """
    parts = [
        model_name,
        info.model_type,
        info.weights,
        info.precision,
        info.kv_cache_dtype,
        version,
    ]
    if info.is_deterministic:
        parts.append("deterministic")
    return "fp_" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
