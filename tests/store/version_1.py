"""Makes a store of version 1, the first released schema, for tests of upgrades.

Never edit the statements: databases of users have these tables.
"""

from sqlalchemy import Connection

# {BYTES} and {DOUBLE} are the two types whose names differ between the databases.
_STATEMENTS = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (1);
CREATE TABLE servers (
    id VARCHAR(64) NOT NULL,
    expires_at {DOUBLE} NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE responses (
    id TEXT NOT NULL,
    key_id TEXT,
    model TEXT NOT NULL,
    status VARCHAR(16) NOT NULL,
    is_background BOOLEAN NOT NULL,
    previous_response_id TEXT,
    conversation_id TEXT,
    num_conversation_items BIGINT NOT NULL,
    body {BYTES} NOT NULL,
    request {BYTES},
    num_items INTEGER NOT NULL,
    num_events INTEGER NOT NULL,
    owner VARCHAR(64),
    created_at {DOUBLE} NOT NULL,
    used_at {DOUBLE} NOT NULL,
    size_bytes BIGINT NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX responses_by_use ON responses (used_at, size_bytes);
CREATE INDEX responses_by_status ON responses (status, created_at);
CREATE TABLE events (
    response_id TEXT NOT NULL,
    first_event INTEGER NOT NULL,
    end_event INTEGER NOT NULL,
    batch {BYTES} NOT NULL,
    PRIMARY KEY (response_id, first_event)
);
CREATE TABLE conversations (
    id TEXT NOT NULL,
    key_id TEXT,
    metadata {BYTES} NOT NULL,
    locked_by TEXT,
    next_position BIGINT NOT NULL,
    created_at {DOUBLE} NOT NULL,
    used_at {DOUBLE} NOT NULL,
    size_bytes BIGINT NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX conversations_by_use ON conversations (used_at, size_bytes);
CREATE TABLE items (
    owner_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    is_output BOOLEAN NOT NULL,
    id TEXT NOT NULL,
    key_id TEXT,
    body {BYTES} NOT NULL,
    PRIMARY KEY (owner_id, position)
);
CREATE INDEX ix_items_id ON items (id);
INSERT INTO responses VALUES (
    'resp_old', 'key', 'model', 'completed', {FALSE}, NULL, NULL, 0, {BODY}, NULL, 0, 0, NULL,
    {NOW}, {NOW}, 512
);
"""
_TYPES = {
    "sqlite": {
        "BYTES": "BLOB",
        "DOUBLE": "FLOAT",
        "FALSE": "0",
        "BODY": "x'7b7d'",
        "NOW": "(julianday('now') - 2440587.5) * 86400.0",
    },
    "postgresql": {
        "BYTES": "BYTEA",
        "DOUBLE": "FLOAT(53)",
        "FALSE": "FALSE",
        "BODY": r"'\x7b7d'",
        "NOW": "extract(epoch from clock_timestamp())",
    },
}


def make_store_of_version_1(connection: Connection) -> None:
    """Makes the tables of version 1, with the response `resp_old` of the API key `key`."""
    filled = _STATEMENTS.format(**_TYPES[connection.dialect.name])
    for statement in filled.strip().removesuffix(";").split(";"):
        connection.exec_driver_sql(statement)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA application_id = {0x4F757A6C}")
