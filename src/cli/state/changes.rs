//! `gatewren state log` and `export --log`: print the stored revisions.

use std::io::{self, BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use super::super::console::output::fail;
use super::author_key::author_key;
use super::print;
use gatewren_store::state::{History, HistoryEntry, HistoryFilter, Pointer};

/// Filters for the log.
#[derive(Debug, clap::Args)]
pub struct StateLogArgs {
    /// Only revisions after this one
    #[arg(
        long,
        value_name = "REVISION",
        default_value_t = 0,
        hide_default_value = true
    )]
    since: u64,
    /// The maximum number of revisions, the newest first
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Only revisions of this actor: observer, owner, agent:ID or local:PROGRAM
    #[arg(long)]
    actor: Option<String>,
}

/// Returns the revisions that touch `pointer`, the newest first.
pub fn log(
    file: &Path,
    pointer: &Pointer,
    which: &StateLogArgs,
    json: bool,
) -> Result<String, String> {
    let history = History::open(file).map_err(|e| e.to_string())?;
    let history = match author_key(file) {
        Some(key) => history.proving(&key),
        None => history,
    };
    let filter = HistoryFilter {
        scope: pointer.clone(),
        after: which.since,
        actor: which.actor.clone(),
        most: usize::try_from(which.limit).unwrap_or(usize::MAX),
    };
    let entries = history.log(&filter).map_err(|e| e.to_string())?;
    if entries.is_empty() && !json {
        let kept = history.kept_revisions().map_err(|e| e.to_string())?;
        return Ok(format!(
            "no matching revision among {} to {}",
            kept.floor, kept.newest
        ));
    }
    let text = |entry: &HistoryEntry| {
        if json {
            line(entry)
        } else {
            print::revision(&entry.revision, entry.refused.as_deref())
        }
    };
    Ok(entries.iter().map(text).collect::<Vec<_>>().join("\n"))
}

/// Prints the whole log as JSON lines, the oldest first, without holding it in memory.
pub fn export(file: &Path) -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    let walked = History::open(file).and_then(|history| {
        history.whole_log(&mut |entry| {
            written = writeln!(out, "{}", line(&entry));
            match written {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })
    });
    match (walked, written.and_then(|()| out.flush())) {
        (Ok(()), Ok(())) => ExitCode::SUCCESS,
        (Err(error), _) => fail(&error),
        // The reader closed the pipe.
        (Ok(()), Err(_)) => ExitCode::FAILURE,
    }
}

fn line(entry: &HistoryEntry) -> String {
    serde_json::to_string(entry).unwrap_or_default()
}
