//! `gatewren state get`, `at` and `export`: print the document, or a part of it, at one revision.

use std::path::Path;

use serde_json::json;

use gatewren_base::sys::rfc3339;
use gatewren_store::state::{Document, History, Pointer};

/// The current value at `pointer`.
pub fn get(file: &Path, pointer: &Pointer, json: bool) -> Result<String, String> {
    let history = History::open(file).map_err(|e| e.to_string())?;
    let document = history.document().map_err(|e| e.to_string())?;
    part(&history, &document, pointer, json)
}

/// The value at `pointer` at `revision`.
pub fn at(file: &Path, revision: u64, pointer: &Pointer, json: bool) -> Result<String, String> {
    let history = History::open(file).map_err(|e| e.to_string())?;
    let document = history.at(revision).map_err(|e| e.to_string())?;
    part(&history, &document, pointer, json)
}

/// The whole document, now or at a revision.
pub fn export(file: &Path, at: Option<u64>) -> Result<String, String> {
    let history = History::open(file).map_err(|e| e.to_string())?;
    let document = at.map_or_else(|| history.document(), |revision| history.at(revision));
    let document = document.map_err(|e| e.to_string())?;
    let written = (document.at_ms > 0).then(|| rfc3339(document.at_ms));
    Ok(json!({
        "revision": document.revision,
        "at": written,
        "database": history.database_id(),
        "document": document.root,
    })
    .to_string())
}

fn part(
    history: &History,
    document: &Document,
    pointer: &Pointer,
    json: bool,
) -> Result<String, String> {
    let value = pointer.get(&document.root).ok_or_else(|| {
        format!(
            "path not found: {pointer} in revision {} of {}",
            document.revision,
            history.path().display()
        )
    })?;
    Ok(if json {
        json!({
            "revision": document.revision,
            "database": history.database_id(),
            "value": value,
        })
        .to_string()
    } else {
        serde_json::to_string_pretty(value).map_err(|e| e.to_string())?
    })
}
