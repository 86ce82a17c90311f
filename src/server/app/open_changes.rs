//! How many changes of each agent have not ended, counted anew only after a change.

use std::collections::HashMap;
use std::sync::Mutex;

use tokio::sync::watch;

use gatewren_base::sys::lock;
use gatewren_store::vault::Vault;

/// The most agents whose counts are kept. One more clears them all, which costs a query for each.
const MAX_COUNTED: usize = 1024;

/// The counts. `whoami` is called often, and reads no disk for them.
pub struct OpenChangeCounts {
    vault: Vault,
    changes: watch::Receiver<u64>,
    counted: Mutex<CountedChanges>,
}

/// Counts of one moment.
#[derive(Default)]
struct CountedChanges {
    /// The inbox's counter at this moment.
    moment: u64,
    by_agent: HashMap<String, usize>,
}

impl OpenChangeCounts {
    /// Has counted nothing yet.
    pub fn new(vault: Vault) -> Self {
        Self {
            changes: vault.changes().watch_inbox(),
            vault,
            counted: Mutex::default(),
        }
    }

    /// Returns the count of an agent, by its id; `None` if the vault cannot be read.
    pub fn of(&self, agent: &str) -> Option<usize> {
        // Read before the vault: a change in between is counted next time.
        let moment = *self.changes.borrow();
        let mut counted = lock(&self.counted);
        if counted.moment != moment || counted.by_agent.len() >= MAX_COUNTED {
            counted.by_agent.clear();
            counted.moment = moment;
        }
        if let Some(known) = counted.by_agent.get(agent) {
            return Some(*known);
        }
        let count = self.vault.changes().list_of(agent, true).ok()?.len();
        counted.by_agent.insert(agent.to_owned(), count);
        Some(count)
    }
}
