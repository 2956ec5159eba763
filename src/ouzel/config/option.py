"""`option` is what a field of the records says beyond its type: to `--help`, and about its place there."""

from msgspec import Meta


def option(
    description: str,
    *,
    unset: str = "",
    is_common: bool = False,
    is_secret: bool = False,
    heading: str = "",
) -> Meta:
    """Returns what `--help` says about a field.

    `unset` says what holds where the default is empty or None. Common options are shown first. A secret's value is in
    no message. `heading`, where it is not the record's own, is the section of `--help`.
    """
    facts = {"unset": unset, "isCommon": is_common, "writeOnly": is_secret, "heading": heading}
    return Meta(description=description, extra_json_schema=facts)
