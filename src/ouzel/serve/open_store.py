"""Opens the store that the options ask for."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from ouzel.config import StoreConfig
from ouzel.store.base import Store
from ouzel.store.errors import StoreOpenError

logger = logging.getLogger(__name__)

_FILE = "responses.sqlite3"
_DAY_S = 86400.0


async def open_configured_store(config: StoreConfig) -> Store | None:
    """Opens the store of the options.

    Returns None if storing is off, or, with a warning, if the default directory cannot be used.
    Raises StoreOpenError.
    """
    if not config.store:
        return None
    # Both import sqlalchemy.
    from ouzel.store.sql_store import open_store  # noqa: PLC0415
    from ouzel.store.vector_stores.room import SizeLimits  # noqa: PLC0415

    vectors_gib = config.vector_stores_max_gib
    vectors_gib_per_key = config.vector_stores_key_max_gib or vectors_gib
    url = config.store_url or f"sqlite:///{_data_directory(config.data_dir, os.environ) / _FILE}"
    try:
        return await open_store(
            url,
            max_age_s=config.store_max_age_days * _DAY_S,
            max_bytes=int(config.store_max_gib * 2**30),
            max_file_bytes=int(config.files_max_gib * 2**30),
            vector_limits=SizeLimits(int(vectors_gib * 2**30), int(vectors_gib_per_key * 2**30)),
        )
    except StoreOpenError as error:
        if not config.store_url and not config.data_dir:
            logger.warning(
                "responses are not stored: %s (choose a place with --store-url or --data-dir)",
                error,
            )
            return None
        help_text = "choose another place with --store-url or --data-dir, or none with --no-store"
        raise StoreOpenError(f"{error} ({help_text})") from error


def _data_directory(data_dir: str, environment: Mapping[str, str]) -> Path:
    if data_dir:
        return Path(data_dir).expanduser()
    base = environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "ouzel"
