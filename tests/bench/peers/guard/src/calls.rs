//! The table of calls: a thread of its own writes the rows, several in one commit.
//!
//! The durability is that of gatewren's rows about calls that only read (`src/store/vault/queue.rs` and `commit.rs`): a
//! row is queued when its request ends, waits up to 5 ms for others, and is committed with `synchronous = NORMAL`. No
//! request waits for the commit. A crash of the process loses what was not committed yet, and a power cut what SQLite
//! had not checkpointed. gatewren commits at most 256 rows at once; here a commit takes all that wait, which is cheaper.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, params};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::Error;

/// The maximum number of rows that wait, as in gatewren. At the limit a request waits before it runs.
const MAX_WAITING: usize = 4096;

/// How long the first row of a commit waits for others, as in gatewren. Meanwhile no row wakes the thread.
const GATHER: Duration = Duration::from_millis(5);

const SCHEMA: &str = "CREATE TABLE calls (
    id      INTEGER PRIMARY KEY,
    at_ms   INTEGER NOT NULL,
    method  TEXT NOT NULL,
    tool    TEXT,
    client  TEXT NOT NULL,
    outcome INTEGER NOT NULL
) STRICT";

const INSERT: &str =
    "INSERT INTO calls (at_ms, method, tool, client, outcome) VALUES (?1, ?2, ?3, ?4, ?5)";

/// One row.
pub struct Row {
    /// When the request ended.
    pub at: SystemTime,
    /// The method of MCP.
    pub method: String,
    /// The tool of `tools/call`.
    pub tool: Option<String>,
    /// The address of the client.
    pub client: SocketAddr,
    /// The status of the reply.
    pub outcome: u16,
}

/// Creates the file and starts the thread; returns where to put the rows.
pub fn start(file: &Path) -> Result<Sender<Row>, Error> {
    let connection =
        Connection::open(file).map_err(|cause| format!("{}: {cause}", file.display()))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.execute(SCHEMA, [])?;
    let (sender, rows) = channel(MAX_WAITING);
    std::thread::Builder::new()
        .name("calls".to_owned())
        .spawn(move || {
            if let Err(cause) = write(&connection, rows) {
                // Calls without rows would be cheaper than those of gatewren, so the benchmark has to fail.
                eprintln!("writing the table of calls failed: {cause}");
                std::process::exit(1);
            }
        })?;
    Ok(sender)
}

/// Writes rows until all senders are gone.
fn write(connection: &Connection, mut rows: Receiver<Row>) -> Result<(), Error> {
    let mut begin = connection.prepare("BEGIN IMMEDIATE")?;
    let mut insert = connection.prepare(INSERT)?;
    let mut commit = connection.prepare("COMMIT")?;
    while let Some(first) = rows.blocking_recv() {
        std::thread::sleep(GATHER);
        begin.execute([])?;
        let mut next = Some(first);
        while let Some(row) = next {
            let at = row.at.duration_since(UNIX_EPOCH)?.as_millis();
            let client = row.client.to_string();
            insert.execute(params![
                i64::try_from(at)?,
                row.method,
                row.tool,
                client,
                row.outcome
            ])?;
            next = rows.try_recv().ok();
        }
        commit.execute([])?;
    }
    Ok(())
}
