"""Every text of the page comes from the file of its language, and every language has every text."""

import re
from collections.abc import Mapping

import httpx
import pytest
from playwright.sync_api import Browser

from ouzel.playground import DIRECTORY, LANGUAGES, RIGHT_TO_LEFT, file_names, read_texts
from tests.api.serving import RunningServer
from tests.playground.chromium import User

# plural categories of whole numbers, from CLDR
_CATEGORIES = {
    "en": {"one", "other"},
    "de": {"one", "other"},
    "es": {"one", "many", "other"},
    "fr": {"one", "many", "other"},
    "zh": {"other"},
    "ja": {"other"},
    "ar": {"zero", "one", "two", "few", "many", "other"},
}
_VALUE = re.compile(r"\{(\w+)\}")
_CALL = re.compile(r'translate(?:Parts)?\(\s*"([\w.]+)"')
_PREFIX = re.compile(r"`([a-z]+\.(?:\w+\.)?)\$\{")  # the last part of such keys is a value
_PLACE = re.compile(r"\{\{([\w.]+)\}\}")
_PAGE = {"accept": "text/html"}


def _forms(text: str | Mapping[str, str]) -> Mapping[str, str]:
    return {"": text} if isinstance(text, str) else text


def _sources() -> str:
    names = [name for name in file_names() if name.endswith((".js", ".html"))]
    return "\n".join((DIRECTORY / name).read_text() for name in names)


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_each_text_with_its_values(language: str) -> None:
    english, texts = read_texts("en"), read_texts(language)
    assert list(texts) == list(english)  # the same order makes files comparable
    for key, text in texts.items():
        forms = _forms(text)
        assert isinstance(text, str) or set(text) == _CATEGORIES[language], key
        assert isinstance(text, str) == isinstance(english[key], str), key
        wanted = set(_VALUE.findall(_forms(english[key]).get("other", str(english[key]))))
        for form in forms.values():
            given = set(_VALUE.findall(form))
            # a form for one number may have the number as a word
            assert given == wanted or (len(forms) > 1 and given | {"count"} == wanted), key
            assert form.strip() == form != "", key


def test_each_text_is_used_and_each_used_text_exists() -> None:
    texts, sources = read_texts("en"), _sources()
    named = set(_CALL.findall(sources))
    named |= set(_PLACE.findall(sources)) - {"language", "direction"}
    prefixes = tuple(_PREFIX.findall(sources))
    assert named - set(texts) == set()
    # a key may also stand in a table of keys
    unused = {key for key in texts if f'"{key}"' not in sources and key not in named}
    assert {key for key in unused if not key.startswith(prefixes)} == set()


def test_the_server_chooses_the_language_of_the_page(parrot: RunningServer) -> None:
    def language(**headers: str) -> str:
        page = httpx.get(parrot.url, headers=_PAGE | headers)
        assert "accept-language" in page.headers["vary"]
        found = re.search(r'<html lang="(\w+)"', page.text)
        assert found is not None
        return found[1]

    assert language() == "en"
    assert language(**{"accept-language": "de-AT,de;q=0.9,en;q=0.5"}) == "de"
    assert language(**{"accept-language": "it, fr;q=0.4, ja;q=0.7"}) == "ja"
    assert language(**{"accept-language": "it, *"}) == "en"
    assert language(**{"accept-language": "es;q=0, no sense;;, zh-Hant-TW;q=0.1"}) == "zh"
    assert language(**{"accept-language": "de", "cookie": "ouzel-language=fr"}) == "fr"
    assert language(**{"accept-language": "de", "cookie": "ouzel-language=../x"}) == "de"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_opens_in_each_language(
    browser: Browser, parrot: RunningServer, language: str
) -> None:
    context = browser.new_context(locale=language)
    user = User(context.new_page(), parrot.url)
    user.open()
    shown = user.page.locator("#new").inner_text()
    assert shown == read_texts(language)["list.newConversation"]
    direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"
    assert user.page.evaluate("document.documentElement.dir") == direction
    context.close()


def test_a_person_chooses_another_language(user: User) -> None:
    user.page.select_option("#language", "de")
    user.page.wait_for_selector("html[lang=de] body.ready")
    user.page.reload()
    user.page.wait_for_selector("html[lang=de] body.ready")
    assert user.page.locator("#language").input_value() == "de"
