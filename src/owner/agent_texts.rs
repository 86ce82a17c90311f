//! The texts of the pages about agents outside the form: the cards, the week, the steps of a new one.

use gatewren_base::config::Mode;

pub const NEW: &str = "New agent";
pub const ACTIVE: &str = "active now";
pub const LAST_CALL: &str = "last call";
pub const NO_CALL: &str = "no call yet";
pub const WEEK: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
pub const DAY: &str = "Day";
pub const CALLS_OF_WEEK: &str = "Calls of 7 days";
pub const CALLS_IN_WEEK: &str = "calls in 7 days";
pub const REFUSED: &str = "refused";
pub const LOCAL_TIME: &str =
    "Hours of the server's time zone; a red dot marks an hour with refusals.";
pub const CHOOSE_CLIENT: &str = "1. Choose the program";
pub const OTHER_CLIENT: &str = "Another program";
pub const OTHER: &str = "other";
pub const CHOOSE_ACCESS: &str = "2. Choose its access";
pub const CONNECT_IT: &str = "3. Connect";
pub const OTHER_CLIENTS: &str = "Other programs";
pub const WAITING: &str = "Waiting for its first call…";
pub const CONNECTED: &str = "Connected ✓";
pub const WITHOUT_SCRIPT: &str = "The agent's page shows its first call.";
pub const CHANGE: &str = "Change name, access or expiry";
pub const CLASS: &str = "Class of tools";
pub const REVOKE_WHAT: &str = "Its token, its sessions and its streams end at once, and its pending requests are withdrawn. A revoked agent cannot come back.";
pub const BACK: &str = "Back to the agent";
pub const AS_POLICY: &str = "As the policy";

/// The way that calls of a class go, as the head of a column.
pub fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Allow => "Allow",
        Mode::Confirm => "Ask at the program",
        Mode::ConfirmOwner => "Approve, it waits",
        Mode::Propose => "Approve",
        Mode::Deny => "Off",
    }
}
