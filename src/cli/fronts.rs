//! The fronts that share a state directory: their names, addresses, and which of them does the background work.

use std::path::Path;

use serde_json::{Value, json};

use gatewren_base::sys::{LockHolder, sanitize};

/// Returns the running fronts of a directory; none for a server without a name, which runs alone.
pub fn running_fronts(directory: &Path) -> Vec<LockHolder> {
    let holders = LockHolder::all(directory);
    let is_shared = holders.iter().any(|holder| holder.name.is_some());
    if is_shared { holders } else { Vec::new() }
}

/// Returns the line of `gatewren status`; `None` without fronts.
pub fn line(fronts: &[LockHolder]) -> Option<String> {
    let words = |front: &LockHolder| {
        let name = front
            .name
            .as_deref()
            .map_or("without a name".into(), sanitize);
        let address = front.address.map(|address| format!(" at {address}"));
        let work = front
            .does_background_work
            .then_some(" with the background work");
        format!(
            "{name}{}{}",
            address.unwrap_or_default(),
            work.unwrap_or_default()
        )
    };
    let all: Vec<String> = fronts.iter().map(words).collect();
    (!all.is_empty()).then(|| format!("  fronts  {}", all.join(", ")))
}

/// Returns the fronts as JSON.
pub fn member(fronts: &[LockHolder]) -> Value {
    let one = |front: &LockHolder| {
        json!({
            "name": front.name, "address": front.address.map(|address| address.to_string()),
            "background_work": front.does_background_work,
        })
    };
    fronts.iter().map(one).collect()
}
