//! The thread that writes: what waits together is committed together.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::OwnedSemaphorePermit;

/// Writes that one commit carries; the next commit takes the rest.
const MAX_GROUP: usize = 256;

/// How often the thread looks whether another process has written.
const LOOK_EVERY: Duration = Duration::from_millis(500);

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
    pub work: Box<dyn Work>,
    /// Its place in the queue, given back when it is done.
    pub place: Option<OwnedSemaphorePermit>,
}

/// Runs jobs until nobody can send any more. `elsewhere` is called after another process has written.
pub(super) fn run(connection: &Connection, jobs: &Receiver<Job>, elsewhere: &dyn Fn(&Connection)) {
    let mut synchronous = None;
    let mut seen = data_version(connection);
    let mut looked = Instant::now();
    loop {
        match jobs.recv_timeout(LOOK_EVERY) {
            Ok(first) => {
                let mut group = vec![first];
                group.extend(jobs.try_iter().take(MAX_GROUP - 1));
                commit(connection, group, &mut synchronous);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if looked.elapsed() >= LOOK_EVERY {
            looked = Instant::now();
            let version = data_version(connection);
            if version != seen {
                seen = version;
                elsewhere(connection);
            }
        }
    }
}

/// One transaction for the group; a job that fails is undone alone.
fn commit(connection: &Connection, mut group: Vec<Job>, synchronous: &mut Option<Durability>) {
    let committed = begin(connection, &group, synchronous)
        .and_then(|()| {
            for job in &mut group {
                one(connection, job.work.as_mut())?;
            }
            connection.execute_batch("COMMIT")
        })
        .map_err(|cause| cause.to_string());
    if committed.is_err() {
        // Where no transaction stands open there is nothing to undo, and SQLite says so.
        let _ = connection.execute_batch("ROLLBACK");
    }
    for job in group {
        job.work
            .finish(committed.as_ref().copied().map_err(String::as_str));
        drop(job.place);
    }
}

fn begin(
    connection: &Connection,
    group: &[Job],
    synchronous: &mut Option<Durability>,
) -> Result<(), rusqlite::Error> {
    let wanted = if group.iter().any(|job| job.durability == Durability::Power) {
        Durability::Power
    } else {
        Durability::Process
    };
    if *synchronous != Some(wanted) {
        let word = match wanted {
            Durability::Process => "NORMAL",
            Durability::Power => "FULL",
        };
        connection.pragma_update(None, "synchronous", word)?;
        *synchronous = Some(wanted);
    }
    connection.execute_batch("BEGIN IMMEDIATE")
}

fn one(connection: &Connection, work: &mut dyn Work) -> Result<(), rusqlite::Error> {
    connection.prepare_cached("SAVEPOINT job")?.execute([])?;
    if !work.run(connection) {
        connection.prepare_cached("ROLLBACK TO job")?.execute([])?;
    }
    connection.prepare_cached("RELEASE job")?.execute([])?;
    Ok(())
}

/// Changes when another connection has committed; a file that cannot be asked has not changed.
fn data_version(connection: &Connection) -> Option<i64> {
    connection
        .pragma_query_value(None, "data_version", |row| row.get(0))
        .ok()
}
