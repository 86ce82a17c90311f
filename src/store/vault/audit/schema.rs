//! The schema version of the audit that adds trimming and further columns.

/// Rows of the first format stay unchanged and keep their hashes; `format` determines which columns the hash of a
/// row covers. A row can only be deleted if the newest checkpoint covers it. Deleting a row and inserting a
/// checkpoint need an SQL function that only a connection which is trimming has. On any other connection the
/// statement fails.
pub(in crate::vault) const SCHEMA: &str = "
ALTER TABLE audit ADD COLUMN format INTEGER NOT NULL DEFAULT 1;
ALTER TABLE audit ADD COLUMN token TEXT;
ALTER TABLE audit ADD COLUMN space TEXT;
ALTER TABLE audit ADD COLUMN mode TEXT;
ALTER TABLE audit ADD COLUMN change TEXT;
ALTER TABLE audit ADD COLUMN revision_before INTEGER;

-- The trimmed rows: those up to `through`; the last one had this hash. One row at most.
CREATE TABLE audit_checkpoint (
    through INTEGER PRIMARY KEY,
    sha256  BLOB NOT NULL CHECK (length(sha256) = 32),
    rows    INTEGER NOT NULL,
    at_ms   INTEGER NOT NULL,
    call    TEXT NOT NULL,
    seal    BLOB NOT NULL CHECK (length(seal) = 32)
) STRICT;

DROP TRIGGER audit_is_never_removed;
CREATE TRIGGER audit_is_trimmed_behind_a_checkpoint BEFORE DELETE ON audit
    WHEN NOT gatewren_is_trimming()
      OR OLD.seq > coalesce((SELECT max(through) FROM audit_checkpoint), 0)
    BEGIN SELECT RAISE(ABORT, 'the audit is only ever added to'); END;
CREATE TRIGGER audit_checkpoint_is_of_a_row BEFORE INSERT ON audit_checkpoint
    WHEN NOT gatewren_is_trimming()
      OR NOT EXISTS (SELECT 1 FROM audit WHERE seq = NEW.through AND sha256 = NEW.sha256)
    BEGIN SELECT RAISE(ABORT, 'only the trimming of the audit makes a checkpoint'); END;
CREATE TRIGGER audit_checkpoint_is_never_changed BEFORE UPDATE ON audit_checkpoint
    BEGIN SELECT RAISE(ABORT, 'a checkpoint of the audit is never changed'); END;
CREATE TRIGGER audit_checkpoint_gives_way_to_a_newer BEFORE DELETE ON audit_checkpoint
    WHEN NOT gatewren_is_trimming()
      OR OLD.through >= (SELECT max(through) FROM audit_checkpoint)
    BEGIN SELECT RAISE(ABORT, 'a checkpoint of the audit is never removed'); END;
";

/// Removes the trigger that ran at each insertion. It rejected an `INSERT OR REPLACE` of a row that exists, which the
/// verification of the chain finds, and any program that can write the file can drop a trigger. It took more than the
/// insertion itself: with a trigger that can abort, SQLite copies each page before it changes it.
pub(in crate::vault) const WITHOUT_INSERT_TRIGGER: &str = "DROP TRIGGER audit_is_never_replaced;";

/// Adds the reason for which a call failed.
pub(in crate::vault) const ERROR_COLUMN: &str = "ALTER TABLE audit ADD COLUMN error TEXT;";

/// Adds the reason that the agent gave for a call.
pub(in crate::vault) const REASON_COLUMN: &str = "ALTER TABLE audit ADD COLUMN reason TEXT;";
