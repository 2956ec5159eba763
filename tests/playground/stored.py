"""Reads the conversations that the browser stores."""

from tests.playground.chromium import User


def records(user: User) -> list[dict[str, object]]:
    script = "async () => (await import('/playground/modules/storage/database.js')).all()"
    found: list[dict[str, object]] = user.page.evaluate(script)
    return found


def wait_until_stored(user: User, number: int = 1) -> None:
    """Waits until the newest conversation is stored with `number` messages."""
    script = """async () => {
      const all = await (await import("/playground/modules/storage/database.js")).all();
      const newest = all.sort((one, other) => other.updated - one.updated)[0];
      return newest === undefined ? 0 : newest.saved.length;
    }"""
    while user.page.evaluate(script) < number:
        user.page.wait_for_timeout(20)
