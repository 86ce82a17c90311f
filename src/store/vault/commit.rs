//! The writing thread: commits queued jobs in groups.

use std::time::Duration;

use rusqlite::{Connection, ffi};

use super::audit::row::RowInserter;
use super::job::{Durability, QueuedWork, WriterJob};
use super::queue::{OrderReceiver, TakenOrders};

/// After this many rows the thread yields its core. On a small host other calls would otherwise wait for the whole
/// group.
const ROWS_AT_ONCE: usize = 4;

/// The thread does not yield in a larger group, because the queue would grow.
const LARGEST_GIVING_WAY: usize = 128;

/// The callbacks of the writing thread.
pub(super) struct WriterHooks {
    /// Runs after another process has written.
    pub elsewhere: Box<dyn Fn() + Send>,
    /// Runs before a job that cannot rely on cached results of earlier jobs: another process has written, or rows
    /// were rolled back.
    pub forget: Box<dyn Fn() + Send>,
    /// Runs after a commit that survives a power cut.
    pub reached_disk: Box<dyn Fn() + Send>,
}

/// Runs jobs until all senders are gone.
///
/// Checks on each hint, and every `look_every`, whether another process has written. `version` is the result of
/// [`data_version`] when the vault was opened, so writes since then are noticed.
pub(super) fn run(
    connection: &Connection,
    version: Option<i64>,
    orders: &OrderReceiver,
    look_every: Duration,
    hooks: &WriterHooks,
) {
    let mut file = File {
        connection,
        hooks,
        synchronous: None,
        version,
    };
    let mut reported = file.version;
    loop {
        match orders.take(look_every) {
            TakenOrders::Group(group) => file.commit(group),
            TakenOrders::Nothing => file.look(),
            TakenOrders::End => return,
        }
        if file.version != reported {
            reported = file.version;
            (hooks.elsewhere)();
        }
    }
}

/// The state of the file as the thread knows it.
struct File<'a> {
    connection: &'a Connection,
    hooks: &'a WriterHooks,
    /// The durability that `PRAGMA synchronous` is set to.
    synchronous: Option<Durability>,
    /// Changes when another connection has committed.
    version: Option<i64>,
}

impl File<'_> {
    /// Runs the group in one transaction. A failed job is rolled back without the others. An empty group only
    /// checks for other writers.
    fn commit(&mut self, mut group: Vec<WriterJob>) {
        if group.is_empty() {
            return self.look();
        }
        let begun = self.begin(&group);
        // From here to the commit no other connection can write.
        self.look();
        let committed = begun
            .and_then(|()| self.work(&mut group))
            .map_err(|cause| cause.to_string());
        if committed.is_ok() && self.synchronous == Some(Durability::Power) {
            (self.hooks.reached_disk)();
        }
        if committed.is_err() {
            // Without an open transaction there is nothing to roll back, and SQLite returns an error.
            let _ = self.run("ROLLBACK");
            (self.hooks.forget)();
        }
        for job in group {
            job.work
                .finish(committed.as_ref().copied().map_err(String::as_str));
            drop(job.place);
        }
    }

    fn begin(&mut self, group: &[WriterJob]) -> Result<(), rusqlite::Error> {
        let wanted = if group.iter().any(|job| job.durability == Durability::Power) {
            Durability::Power
        } else {
            Durability::Process
        };
        if self.synchronous != Some(wanted) {
            let word = match wanted {
                Durability::Process => "NORMAL",
                Durability::Power => "FULL",
            };
            self.connection.pragma_update(None, "synchronous", word)?;
            self.synchronous = Some(wanted);
        }
        self.run("BEGIN IMMEDIATE")
    }

    /// Runs the jobs and ends the transaction.
    fn work(&self, group: &mut [WriterJob]) -> Result<(), rusqlite::Error> {
        if let [alone] = group {
            // A single job needs no savepoint: rolling back the transaction is enough.
            if alone.work.run(self.connection) {
                return self.run("COMMIT");
            }
            (self.hooks.forget)();
            return self.run("ROLLBACK");
        }
        let mut rows = RowInserter::new(self.connection);
        let gives_way = group.len() <= LARGEST_GIVING_WAY;
        for (number, job) in group.iter_mut().enumerate() {
            if gives_way && number % ROWS_AT_ONCE == ROWS_AT_ONCE - 1 {
                std::thread::yield_now();
            }
            if let QueuedWork::Row(row) = &mut job.work {
                if !row.run(&mut rows) {
                    (self.hooks.forget)();
                    self.still_open()?;
                }
                continue;
            }
            self.run("SAVEPOINT job")?;
            if !job.work.run(self.connection) {
                (self.hooks.forget)();
                self.run("ROLLBACK TO job")?;
            }
            self.run("RELEASE job")?;
        }
        self.run("COMMIT")
    }

    /// Returns an error if a failure has rolled back the whole transaction.
    fn still_open(&self) -> Result<(), rusqlite::Error> {
        if self.connection.is_autocommit() {
            let code = ffi::Error::new(ffi::SQLITE_ABORT_ROLLBACK);
            return Err(rusqlite::Error::SqliteFailure(code, None));
        }
        Ok(())
    }

    /// Checks whether another process has written.
    fn look(&mut self) {
        let version = data_version(self.connection);
        // If the version cannot be read, the file may have changed.
        if self.version != version || version.is_none() {
            self.version = version;
            (self.hooks.forget)();
        }
    }

    fn run(&self, statement: &str) -> Result<(), rusqlite::Error> {
        self.connection.prepare_cached(statement)?.execute([])?;
        Ok(())
    }
}

/// Returns the number that changes with the writes of other connections; `None` if it cannot be read.
pub(super) fn data_version(connection: &Connection) -> Option<i64> {
    connection
        .prepare_cached("PRAGMA data_version")
        .and_then(|mut asked| asked.query_row([], |row| row.get(0)))
        .ok()
}
