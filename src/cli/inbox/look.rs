//! `gatewren inbox list` and `show`: print the changes.

use std::path::Path;

use serde_json::{Value, json};

use super::super::console::table::table;
use super::context::InboxContext;
use super::print;
use gatewren_base::sys::terminal_size;
use gatewren_gate::owner_actions::{ChangeBatch, find_staleness};
use gatewren_store::state::StateLogReader;
use gatewren_store::vault::Change;

/// Filters for the list of changes.
#[derive(Debug, clap::Args)]
pub struct InboxListArgs {
    /// Include changes that have ended, while they are stored
    #[arg(long)]
    all: bool,
    /// Only changes of this agent: its id or its name
    #[arg(long)]
    agent: Option<String>,
}

/// Returns the changes with their exact arguments, each as a line or an object. Arguments that are too long for a
/// line are left out. For one agent, ends with the digest for `approve --as-of` if the lines show all pending
/// changes.
pub fn list(inbox: &InboxContext, which: &InboxListArgs, json: bool) -> Result<String, String> {
    let changes = inbox.vault.changes();
    let only_open = !which.all;
    let agent = which.agent.as_ref().map(|agent| inbox.agent(agent));
    let agent = agent.transpose()?;
    let found = match &agent {
        Some(agent) => changes.list_of(agent, only_open),
        None => changes.list(only_open),
    };
    let found = found.map_err(|e| e.to_string())?;
    let batch = agent.map(|agent| ChangeBatch::all_of(&inbox.vault, &agent));
    let batch = batch.transpose()?;
    if json {
        let as_of = batch.as_ref().map(|batch| batch.digest.as_str());
        let rows = found
            .iter()
            .map(|change| print::brief(inbox, change, as_of));
        return Ok(Value::Array(rows.collect()).to_string());
    }
    if found.is_empty() {
        return Ok(if which.all {
            "there are no changes".to_owned()
        } else {
            "no open changes".to_owned()
        });
    }
    let columns = terminal_size().map(|(_, columns)| columns);
    let lines = if let Some(columns) = columns {
        print::list_on_terminal(inbox, &found, columns)
    } else {
        let mut rows = vec![print::HEAD.map(str::to_owned)];
        rows.extend(found.iter().map(|change| print::cells(inbox, change)));
        table(&rows)
    };
    Ok(match batch {
        Some(batch) if !batch.changes.is_empty() => {
            format!("{lines}\n\n{}", as_of(&batch, columns))
        }
        _ => lines,
    })
}

/// The line with the digest, with which all pending changes of an agent can be approved.
fn as_of(batch: &ChangeBatch, columns: Option<usize>) -> String {
    let is_whole = |change: &Change| print::is_whole_in_list(change, columns);
    if batch.changes.iter().all(is_whole) {
        format!("as of     {}", batch.digest)
    } else {
        "as of     omitted: not every change is shown in full; see gatewren inbox show --all-of"
            .to_owned()
    }
}

/// Selects the changes to show.
#[derive(Debug, clap::Args)]
pub struct InboxShowArgs {
    /// The id of the change, or a unique prefix of it
    #[arg(
        value_name = "ID",
        required_unless_present = "all_of",
        conflicts_with = "all_of"
    )]
    change: Option<String>,
    /// All pending changes of this agent: its id or its name
    #[arg(long, value_name = "AGENT")]
    all_of: Option<String>,
}

/// Returns one change in full, or all pending changes of an agent with the digest for approving them. Arguments
/// are never masked: otherwise an agent could hide a command in something that looks like a secret.
pub fn show(
    inbox: &InboxContext,
    state: Option<&Path>,
    which: &InboxShowArgs,
    json: bool,
) -> Result<String, String> {
    let log = state.map(|path| StateLogReader::at(path.to_owned()));
    if let Some(agent) = &which.all_of {
        let batch = ChangeBatch::all_of(&inbox.vault, &inbox.agent(agent)?)?;
        return Ok(if json {
            let whole = |change| print::whole(inbox, change, &find_staleness(log.as_ref(), change));
            let changes: Vec<Value> = batch.changes.iter().map(whole).collect();
            json!({ "changes": changes, "as_of": batch.digest }).to_string()
        } else if batch.changes.is_empty() {
            "no pending changes".to_owned()
        } else {
            pages(inbox, state, &batch)
        });
    }
    let change = inbox.change(which.change.as_deref().unwrap_or_default())?;
    let staleness = find_staleness(log.as_ref(), &change);
    Ok(if json {
        print::whole(inbox, &change, &staleness).to_string()
    } else {
        print::page(inbox, &change, &staleness)
    })
}

/// All changes of a batch in full, and its digest.
pub fn pages(inbox: &InboxContext, state: Option<&Path>, batch: &ChangeBatch) -> String {
    let log = state.map(|path| StateLogReader::at(path.to_owned()));
    let page = |change| print::page(inbox, change, &find_staleness(log.as_ref(), change));
    let pages: Vec<String> = batch.changes.iter().map(page).collect();
    format!("{}\n\nas of     {}", pages.join("\n\n"), batch.digest)
}
