"""Describes chat messages for the OpenAPI document. The prompt renderer checks the messages."""

from typing import Annotated

from msgspec import Meta

_TEXT_PART = {
    "type": "object",
    "required": ["type", "text"],
    "properties": {"type": {"enum": ["text"]}, "text": {"type": "string"}},
}
DETAILS = ("auto", "low", "high", "original")
_PICTURE_URL: dict[str, object] = {
    "description": "A data URL or base64; an http or https URL or a path, if the operator "
    "allows it.",
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "required": ["url"],
            "properties": {
                "url": {"type": "string", "minLength": 1},
                "detail": {"enum": [*DETAILS, None]},
            },
        },
    ],
}
_PICTURE_PART = {
    "description": "For models that accept images.",
    "type": "object",
    "required": ["type", "image_url"],
    "properties": {
        "type": {"enum": ["image_url", "input_image"]},
        "image_url": _PICTURE_URL,
        "detail": {"enum": [*DETAILS, None], "description": "Only if image_url is a string."},
    },
}
_TEXT = {"type": "string", "minLength": 1}
_VIDEO_PART = {
    "description": "For models that accept videos. A list holds frames.",
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {"enum": ["video_url", "video"]},
        "video_url": {
            "anyOf": [_TEXT, {"type": "object", "required": ["url"], "properties": {"url": _TEXT}}],
        },
        "video": {"anyOf": [_TEXT, {"type": "array", "minItems": 1, "items": _TEXT}]},
        "fps": {
            "description": "Frames a second: the rate of a list, or the sampling rate for a file.",
            "anyOf": [{"type": "number", "minimum": 0.1, "maximum": 60}, {"type": "null"}],
        },
    },
}
_FILE_PART = {
    "description": "A PDF: each page becomes an image; for models without images, a text.",
    "type": "object",
    "required": ["type", "file"],
    "properties": {
        "type": {"enum": ["file"]},
        "file": {
            "type": "object",
            "required": ["file_data"],
            "properties": {
                "file_data": {
                    **_TEXT,
                    "description": "A data URL or base64; a URL, if the operator allows it.",
                },
                "filename": {
                    "type": ["string", "null"],
                    "description": "Not used: the content shows the type of the file.",
                },
                "detail": {"enum": [*DETAILS, None]},
            },
        },
    },
}
_INPUT_AUDIO_PART = {
    "description": "A sound, for models that hear.",
    "type": "object",
    "required": ["type", "input_audio"],
    "properties": {
        "type": {"enum": ["input_audio"]},
        "input_audio": {
            "type": "object",
            "required": ["data"],
            "properties": {
                "data": {**_TEXT, "description": "Base64 of a sound file, or a data URL."},
                "format": {
                    "type": ["string", "null"],
                    "description": "wav, mp3 or another kind of file. The bytes tell it as well.",
                },
            },
        },
    },
}
_AUDIO_URL_PART = {
    "description": "A sound, for models that hear.",
    "type": "object",
    "required": ["type", "audio_url"],
    "properties": {
        "type": {"enum": ["audio_url"]},
        "audio_url": {
            "anyOf": [
                _TEXT,
                {"type": "object", "required": ["url"], "properties": {"url": _TEXT}},
            ],
            "description": "A data URL; a URL or a path, if the operator allows it.",
        },
    },
}
_CUSTOM_CALL = {
    "type": "object",
    "required": ["type", "custom"],
    "properties": {
        "id": {"type": "string"},
        "type": {"enum": ["custom"]},
        "custom": {
            "type": "object",
            "required": ["name", "input"],
            "properties": {"name": {"type": "string", "minLength": 1}, "input": {"type": "string"}},
        },
    },
}
_FUNCTION_CALL = {
    "type": "object",
    "required": ["function"],
    "properties": {
        "id": {"type": "string"},
        "type": {"enum": ["function"]},
        "function": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "arguments": {"anyOf": [{"type": "string"}, {"type": "object"}]},
            },
        },
    },
}
_KEYS = {
    "name": {"type": ["string", "null"]},
    "tool_call_id": {"type": ["string", "null"]},
    "reasoning_content": {"type": ["string", "null"]},
    "refusal": {"type": ["string", "null"]},
    "audio": {"type": "null"},
    "tool_calls": {
        "anyOf": [
            {"type": "array", "items": {"anyOf": [_FUNCTION_CALL, _CUSTOM_CALL]}},
            {"type": "null"},
        ]
    },
}
_PARTS = {
    "anyOf": [
        *(_TEXT_PART, _PICTURE_PART, _VIDEO_PART, _FILE_PART),
        *(_INPUT_AUDIO_PART, _AUDIO_URL_PART),
    ]
}
_CONTENT = [{"type": "string"}, {"type": "array", "minItems": 1, "items": _PARTS}]
ROLES = ["system", "developer", "user", "assistant", "tool"]
_MESSAGE = {
    "description": "The chat template receives other keys unchanged; other roles are accepted if "
    "the template shows them.",
    "anyOf": [
        {
            "type": "object",
            "required": ["role", "content"],
            "properties": {"role": {"enum": ROLES}, "content": {"anyOf": _CONTENT}, **_KEYS},
        },
        {
            "type": "object",
            "required": ["role"],
            "properties": {
                "role": {"enum": ["assistant"]},
                "content": {"anyOf": [*_CONTENT, {"type": "null"}]},
                **_KEYS,
            },
        },
    ],
}

Messages = Annotated[
    object,
    Meta(
        description="The chat; each message has a role and a content.",
        extra_json_schema={"type": "array", "minItems": 1, "items": _MESSAGE},
    ),
]
