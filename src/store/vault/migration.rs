//! The schema of the vault, as steps from each version to the next.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::agents::{
    grants, logins, oauth_clients, oauth_links, owner, owner_key, pairings, token_warnings,
};
use super::audit::{exact, schema};
use super::error::VaultError;
use super::work::{changes, push_devices, schedules, session_messages, watches};
use gatewren_base::sys;

/// Identifies the file as a vault: "gwrv" as a big-endian number.
pub(super) const APPLICATION_ID: u32 = 0x6777_7276;

/// The scripts from version N to N + 1, starting with an empty file. A released step is never edited.
pub(super) const STEPS: &[&[&str]] = &[
    &[VERSION_1],
    &[VERSION_2],
    &[VERSION_3],
    VERSION_4,
    VERSION_5,
    VERSION_6,
    VERSION_7,
    VERSION_8,
    &[token_warnings::SCHEMA],
    &[logins::PASSWORD_SCHEMA],
    &[schedules::SCHEMA],
    &[watches::SCHEMA],
    &[schema::WITHOUT_INSERT_TRIGGER],
    &[schema::ERROR_COLUMN],
    &[schema::REASON_COLUMN],
    &[push_devices::SCHEMA],
    &[session_messages::SCHEMA],
];

const VERSION_1: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

CREATE TABLE agent (
    id           TEXT PRIMARY KEY,
    name         TEXT NOT NULL,
    token_sha256 BLOB NOT NULL UNIQUE CHECK (length(token_sha256) = 32),
    preset       TEXT NOT NULL,
    overrides    TEXT NOT NULL CHECK (json_valid(overrides)),
    space        TEXT,
    created_ms   INTEGER NOT NULL,
    expires_ms   INTEGER,
    revoked_ms   INTEGER,
    last_used_ms INTEGER
) STRICT;

-- Only sessions that were ended early; a row may be deleted once its session would have expired.
CREATE TABLE session (
    id         TEXT PRIMARY KEY,
    revoked_ms INTEGER NOT NULL,
    until_ms   INTEGER NOT NULL
) STRICT;
CREATE INDEX session_until ON session (until_ms);

