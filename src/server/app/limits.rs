//! Converts limits of the settings into those of other modules.

use crate::dispatch::{InboxLimits, TaskLimits};
use gatewren_base::config::{InboxSettings, StateLogSettings, TaskSettings};
use gatewren_store::state::StateLogRetention;
use gatewren_store::vault::{OpenChangeLimits, StoredTaskLimits};

/// The limits of proposals.
pub fn inbox_limits(inbox: &InboxSettings) -> InboxLimits {
    InboxLimits {
        expires: inbox.expires,
        room: OpenChangeLimits {
            per_agent: inbox.per_agent,
            total: inbox.total,
        },
    }
}

/// When calls become tasks, and the limits of tasks.
pub fn task_limits(tasks: &TaskSettings) -> TaskLimits {
    TaskLimits {
        after: tasks.after,
        ttl: tasks.ttl,
        room: StoredTaskLimits {
            per_agent: tasks.per_agent,
            total: tasks.total,
        },
    }
}

/// How much of the state's log is kept.
pub fn retention(log: &StateLogSettings) -> StateLogRetention {
    StateLogRetention {
        age: log.keep,
        revisions: log.keep_revisions.into(),
        ..StateLogRetention::default()
    }
}
