//! The background work that is off, for `gatewren status` and `gatewren doctor`.

use std::path::Path;

use serde_json::Value;

use gatewren_base::config::Settings;
use gatewren_gate::owner_actions::sanitize;
use gatewren_store::state::History;

/// Returns the keys of `[workers]` that are off: as the server recorded it in the state when it started, or else as the
/// settings have it.
pub fn switched_off(state: Result<&Path, &String>, settings: &Settings) -> Vec<String> {
    let document = state
        .ok()
        .and_then(|file| History::open(file).ok()?.document().ok());
    let Some(document) = document else {
        let off = settings.workers.switched_off().into_iter();
        return off.map(str::to_owned).collect();
    };
    let off = document.root.pointer("/public/observer/switched_off");
    let keys = off.and_then(Value::as_array).into_iter().flatten();
    keys.filter_map(Value::as_str).map(sanitize).collect()
}

/// Formats the list as a line.
pub fn line(off: &[String]) -> Option<String> {
    (!off.is_empty()).then(|| format!("  off     {} ([workers])", off.join(", ")))
}
