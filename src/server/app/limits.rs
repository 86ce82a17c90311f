//! Converts limits of the settings into those of other modules.

use crate::dispatch::{InboxLimits, TaskLimits};
use gatewren_base::config::{Inbox, StateLog, Tasks};
use gatewren_store::state::Retention;
use gatewren_store::vault::{ChangeRoom, TaskRoom};

/// The limits of proposals.
pub fn inbox_limits(inbox: &Inbox) -> InboxLimits {
    InboxLimits {
        expires: inbox.expires,
        room: ChangeRoom {
            per_agent: inbox.per_agent,
            total: inbox.total,
        },
    }
}

/// When calls become tasks, and the limits of tasks.
pub fn task_limits(tasks: &Tasks) -> TaskLimits {
    TaskLimits {
        after: tasks.after,
        ttl: tasks.ttl,
        room: TaskRoom {
            per_agent: tasks.per_agent,
            total: tasks.total,
        },
    }
}

/// How much of the state's log is kept.
pub fn retention(log: &StateLog) -> Retention {
    Retention {
        age: log.keep,
        revisions: log.keep_revisions.into(),
        ..Retention::default()
    }
}
