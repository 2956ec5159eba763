"""Turns a validated request into a stream of events.

 EngineRequest ─submit─> StepOutput ─detokenizer─> text ─stop strings─> text ─parser─> deltas
     ─> Output, Finished

The events of a request that scores its prompt begin with `PromptScored`. Stop strings are text, so
they are found here and not in the engine: the choice ends with `stop`, the engine is told, and
tokens that it made after the match are not counted. Closing `Generation.events()` aborts unfinished
choices.
"""

from ouzel.engine_client import EngineClient, EngineState
from ouzel.engine_client.background import background, in_background
from ouzel.generation.accept import accept
from ouzel.generation.demands import OutputForm, ToolUse
from ouzel.generation.generation import Generation
from ouzel.generation.options import Choosing, GenerationOptions
from ouzel.generation.reasoning_budget import prepare_reasoning_budgets
from ouzel.generation.records import (
    Durations,
    Event,
    Finished,
    GenerationRequest,
    Output,
    PromptScored,
    Usage,
)
from ouzel.generation.served_model import ServedModel, system_fingerprint
from ouzel.generation.several import SeveralGenerations
from ouzel.generation.spans import collect_span_attributes
from ouzel.generation.speculation import MAX_ASSISTANT_TOKENS, SpeculationOptions
from ouzel.generation.successive import AnyGeneration, SuccessiveGenerations
from ouzel.parsers.base import ContentDelta, Delta, ReasoningDelta, ToolCallDelta
from ouzel.prompts.chat_rendering import ChatRendering
from ouzel.prompts.media.documents import can_read_documents
from ouzel.prompts.media.held_bytes import HeldBytes
from ouzel.prompts.media.parts import DocumentPart, MediaPart, SoundPart
from ouzel.prompts.media_readers.document_parts import (
    decode_text,
    file_part,
    frame_file,
    make_document_part,
    uploaded_part,
)
from ouzel.prompts.media_readers.picture_parts import picture_part
from ouzel.prompts.media_readers.sound_parts import sound_part
from ouzel.prompts.media_readers.uploaded_files import (
    FilesOfKeys,
    FileSource,
    NamedFile,
    OpenedFile,
    name_file,
    open_named,
    require_files,
    use_files,
)
from ouzel.prompts.messages import TEXT_ONLY, ReadableMedia
from ouzel.prompts.prompt import Prompt
from ouzel.prompts.prompt_too_long import PromptTooLong
from ouzel.prompts.truncation import Truncation

__all__ = [  # includes names from the rooms below that the HTTP layer needs
    "MAX_ASSISTANT_TOKENS",
    "TEXT_ONLY",
    "AnyGeneration",
    "ChatRendering",
    "Choosing",
    "ContentDelta",
    "Delta",
    "DocumentPart",
    "Durations",
    "EngineClient",
    "EngineState",
    "Event",
    "FileSource",
    "FilesOfKeys",
    "Finished",
    "Generation",
    "GenerationOptions",
    "GenerationRequest",
    "HeldBytes",
    "MediaPart",
    "NamedFile",
    "OpenedFile",
    "Output",
    "OutputForm",
    "Prompt",
    "PromptScored",
    "PromptTooLong",
    "ReadableMedia",
    "ReasoningDelta",
    "ServedModel",
    "SeveralGenerations",
    "SoundPart",
    "SpeculationOptions",
    "SuccessiveGenerations",
    "ToolCallDelta",
    "ToolUse",
    "Truncation",
    "Usage",
    "accept",
    "background",
    "can_read_documents",
    "collect_span_attributes",
    "decode_text",
    "file_part",
    "frame_file",
    "in_background",
    "make_document_part",
    "name_file",
    "open_named",
    "picture_part",
    "prepare_reasoning_budgets",
    "require_files",
    "sound_part",
    "system_fingerprint",
    "uploaded_part",
    "use_files",
]