CREATE TABLE key (name TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;

-- Two rows for each call: the intent before it runs and the outcome after; `call` joins them.
CREATE TABLE audit (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms            INTEGER NOT NULL,
    call             TEXT NOT NULL,
    kind             TEXT NOT NULL CHECK (kind IN ('intent', 'outcome')),
    agent            TEXT,
    session          TEXT,
    request          TEXT,
    address          TEXT,
    tool             TEXT,
    risk             TEXT,
    arguments        TEXT,
    arguments_sha256 BLOB,
    target           TEXT,
    decision         TEXT,
    outcome          TEXT,
    duration_ms      INTEGER,
    revision         INTEGER,
    previous_sha256  BLOB NOT NULL CHECK (length(previous_sha256) = 32),
    sha256           BLOB NOT NULL CHECK (length(sha256) = 32),
    UNIQUE (call, kind)
) STRICT;
-- An INSERT OR REPLACE would delete the old row without running the trigger on DELETE.
CREATE TRIGGER audit_is_never_replaced BEFORE INSERT ON audit
    WHEN EXISTS (SELECT 1 FROM audit WHERE seq >= NEW.seq)
      OR EXISTS (SELECT 1 FROM audit WHERE call = NEW.call AND kind = NEW.kind)
    BEGIN SELECT RAISE(ABORT, 'the audit is only ever added to'); END;
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit is only ever added to'); END;
CREATE TRIGGER audit_is_never_removed BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit is only ever added to'); END;
";

/// The table contains the open sessions instead of the ended ones: a session without a row has ended.
const VERSION_2: &str = "
DROP TABLE session;
CREATE TABLE session (
    id      TEXT PRIMARY KEY,
    agent   TEXT NOT NULL,
    used_ms INTEGER NOT NULL,
    heard   INTEGER,
    level   TEXT
) STRICT;
CREATE TABLE subscription (
    session TEXT NOT NULL,
    uri     TEXT NOT NULL,
    since   INTEGER NOT NULL,
    PRIMARY KEY (session, uri)
) STRICT, WITHOUT ROWID;
";

/// Tasks: calls whose results the client fetches later.
const VERSION_3: &str = "
CREATE TABLE task (
    id         TEXT PRIMARY KEY,
    agent      TEXT NOT NULL,
    tool       TEXT NOT NULL,
    request    TEXT NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('working', 'completed', 'failed', 'cancelled')),
    payload    TEXT CHECK (json_valid(payload)),
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX task_expires ON task (expires_ms);
CREATE INDEX task_agent ON task (agent);
";

/// Each agent's row names its space. Until this version NULL meant the host and all containers.
const VERSION_4: &[&str] = &[
    "UPDATE agent SET space = '*' WHERE space IS NULL;",
    schema::SCHEMA,
    changes::SCHEMA,
    grants::SCHEMA,
    logins::SCHEMA,
    owner::SCHEMA,
];

/// The code for the first password, and programs that get access over OAuth.
const VERSION_5: &[&str] = &[
    owner::CODE_SCHEMA,
    oauth_clients::SCHEMA,
    oauth_links::SCHEMA,
];

/// Codes with which clients fetch their tokens.
const VERSION_6: &[&str] = &[pairings::SCHEMA];

/// Grants for calls with exactly the same arguments, or for the beginning of a command.
const VERSION_7: &[&str] = &[grants::BOUND_SCHEMA];

/// The exact arguments of calls, sealed to a key of the owner.
const VERSION_8: &[&str] = &[owner_key::SCHEMA, exact::SCHEMA];

/// Returns the version after all `steps`.
pub(super) fn newest(steps: &[&[&str]]) -> u32 {
    u32::try_from(steps.len()).unwrap_or(u32::MAX)
}

/// Returns the version of an open vault. Refuses a version newer than `steps`.
pub(super) fn version(
    connection: &Connection,
    path: &Path,
    steps: &[&[&str]],
) -> Result<u32, VaultError> {
    let found: u32 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|cause| VaultError::from_sqlite(path, "be opened", &cause))?;
    let known = newest(steps);
    if found > known {
        return Err(VaultError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    Ok(found)
}

/// Migrates an open vault to the newest version, after making a copy of it in the same directory.
///
/// All steps run in one transaction: a power cut leaves the old version.
pub(super) fn migrate(
    connection: &mut Connection,
    path: &Path,
    steps: &[&[&str]],
) -> Result<(), VaultError> {
    let refused = |cause: rusqlite::Error| VaultError::from_sqlite(path, "be migrated", &cause);
    let (version, known) = (version(connection, path, steps)?, newest(steps));
    if version == known {
        return Ok(());
    }
    let copy = keep_copy(connection, path, version)?;
    tracing::info!(
        from = version,
        to = known,
        copy = %copy.display(),
        "the vault is migrated to a newer schema; a copy of the old one is kept"
    );
    run(connection, version, steps).map_err(|cause| {
        // Nothing was changed, so the copy is not needed. The next attempt makes a new one.
        let _ = std::fs::remove_file(&copy);
        refused(cause)
    })
}

/// Runs the steps after `version` and sets the newest version in the file.
pub(super) fn run(
    connection: &mut Connection,
    version: u32,
    steps: &[&[&str]],
) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction()?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    for script in steps.iter().skip(done).copied().flatten() {
        transaction.execute_batch(script)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", newest(steps))?;
    transaction.commit()
}

/// Makes a complete copy of the vault with the same permissions, named after its version and the time.
fn keep_copy(connection: &Connection, path: &Path, version: u32) -> Result<PathBuf, VaultError> {
    let fill = |copy: &Path| {
        connection
            .execute("VACUUM INTO ?1", [copy.to_string_lossy()])
            .map(drop)
            .map_err(|cause| {
                VaultError::from_sqlite(path, "be copied before its migration", &cause)
            })
    };
    sys::keep_copy(path, version.into(), fill, VaultError::File)
}
