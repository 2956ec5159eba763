"""Turns a sound into segments and words of text: windows, decoding, timestamps.

Rules
1. A transcription goes from window to window of 30 s, as openai-whisper does (`window_loop.py`). A
   window begins where the last complete segment before it ended.
2. The text of a window is decoded again with a higher temperature while it is unlikely or repeats
   itself (`window_decoder.py`). A client sees no text that can still be withdrawn.
3. With chunking `vad`, the sound is cut at pauses first (`speech_chunks.py`). The chunks are
   transcribed at the same time, without the text before them; their events keep their order.
4. Every engine request belongs to one window. Closing the stream of events aborts all of them.
5. Usage counts the encoder frames of each window once as audio tokens, the prompt of each window
   once as text tokens, and all generated tokens, also of failed decodings.
"""

from ouzel.transcription.events import (
    Segment,
    SegmentDone,
    TextDelta,
    Transcription,
    TranscriptionEvent,
    TranscriptionUsage,
    Word,
)
from ouzel.transcription.options import (
    Chunking,
    SpeechTask,
    TranscriptionOptions,
    VoiceDetection,
)
from ouzel.transcription.subtitles import write_srt, write_vtt
from ouzel.transcription.transcriber import Transcriber

__all__ = [
    "Chunking",
    "Segment",
    "SegmentDone",
    "SpeechTask",
    "TextDelta",
    "Transcriber",
    "Transcription",
    "TranscriptionEvent",
    "TranscriptionOptions",
    "TranscriptionUsage",
    "VoiceDetection",
    "Word",
    "write_srt",
    "write_vtt",
]
