//! The texts of a container's page.

pub const HOURS: &str = "1 h";
pub const DAY: &str = "24 h";
pub const WEEK: &str = "7 d";
pub const WEEK_AGO: &str = "7 days ago";
pub const PERIODS: &str = "Period";
pub const USAGE: &str = "Usage";
pub const PORTS: &str = "Ports";
pub const INSIDE_ONLY: &str = "only from inside";
pub const STATES: &str = "What happened";
pub const CALLS: &str = "Last calls about it";
pub const ALL_CALLS: &str = "All calls about it";
pub const SNAPSHOTS: &str = "Snapshots";
pub const BACKUPS: &str = "Backups";
pub const NONE: &str = "None.";
pub const LOG: &str = "Last log lines";
pub const LOG_EMPTY: &str = "The log is empty.";
pub const TOOK_LONG: &str = "The server did not answer in time.";
pub const NOT_READY: &str = "Not available:";
pub const START: &str = "Start";
pub const STOP: &str = "Stop";
pub const FREEZE: &str = "Freeze";
pub const UNFREEZE: &str = "Unfreeze";
pub const RESTART: &str = "Restart";
pub const INTERRUPTS: &str =
    "All its processes end. It has 10 seconds to shut down by itself before it is killed.";
pub const BACK: &str = "Back to the container";
