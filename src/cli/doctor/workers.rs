//! Checks whether background work is off, by choice of the owner.

use super::super::console::target::InstanceArgs;
use super::super::switched_off::switched_off;
use super::finding::Finding;
use gatewren_base::config::Settings;

/// Returns a note about the missing work; nothing if all is on.
pub fn look(place: &InstanceArgs, settings: &Settings) -> Option<Finding> {
    let off = switched_off(place.file("state.db").as_deref(), settings);
    let seen = format!("switched off: {}", off.join(", "));
    let remedy = "remove the keys from [workers] and restart gatewren, unless you want this";
    (!off.is_empty()).then(|| Finding::note("workers", seen, remedy))
}
