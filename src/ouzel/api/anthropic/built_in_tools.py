"""Adds the schemas of Anthropic's client tools, which a request names only by their type.

Anthropic's models know these tools. Other models do not, so the descriptions say everything: each
command, and its fields. Schemas are flat, with the fields of all commands side by side, because
many chat templates and call formats read only `properties`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ouzel.errors import InvalidRequest
from ouzel.wire.tools import FunctionDefinition
from ouzel.wire.validation_errors import show_value

Schema = dict[str, object]

_PATH: Schema = {"type": "string", "description": "The absolute path of the file or directory."}
_LINES: Schema = {
    "type": "array",
    "items": {"type": "integer"},
    "minItems": 2,
    "maxItems": 2,
    "description": "view: the first and the last line to show, counted from 1; -1 is the end of "
    "the file.",
}
_OLD_TEXT: Schema = {
    "type": "string",
    "description": "str_replace: the text to replace; it is in the file exactly once.",
}
_LINE_BEFORE: Schema = {
    "type": "integer",
    "description": "insert: the line after which the text goes; 0 is the beginning.",
}
_NEW_FILE: Schema = {"type": "string", "description": "create: the whole text of the file."}


class ToolOptions(Protocol):
    """Declares the fields of a built-in tool in the request."""

    @property
    def strict(self) -> bool | None: ...

    @property
    def display_width_px(self) -> int | None: ...

    @property
    def display_height_px(self) -> int | None: ...

    @property
    def display_number(self) -> int | None: ...

    @property
    def enable_zoom(self) -> bool | None: ...

    @property
    def max_characters(self) -> int | None: ...


def built_in_function(kind: str, options: ToolOptions, path: str) -> FunctionDefinition | None:
    """Returns the function for a tool of this type, or None for an unknown type.

    Raises InvalidRequest if `options` lack a field that the tool needs.
    """
    make = _TOOLS.get(kind)
    if make is None:
        return None
    name, description, schema = make(options, path)
    return FunctionDefinition(name, description, schema, options.strict)


def _schema(properties: Mapping[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _bash(_: ToolOptions, __: str) -> tuple[str, str, Schema]:
    description = (
        "Runs a command in a bash shell and returns what it prints. The shell lives on between "
        "calls: its working directory, variables and files stay. Commands must not wait for "
        "input. Set restart to true to start a new shell, for example after a command that does "
        "not end."
    )
    properties: dict[str, Schema] = {
        "command": {"type": "string", "description": "The command to run; empty with restart."},
        "restart": {
            "type": "boolean",
            "description": "Starts a new shell instead of running a command.",
        },
    }
    return "bash", description, _schema(properties, "command")


def _editor(name: str, *, inserted: str, undoes: bool) -> "MakeTool":
    """Makes a text editor.

    `inserted` names the field with the text to insert, which differs by type.
    """

    def make(options: ToolOptions, _: str) -> tuple[str, str, Schema]:
        commands = ["view", "create", "str_replace", "insert", *(["undo_edit"] if undoes else [])]
        description = (
            f"Shows and changes text files. Call {name} with a command and only the fields of "
            "that command: view shows a file with line numbers, or the names in a directory "
            "(path, and view_range for a part of a file); create writes a new file (path, "
            "file_text); str_replace replaces one text in a file (path, old_str, new_str), where "
            "old_str must match the file exactly, with its white space, and stand there once; "
            f"insert writes a text after a line (path, insert_line, {inserted})."
        )
        if undoes:
            description += " undo_edit takes the last change of a file back (path)."
        if options.max_characters is not None:
            description += f" A view shows {options.max_characters} characters at most."
        new_text = "str_replace: the text in its place, which may be empty."
        if inserted == "new_str":
            new_text += " insert: the text to insert."
        properties: dict[str, Schema] = {
            "command": {"type": "string", "enum": commands, "description": "What to do."},
            "path": _PATH,
            "file_text": _NEW_FILE,
            "old_str": _OLD_TEXT,
            "new_str": {"type": "string", "description": new_text},
            "insert_line": _LINE_BEFORE,
            "view_range": _LINES,
        }
        if inserted != "new_str":
            properties[inserted] = {"type": "string", "description": "insert: the text to insert."}
        return name, description, _schema(properties, "command", "path")

    return make


def _memory(_: ToolOptions, __: str) -> tuple[str, str, Schema]:
    description = (
        "Keeps notes in files below /memories, which are there in later conversations too. Look "
        "at /memories before a task, and write down there what will be of use later. Call memory "
        "with a command and only the fields of that command: view shows a file, or the names in "
        "a directory (path, and view_range for a part of a file); create writes a file (path, "
        "file_text); str_replace replaces one text in a file (path, old_str, new_str); insert "
        "writes a text after a line (path, insert_line, insert_text); delete removes a file or "
        "directory (path); rename moves one (old_path, new_path)."
    )
    commands = ["view", "create", "str_replace", "insert", "delete", "rename"]
    properties: dict[str, Schema] = {
        "command": {"type": "string", "enum": commands, "description": "What to do."},
        "path": {
            "type": "string",
            "description": "The file or directory, for all commands but rename: /memories/…",
        },
        "view_range": _LINES,
        "file_text": _NEW_FILE,
        "old_str": _OLD_TEXT,
        "new_str": {"type": "string", "description": "str_replace: the text in its place."},
        "insert_line": _LINE_BEFORE,
        "insert_text": {"type": "string", "description": "insert: the text to insert."},
        "old_path": {
            "type": "string",
            "description": "rename: the file or directory as it is called now.",
        },
        "new_path": {"type": "string", "description": "rename: its new path."},
    }
    return "memory", description, _schema(properties, "command")


_FIRST_ACTIONS: Mapping[str, str] = {
    "key": "presses a key or a combination of keys (text, for example Return or ctrl+s)",
    "type": "types a text (text)",
    "mouse_move": "moves the pointer (coordinate)",
    "left_click": "clicks (coordinate, or where the pointer is)",
    "left_click_drag": "drags the pointer (coordinate: where to)",
    "right_click": "clicks with the right button",
    "middle_click": "clicks with the middle button",
    "double_click": "clicks twice",
    "screenshot": "returns a picture of the screen",
    "cursor_position": "returns where the pointer is",
}
_LATER_ACTIONS: Mapping[str, str] = {
    **_FIRST_ACTIONS,
    "left_click_drag": "drags the pointer (start_coordinate, coordinate: from where to where)",
    "hold_key": "holds a key (text, duration in seconds)",
    "left_mouse_down": "presses the left button where the pointer is",
    "left_mouse_up": "releases the left button",
    "triple_click": "clicks three times",
    "scroll": "turns the wheel (coordinate, scroll_direction, scroll_amount; text: a key to hold "
    "meanwhile)",
    "wait": "waits (duration in seconds)",
}
_ZOOM = {"zoom": "returns an enlarged picture of a part of the screen (region)"}
_POINT: Schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
_FIRST_FIELDS: Mapping[str, Schema] = {
    "coordinate": {
        **_POINT,
        "description": "x and y in pixels, from the left and the upper edge of the screen.",
    },
    "text": {"type": "string", "description": "The text to type, or the keys to press."},
}
_LATER_FIELDS: Mapping[str, Schema] = {
    **_FIRST_FIELDS,
    "start_coordinate": {
        **_POINT,
        "description": "left_click_drag: x and y in pixels where it begins.",
    },
    "scroll_direction": {
        "type": "string",
        "enum": ["up", "down", "left", "right"],
        "description": "scroll: where to.",
    },
    "scroll_amount": {
        "type": "integer",
        "description": "scroll: the number of clicks of the wheel.",
    },
    "duration": {"type": "number", "description": "hold_key and wait: the time in seconds."},
}
_REGION: Schema = {
    "type": "array",
    "items": {"type": "integer"},
    "minItems": 4,
    "maxItems": 4,
    "description": "zoom: x and y of the upper left and of the lower right corner, in pixels.",
}


def _computer(
    actions: Mapping[str, str], fields: Mapping[str, Schema], *, zooms: bool = False
) -> "MakeTool":
    def make(options: ToolOptions, path: str) -> tuple[str, str, Schema]:
        for field in ("display_width_px", "display_height_px"):
            if getattr(options, field) is None:
                raise InvalidRequest("is required", field=f"{path}.{field}")
        can_zoom = zooms and bool(options.enable_zoom)
        known = {**actions, **_ZOOM} if can_zoom else actions
        display = (
            "" if options.display_number is None else f", display number {options.display_number}"
        )
        described = "; ".join(f"{action} {effect}" for action, effect in known.items())
        description = (
            "Uses the mouse and the keyboard of a computer with a screen of "
            f"{options.display_width_px} x {options.display_height_px} pixels{display}, and looks "
            "at it. Take a screenshot to see what an action has done. Call computer with an "
            f"action and only the fields of that action: {described}."
        )
        action: Schema = {"type": "string", "enum": list(known), "description": "What to do."}
        properties = {"action": action, **fields, **({"region": _REGION} if can_zoom else {})}
        return "computer", description, _schema(properties, "action")

    return make


# returns name, description and schema
MakeTool = Callable[[ToolOptions, str], tuple[str, str, Schema]]

_OLD_EDITOR = _editor("str_replace_editor", inserted="new_str", undoes=True)
_NEW_EDITOR = _editor("str_replace_based_edit_tool", inserted="insert_text", undoes=False)
_TOOLS: Mapping[str, MakeTool] = {
    "bash_20241022": _bash,
    "bash_20250124": _bash,
    "text_editor_20241022": _OLD_EDITOR,
    "text_editor_20250124": _OLD_EDITOR,
    "text_editor_20250429": _NEW_EDITOR,
    "text_editor_20250728": _NEW_EDITOR,
    "memory_20250818": _memory,
    "computer_20241022": _computer(_FIRST_ACTIONS, _FIRST_FIELDS),
    "computer_20250124": _computer(_LATER_ACTIONS, _LATER_FIELDS),
    "computer_20251124": _computer(_LATER_ACTIONS, _LATER_FIELDS, zooms=True),
}
BUILT_IN_TYPES: Sequence[str] = tuple(_TOOLS)


def check_name(name: str | None, function: FunctionDefinition, path: str) -> None:
    """Raises InvalidRequest if a built-in tool has another name than clients know."""
    if name is not None and name != function.name:
        raise InvalidRequest(
            f"must be {show_value(function.name)}, given {show_value(name)}", field=f"{path}.name"
        )
