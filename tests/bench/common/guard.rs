//! The guarded form of a peer: over TLS with gatewren's certificate, with a token, and with a row about each request.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use super::Error;
use super::connection::Address;
use super::servers::{Directory, Gatewren};
use super::wire::{Head, Question, Repeated};

/// The time limit of the rows. The peer writes them a few milliseconds after its replies.
const WRITTEN_WITHIN: Duration = Duration::from_secs(5);

/// The pause between two looks at the rows.
const PAUSE: Duration = Duration::from_millis(5);

/// What the benchmark knows about a peer's guard.
pub struct Guard {
    /// The accepted token: that of gatewren's agent, so that the headers have the same length.
    pub token: String,
    directory: Directory,
}

impl Guard {
    /// Makes a fresh one.
    pub fn new(ours: &Gatewren) -> Result<Self, Error> {
        Ok(Self {
            token: ours.token.clone(),
            directory: Directory::new()?,
        })
    }

    /// Adds the arguments of the guarded form.
    pub fn ask(&self, command: &mut Command, ours: &Gatewren) {
        command
            .arg("--guarded")
            .args([ours.tls_file("cert.pem"), ours.tls_file("key.pem")])
            .arg(&self.token)
            .arg(self.file());
    }

    fn file(&self) -> PathBuf {
        self.directory.join("calls.db")
    }

    /// Returns an error unless a call without a token, and one with another token, are answered with 401.
    pub async fn refuses_strangers(
        &self,
        address: &Address,
        path: &str,
        question: &Question<'_>,
    ) -> Result<(), Error> {
        let head = || Head::to(path, address.socket());
        let other: String = self.token.chars().rev().collect();
        let with_other = head().with("authorization", &format!("Bearer {other}"));
        for (head, what) in [(head(), "without a token"), (with_other, "with another")] {
            let mut request = Repeated::new(&head.with_question(question), question);
            let mut connection = address.open().await?;
            let (request, _) = request.next()?;
            let reply = connection.exchange(request).await?;
            if reply.status() != "401" {
                return Err(format!("a call {what}: status {}", reply.status()).into());
            }
        }
        Ok(())
    }

    /// Returns an error unless there are rows about this number of calls, at least, answered with
    /// status 200.
    pub async fn has_rows(&self, calls: f64) -> Result<(), Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let connection = Connection::open_with_flags(self.file(), flags)?;
        connection.busy_timeout(WRITTEN_WITHIN)?;
        let began = Instant::now();
        loop {
            let rows = "SELECT count(*) FROM calls WHERE tool = 'echo' AND outcome = 200";
            let rows: f64 = connection.query_row(rows, [], |row| row.get(0))?;
            if rows >= calls {
                return Ok(());
            }
            if began.elapsed() > WRITTEN_WITHIN {
                return Err(format!("{rows:.0} rows about {calls:.0} calls").into());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
