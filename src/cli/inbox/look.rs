//! `gatewren inbox list` and `show`: what there is to decide on.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::desk::Desk;
use super::print;
use crate::state::{Filter, History, Pointer};
use crate::vault::Change;

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
    let lines: Vec<String> = found
        .iter()
        .map(|change| print::line(desk, change))
        .collect();
    Ok(lines.join("\n"))
}

/// All of one change. Its arguments are shown as they are: to leave something out would let an agent hide what it wants
/// to run behind what looks like a secret.
pub fn show(
    desk: &Desk,
    state: Option<PathBuf>,
    named: &str,
    json: bool,
) -> Result<String, String> {
    let change = desk.change(named)?;
    let movement = movement(state.as_deref(), &change);
    Ok(if json {
        print::whole(desk, &change, &movement).to_string()
    } else {
        print::page(desk, &change, &movement)
    })
}

/// Whether what a change rests on has moved since.
pub enum Movement {
    /// It may be about anything.
    RestsOnNothing,
    /// It has not.
    None,
    /// It has, last at this revision, written by somebody.
    At(u64, String),
    /// The log does not reach back so far, or cannot be read.
    Unknown,
}

impl Movement {
    /// As JSON: the revision, false, or null when nobody knows.
    pub fn to_json(&self) -> Value {
        match self {
            Self::RestsOnNothing | Self::None => json!(false),
            Self::At(revision, _) => json!(revision),
            Self::Unknown => Value::Null,
        }
    }
}

fn movement(state: Option<&Path>, change: &Change) -> Movement {
    if change.rests_on.is_empty() {
        return Movement::RestsOnNothing;
    }
    let looked = state.and_then(|path| moved(path, change).ok());
    looked.unwrap_or(Movement::Unknown)
}

fn moved(path: &Path, change: &Change) -> Result<Movement, String> {
    let history = History::open(path).map_err(|e| e.to_string())?;
    let kept = history.kept().map_err(|e| e.to_string())?;
    if kept.floor > change.revision + 1 || kept.newest < change.revision {
        return Ok(Movement::Unknown);
    }
    let mut last = None;
    for pointer in &change.rests_on {
        let filter = Filter {
            scope: Pointer::parse(pointer).map_err(|e| e.to_string())?,
            after: change.revision,
            actor: None,
            most: 1,
        };
        let entries = history.log(&filter).map_err(|e| e.to_string())?;
        let newest = entries.into_iter().find(|entry| entry.refused.is_none());
        last = last.max(newest.map(|entry| (entry.revision.id, entry.revision.actor)));
    }
    Ok(last.map_or(Movement::None, |(revision, actor)| {
        Movement::At(revision, actor)
    }))
}
