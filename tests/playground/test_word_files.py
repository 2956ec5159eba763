"""The text of an attached Word file is part of the prompt, with and without a store."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, expect

from tests.api.seeing import last_prompt, seeing_server
from tests.api.serving import RunningServer
from tests.file_text.word_files import make_package, make_word_file, paragraph
from tests.playground.chromium import User, skip_unless_chromium
from tests.playground.test_attachments import READER, READING, SEEING, attach, state

WORD = FilePayload(
    name="plan.docx",
    mimeType="",
    buffer=make_word_file(paragraph("Plan") + paragraph("Owls hunt at night.")),
)
