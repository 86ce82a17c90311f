//! `gatewren state blame`: shows who wrote each value of the document.

use std::path::Path;

use serde_json::json;

use super::author_key::author_key;
use super::print::who;
use gatewren_base::sys::rfc3339;
use gatewren_gate::owner_actions::sanitize;
use gatewren_store::state::{History, Pointer, RevisionInfo};

/// The maximum number of values to list; the others are counted.
const MAX_LEAVES: usize = 10_000;

/// Returns the author of every value at `pointer` and below.
pub fn run(file: &Path, pointer: &Pointer, json: bool) -> Result<String, String> {
    let history = History::open(file).map_err(|e| e.to_string())?;
    let key = author_key(file);
    let history = match &key {
        Some(key) => history.proving(key),
        None => history,
    };
    let blame = history.blame(pointer, MAX_LEAVES);
    let blame = blame.map_err(|e| e.to_string())?.ok_or_else(|| {
        let file = file.display();
        format!("path not found: {pointer} in {file}")
    })?;
    if json {
        return Ok(json!(blame).to_string());
    }
    let mut lines: Vec<String> = blame
        .leaves
        .iter()
        .map(|leaf| {
            let place = sanitize(&leaf.pointer.to_string());
            format!(
                "{}  {place}",
                describe_revision(leaf.written.as_ref(), blame.floor)
            )
        })
        .collect();
    if key.is_none() {
        lines.push("the authors are not verified: the vault cannot be read".to_owned());
    }
    if blame.left_out > 0 {
        lines.push(format!("and {} more values", blame.left_out));
    }
    Ok(lines.join("\n"))
}

fn describe_revision(written: Option<&RevisionInfo>, floor: u64) -> String {
    let Some(writing) = written else {
        return format!(
            "{:<9}{:<26}{:<24}",
            "-",
            "before the log begins",
            format!("before {floor}")
        );
    };
    let who = who(&writing.actor, writing.cause.as_deref());
    format!(
        "{:<9}{:<26}{who:<24}",
        writing.revision,
        rfc3339(writing.at_ms)
    )
}
