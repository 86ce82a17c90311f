//! The times at which containers got their current status, from the log of the state.

use std::collections::HashMap;

use super::page_error::PageError;
use super::site::OwnerSite;
use gatewren_store::state::{HistoryFilter, PatchOperation, Pointer};

/// The number of revisions of containers that are read for the times of their states.
const READ: usize = 200;

/// When the status of each container changed last, as far as the newest revisions show it.
pub fn status_times(site: &OwnerSite) -> Result<HashMap<String, u64>, PageError> {
    let filter = HistoryFilter {
        scope: Pointer::root().child("public").child("packageData"),
        most: READ,
        ..HistoryFilter::default()
    };
    let mut times = HashMap::new();
    for entry in site.state_log.entries(&filter)? {
        for operation in entry.revision.patch.operations() {
            let PatchOperation::Replace { path, .. } = operation else {
                continue;
            };
            if let [_, _, id, status] = path.tokens()
                && status == "status"
            {
                times.entry(id.clone()).or_insert(entry.revision.at_ms);
            }
        }
    }
    Ok(times)
}
