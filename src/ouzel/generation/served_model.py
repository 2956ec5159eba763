"""What a server has for one model: everything that turns requests into text."""

import hashlib
from dataclasses import dataclass, replace

from ouzel.checkpoint.model_facts import NO_FACTS, ModelFacts
from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.engine_client import Engines
from ouzel.generation.demands import OutputForm, ToolUse, grammar_for
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.registry import PLAIN, OutputFormat
from ouzel.prompts.render import PromptRenderer
from ouzel.tokenizer.base import Tokenizer
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import Grammar


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    names: tuple[
        str, ...
    ]  # the `model` values that clients may send; the first is the one in answers
    tokenizer: Tokenizer
    renderer: PromptRenderer
    sampling_defaults: SamplingDefaults
    engine: Engines
    output_format: OutputFormat
    vocabulary: GrammarVocabulary
    # most tokens that a request may ask for, and what it gets without asking
    max_tokens_limit: int | None = None
    max_hidden_tokens: int = 0  # in a row, where a request has no limit of tokens; 0: any number
    # the arguments of all calls obey their schemas unless a request says otherwise
    guides_tools: bool = False
    # a format that cannot be honoured is dropped rather than refused
    has_lenient_formats: bool = False
    # a whole answer that is calls in JSON, without marks, is these calls
    reads_bare_calls: bool = True
    refuses_unknown_tools: bool = False  # rather than leaving them out
    # most tokens of reasoning before a forced form; -1: no limit
    forced_thinking_budget: int = 4096
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")  # of a chat's answers
    shares_prefix_cache: bool = False  # all API keys have one
    facts: ModelFacts = NO_FACTS
    # that are made vectors or scores, where a request does not say; else it refuses them
    cuts_long_texts: bool = False
    # of the documents of a request to rerank; 0: no document is divided
    max_document_pieces: int = 10_000
    # of a model that makes vectors or scores; None: it generates
    sentences: SentenceFiles | None = None
    # that its requests use; it shares engine and all else with the model that it adapts
    adapter: str = ""
    parent_names: tuple[str, ...] = ()  # of that model
    created: int  # unix seconds
    system_fingerprint: str

    def with_adapter(self, name: str) -> "ServedModel":
        """Returns the model as this adapter makes it, which clients know by the adapter's name."""
        return replace(self, names=(name,), adapter=name, parent_names=self.names)

    def cache_salt(self, key_id: str | None, own_salt: str) -> str:
        """Returns under which salt a request's prompt is cached: no key finds what another has asked.

        `own_salt` is what the request gives. Ids of keys are all of the same length, so no two pairs are the same salt.
        """
        return own_salt if key_id is None or self.shares_prefix_cache else f"{key_id}:{own_salt}"

    def grammar_for(
        self,
        use: ToolUse | None,
        form: OutputForm | None,
        *,
        prompt_text: str | None,
        continues_prompt: bool,
        guards_calls: bool,
    ) -> Grammar | None:
        """None: the output is free. Raises InvalidRequest for what cannot be honoured.

        `prompt_text`: of an output that is parsed; without it the whole output is the form. `guards_calls`: a grammar
        for calls that need not come is welcome.
        """
        if use is None and form is None:
            return None
        output_format = PLAIN if prompt_text is None else self.output_format
        return grammar_for(
            use,
            form,
            output_format=output_format,
            vocabulary=self.vocabulary,
            prompt_text=prompt_text or "",
            continues_prompt=continues_prompt,
            guards_calls=guards_calls and self.engine.info.has_grammars,
        )


def system_fingerprint(model_name: str, info: EngineInfo, version: str) -> str:
    """Returns another text for an engine from which the same request might get another answer."""
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
