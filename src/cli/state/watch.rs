//! `gatewren state watch`: prints new revisions of other programs.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use super::super::console::output::fail;
use super::super::console::runtime;
use super::print;
use gatewren_store::state::{Pointer, StateLogFollower, StateLogUpdate};

/// How often to poll the file: a poll without new revisions takes some microseconds.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why it ended without a signal.
enum End {
    /// The reader closed the pipe.
    Unread,
    /// An error.
    Failed(String),
}

/// Prints each revision that touches `pointer`, until a signal ends it with exit code 0.
pub fn run(file: &Path, pointer: &Pointer, since: Option<u64>, json: bool) -> ExitCode {
    let tail = StateLogFollower::open(file, pointer.clone(), since).map_err(failed);
    let watched = tail.and_then(|tail| {
        let runtime = runtime::build().map_err(failed)?;
        runtime.block_on(watch(tail, pointer, json))
    });
    match watched {
        Ok(()) => ExitCode::SUCCESS,
        Err(End::Unread) => ExitCode::FAILURE,
        Err(End::Failed(words)) => fail(&words),
    }
}

async fn watch(mut tail: StateLogFollower, pointer: &Pointer, json: bool) -> Result<(), End> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
            _ = looks.tick() => {
                // Yields after each piece, so that signals are handled between them.
                while let Some(update) = tail.read().map_err(failed)? {
                    let text = if json { lines(&update, &tail, pointer) } else { render_update(&update, &tail) };
                    print(&text).map_err(|_| End::Unread)?;
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

fn lines(update: &StateLogUpdate, tail: &StateLogFollower, pointer: &Pointer) -> String {
    match update {
        StateLogUpdate::Revisions(revisions) => {
            let lines: Vec<String> = revisions.iter().map(|r| json!(r).to_string()).collect();
            lines.join("\n")
        }
        StateLogUpdate::Resync { floor } => {
            let document = tail.document();
            json!({ "resync": {
                "floor": floor,
                "revision": document.revision,
                "database": tail.database_id(),
                "value": pointer.get(&document.root),
            } })
            .to_string()
        }
    }
}

fn render_update(update: &StateLogUpdate, tail: &StateLogFollower) -> String {
    match update {
        StateLogUpdate::Revisions(revisions) => {
            let revisions: Vec<String> = revisions
                .iter()
                .map(|revision| print::revision(revision, None))
                .collect();
            revisions.join("\n")
        }
        StateLogUpdate::Resync { floor } => format!(
            "resync: the log begins at revision {floor}; continuing from revision {}, which `gatewren state get` \
             prints",
            tail.document().revision
        ),
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

fn failed<E: Display>(error: E) -> End {
    End::Failed(format!("{error}"))
}
