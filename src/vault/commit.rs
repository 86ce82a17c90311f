//! The thread that writes: what waits together is committed together.

use std::time::Duration;

use rusqlite::{Connection, ffi};

use super::job::{Durability, Job, Todo};
use super::queue::{Taken, Taker};

/// After so many rows whoever else waits for this core has it: on a small box calls would wait for the whole group.
const ROWS_AT_ONCE: usize = 4;

/// A larger group gives way to nobody: there is so much to write that it would pile up.
const LARGEST_GIVING_WAY: usize = 128;

/// What the writing thread calls as it works.
pub(super) struct Hooks {
    /// After another process has written.
    pub elsewhere: Box<dyn Fn() + Send>,
    /// Before a job that can no longer trust what earlier jobs have seen: another process has written, or rows were
    /// undone.
    pub forget: Box<dyn Fn() + Send>,
    /// After a commit that a power cut cannot take back.
    pub reached_disk: Box<dyn Fn() + Send>,
}

/// Runs jobs until nobody can send any more.
///
/// Whether another process has written is looked at when it is told to, and every `look_every`. `version` is
/// what [`data_version`] said when the vault was opened: what was written elsewhere since then is noticed.
pub(super) fn run(
    (connection, version): (&Connection, Option<i64>),
    (orders, look_every): (&Taker, Duration),
    hooks: &Hooks,
) {
    let mut file = File {
        connection,
        hooks,
        synchronous: None,
        version,
    };
    let mut told = file.version;
    loop {
        match orders.take(look_every) {
            Taken::Group(group) => file.commit(group),
            Taken::Nothing => file.look(),
            Taken::End => return,
        }
        if file.version != told {
            told = file.version;
            (hooks.elsewhere)();
        }
    }
}

/// The file as the thread knows it.
struct File<'a> {
    connection: &'a Connection,
    hooks: &'a Hooks,
    /// What its commits are set to survive.
    synchronous: Option<Durability>,
    /// Changes when another connection has committed.
    version: Option<i64>,
}

impl File<'_> {
    /// One transaction for the group; a job that fails is undone alone. Without any it only looks.
    fn commit(&mut self, mut group: Vec<Job>) {
        if group.is_empty() {
            return self.look();
        }
        let begun = self.begin(&group);
        // From here on nobody else can write before the commit.
        self.look();
        let committed = begun
            .and_then(|()| self.work(&mut group))
            .map_err(|cause| cause.to_string());
        if committed.is_ok() && self.synchronous == Some(Durability::Power) {
            (self.hooks.reached_disk)();
        }
        if committed.is_err() {
            // Where no transaction stands open there is nothing to undo, and SQLite says so.
            let _ = self.run("ROLLBACK");
            (self.hooks.forget)();
        }
        for job in group {
            job.work
                .finish(committed.as_ref().copied().map_err(String::as_str));
            drop(job.place);
        }
    }

    fn begin(&mut self, group: &[Job]) -> Result<(), rusqlite::Error> {
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

    /// Does the jobs and ends the transaction.
    fn work(&self, group: &mut [Job]) -> Result<(), rusqlite::Error> {
        if let [alone] = group {
            // It needs no savepoint: the transaction is all that there is to undo.
            if alone.work.run(self.connection) {
                return self.run("COMMIT");
            }
            (self.hooks.forget)();
            return self.run("ROLLBACK");
        }
        let gives_way = group.len() <= LARGEST_GIVING_WAY;
        for (number, job) in group.iter_mut().enumerate() {
            if gives_way && number % ROWS_AT_ONCE == ROWS_AT_ONCE - 1 {
                std::thread::yield_now();
            }
            if let Todo::Row(row) = &mut job.work {
                if !row.run(self.connection) {
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

    /// A failure that takes the whole transaction with it leaves nothing to go on in.
    fn still_open(&self) -> Result<(), rusqlite::Error> {
        if self.connection.is_autocommit() {
            let code = ffi::Error::new(ffi::SQLITE_ABORT_ROLLBACK);
            return Err(rusqlite::Error::SqliteFailure(code, None));
        }
        Ok(())
    }

    /// Notices whether another process has written.
    fn look(&mut self) {
        let version = data_version(self.connection);
        // A file that cannot be asked may have changed.
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

/// The number that the file's other writers change; one that cannot be asked for is none.
pub(super) fn data_version(connection: &Connection) -> Option<i64> {
    connection
        .prepare_cached("PRAGMA data_version")
        .and_then(|mut asked| asked.query_row([], |row| row.get(0)))
        .ok()
}
