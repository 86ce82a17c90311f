//! The thread that writes: what waits together is committed together.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ffi};
use tokio::sync::OwnedSemaphorePermit;

use super::row_job::Row;

/// Writes that one commit carries; the next commit takes the rest.
const MAX_GROUP: usize = 256;

/// So long a job for which nobody waits stays for others.
const GATHER: Duration = Duration::from_millis(5);

/// What a write must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// Our own crash.
    Process,
    /// A power cut: its commit waits for the disk.
    Power,
}

/// A piece of work for the thread.
pub(super) trait Work: Send {
    /// Does it inside a transaction; false undoes what it did there.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Called once, after the commit; without [`Work::run`] before it if none could begin.
    fn finish(self: Box<Self>, committed: Result<(), &str>);
}

/// Work on its way to the thread.
pub(super) struct Job {
    /// What its commit must survive.
    pub durability: Durability,
    /// What to do.
    pub work: Todo,
    /// Somebody waits for its commit.
    pub awaited: bool,
    /// Its place in the queue, given back when it is done.
    pub place: Option<OwnedSemaphorePermit>,
}

/// What a job is.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are rows, and a box for each is what this spares"
)]
pub(super) enum Todo {
    /// A row of the audit, as most are: in its place in the queue. It is one statement, so nothing has to be undone
    /// where it fails.
    Row(Row),
    /// Anything else.
    Other(Box<dyn Work>),
}

impl Todo {
    fn run(&mut self, connection: &Connection) -> bool {
        match self {
            Self::Row(row) => row.run(connection),
            Self::Other(work) => work.run(connection),
        }
    }

    fn finish(self, committed: Result<(), &str>) {
        match self {
            Self::Row(row) => row.finish(committed),
            Self::Other(work) => work.finish(committed),
        }
    }
}

/// What the thread is told.
#[expect(clippy::large_enum_variant, reason = "nearly all are jobs")]
pub(super) enum Order {
    /// To do a job.
    Do(Job),
    /// To look whether another process has written; what it holds is dropped as it is obeyed.
    Look(Arc<()>),
}

impl Order {
    fn job(self) -> Option<Job> {
        match self {
            Self::Do(job) => Some(job),
            Self::Look(told) => {
                drop(told);
                None
            }
        }
    }
}

/// Runs jobs until nobody can send any more.
///
/// Whether another process has written is looked at when it is told to, and every `look_every`. `version` is
/// what [`data_version`] said when the vault was opened: what was written elsewhere since then is noticed.
/// `elsewhere` is called after another process has written. `forget` is called before a job that can
/// no longer trust what earlier jobs have seen: another process has written, or rows were undone.
pub(super) fn run(
    (connection, version): (&Connection, Option<i64>),
    (orders, look_every): (&Receiver<Order>, Duration),
    elsewhere: &dyn Fn(),
    forget: &dyn Fn(),
) {
    let mut file = File {
        connection,
        forget,
        synchronous: None,
        version,
    };
    let mut told = file.version;
    loop {
        match orders.recv_timeout(look_every) {
            Ok(first) => {
                let mut group: Vec<_> = first.job().into_iter().collect();
                gather(orders, &mut group);
                file.commit(group);
            }
            Err(RecvTimeoutError::Timeout) => file.look(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if file.version != told {
            told = file.version;
            elsewhere();
        }
    }
}

/// Adds what waits. A commit costs as much as several rows, so jobs for which nobody waits stay for others a moment.
fn gather(orders: &Receiver<Order>, group: &mut Vec<Job>) {
    let until = Instant::now() + GATHER;
    let is_awaited = |group: &[Job]| group.last().is_none_or(|job| job.awaited);
    while !is_awaited(group) && group.len() < MAX_GROUP {
        let left = until.saturating_duration_since(Instant::now());
        match orders.recv_timeout(left) {
            Ok(order) => group.extend(order.job()),
            Err(_) => break,
        }
    }
    let more = orders
        .try_iter()
        .take(MAX_GROUP.saturating_sub(group.len()));
    group.extend(more.filter_map(Order::job));
}

/// The file as the thread knows it.
struct File<'a> {
    connection: &'a Connection,
    forget: &'a dyn Fn(),
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
        if committed.is_err() {
            // Where no transaction stands open there is nothing to undo, and SQLite says so.
            let _ = self.run("ROLLBACK");
            (self.forget)();
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
            (self.forget)();
            return self.run("ROLLBACK");
        }
        for job in group {
            if let Todo::Row(row) = &mut job.work {
                if !row.run(self.connection) {
                    (self.forget)();
                    self.still_open()?;
                }
                continue;
            }
            self.run("SAVEPOINT job")?;
            if !job.work.run(self.connection) {
                (self.forget)();
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
            (self.forget)();
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
