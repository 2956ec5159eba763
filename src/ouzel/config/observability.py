"""What the server tells those who watch it: logs, metrics, traces."""

from typing import Annotated, ClassVar, Literal

import msgspec

from ouzel.config.option import option


class ObservabilityConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Observability"

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], option("Least level logged.", is_common=True)
    ] = "info"
