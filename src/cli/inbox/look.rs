//! `gatewren inbox list` and `show`: what there is to decide on.

use std::path::Path;

use serde_json::Value;

use super::super::table::table;
use super::desk::Desk;
use super::print;
use crate::deeds::movement;

/// Which changes are listed.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// Also those that have ended, for as long as they are kept
    #[arg(long)]
    all: bool,
    /// Only those of this agent: its id or its name
    #[arg(long)]
    agent: Option<String>,
}

/// The changes, a line or an object each; in brief, and without what looks like a secret.
pub fn list(desk: &Desk, which: &Which, json: bool) -> Result<String, String> {
    let changes = desk.vault.changes();
    let only_open = !which.all;
    let found = match &which.agent {
        Some(agent) => changes.list_of(&desk.agent(agent)?, only_open),
        None => changes.list(only_open),
    };
    let found = found.map_err(|e| e.to_string())?;
    if json {
        let rows = found.iter().map(|change| print::brief(desk, change));
        return Ok(Value::Array(rows.collect()).to_string());
    }
    if found.is_empty() {
        return Ok(if which.all {
            "no agent has proposed anything".to_owned()
        } else {
            "nothing waits".to_owned()
        });
    }
    let mut rows = vec![print::HEAD.map(str::to_owned)];
    rows.extend(found.iter().map(|change| print::cells(desk, change)));
    Ok(table(&rows))
}

/// All of one change. Its arguments are shown as they are: to leave something out would let an agent hide what it wants
/// to run behind what looks like a secret.
pub fn show(desk: &Desk, state: Option<&Path>, named: &str, json: bool) -> Result<String, String> {
    let change = desk.change(named)?;
    let movement = movement(state, &change);
    Ok(if json {
        print::whole(desk, &change, &movement).to_string()
    } else {
        print::page(desk, &change, &movement)
    })
}
