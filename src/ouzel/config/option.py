"""`option` describes a field of the records in `ouzel.config` for `--help` and the documents."""

from msgspec import Meta


def option(
    description: str,
    *,
    unset: str = "",
    is_common: bool = False,
    is_secret: bool = False,
    heading: str = "",
) -> Meta:
    """Returns the metadata of a field: its description and facts for `--help`.

    `unset` describes the default if it is empty or None. Common options are shown first. The value
    of a secret option is in no message. `heading` is the section of `--help`, if it differs from
    the heading of the record.
    """
    facts = {"unset": unset, "isCommon": is_common, "writeOnly": is_secret, "heading": heading}
    return Meta(description=description, extra_json_schema=facts)
