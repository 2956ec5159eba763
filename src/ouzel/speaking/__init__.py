from ouzel.speaking.options import SpeechOptions
from ouzel.speaking.speaker import Speaker
from ouzel.speaking.spoken_part import SpokenPart

__all__ = ["Speaker", "SpeechOptions", "SpokenPart"]
