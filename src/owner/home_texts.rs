//! The texts of the home page and of the charts.

pub const WAITING: &str = "Waiting for you";
pub const NOTHING: &str = "Nothing waits.";
pub const OLDEST: &str = "The oldest:";
pub const HEALTH: &str = "Health";
pub const NO_PROBLEM: &str = "The server knows of no problem.";
pub const FULL_CHECK: &str = "For a full check, run on the server:";
pub const DOCTOR: &str = "sudo gatewren doctor";
pub const DOCTOR_FOUND: &str = "Found by doctor:";
pub const DOCTOR_FOUND_NOTHING: &str = "Doctor found nothing to do,";
pub const NOT_VISIBLE: &str = "Not visible:";
pub const REMEDY_DISK: &str =
    "Find what fills it: sudo du -xhd 3 / | sort -h | tail. Or ask an assistant.";
pub const REMEDY_UNHEALTHY: &str = "Read its log, then restart it.";
pub const TOKEN_EXPIRES: &str = "Its token expires soon:";
pub const SERVER: &str = "Server";
pub const ASSISTANTS: &str = "Assistants";
pub const ACTIVE_NOW: &str = "active now";
pub const CALLS_OF_DAY: &str = "calls";
pub const REFUSED_OF_DAY: &str = "refused";
pub const ALERTS: &str = "Alerts";
pub const NO_ALERTS: &str = "There are no new alerts.";
pub const MARK_SEEN: &str = "Mark as seen";
pub const UNSEEN: &str = "new";
pub const MORE_ALERTS: &str = "earlier alerts";

pub const COLLECTING: &str = "Collecting:";
pub const OF_MINUTES: &str = "of 60 minutes";
pub const LOWEST: &str = "lowest";
pub const HIGHEST: &str = "highest";
pub const NOW: &str = "now";
pub const LAST_HOUR: &str = "1 h ago";
pub const LAST_DAY: &str = "24 h ago";
pub const VALUES: &str = "Values as a table";
pub const FROM: &str = "From";
pub const CPU: &str = "CPU";
pub const MEMORY: &str = "Memory";
pub const DISK: &str = "Fullest disk";
pub const RECEIVED: &str = "Received";
pub const SENT: &str = "Sent";
pub const TO_REQUEST: &str = "To the request";
pub const COUNTED: &str = "Calls of the last 24 hours.";
pub const TO: &str = "to";
