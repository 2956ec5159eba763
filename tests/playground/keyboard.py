"""A user without a pointer: every control is reached with Tab, and the focus is never lost."""

from playwright.sync_api import FilePayload, Locator, expect

from tests.playground.chromium import User

_MAX_STOPS = 500  # no page has as many controls
_HAS_FOCUS = "document.activeElement !== document.body"
# Tells whether a control has the focus, or lies before or after the control that has it.
_WHERE = """node => {
  const { activeElement: focused } = document;
  if (node === focused) return "here";
  const isBefore = node.compareDocumentPosition(focused) & Node.DOCUMENT_POSITION_FOLLOWING;
  return isBefore ? "before" : "after";
}"""


class KeyboardUser(User):
    """Uses the playground by keys alone."""

    def reach(self, control: Locator) -> None:
        """Presses Tab until the control has the focus; it must then be in sight."""
        control.wait_for()
        self.wait_until(_HAS_FOCUS)
        for _ in range(_MAX_STOPS):
            if (where := control.evaluate(_WHERE)) == "here":
                break
            self.page.keyboard.press("Tab" if where == "after" else "Shift+Tab")
        assert where == "here", f"Tab does not reach {control}"
        expect(control).to_be_in_viewport()

    def use(self, control: Locator) -> None:
        self.reach(control)
        self.page.keyboard.press("Enter")

    def write(self, field: str, text: str) -> None:
        self.reach(self.page.locator(field))
        self.page.keyboard.press("Control+a")
        self.page.keyboard.press("Delete")
        self.page.keyboard.insert_text(text)
        expect(self.page.locator(field)).to_have_value(text)

    def switch(self, box: str, *, is_on: bool = True) -> None:
        found = self.page.locator(box)
        self.reach(found)
        if found.is_checked() != is_on:
            self.page.keyboard.press("Space")
        expect(found).to_be_checked(checked=is_on)

    def choose(self, select: str, value: str) -> None:
        """Presses the arrow keys in a field of choices, which has the choice `value`."""
        found = self.page.locator(select)
        self.reach(found)
        self.page.keyboard.press("Home")
        for _ in range(found.locator("option").count()):
            if found.input_value() == value:
                break
            self.page.keyboard.press("ArrowDown")
        expect(found).to_have_value(value)

    def choose_files(self, opener: str, picker: str, *files: FilePayload) -> None:
        with self.page.expect_file_chooser() as chosen:
            self.use(self.page.locator(opener))
        chosen.value.set_files(list(files))

    def point_at(self, place: Locator) -> None:
        self.reach(place)

    def send(self, text: str) -> None:
        if self.page.locator("#prompt:focus").count() == 0:
            self.page.keyboard.press("Alt+KeyP")
        self.write("#prompt", text)
        self.page.keyboard.press("Enter")
