//! The host's clock and whether it is synchronised.

use schemars::JsonSchema;
use serde::Serialize;

use gatewren_base::sys::{clock_is_synchronised, now_ms, rfc3339};

use super::super::source::HostTree;

/// Created by systemd-timesyncd when it has set the clock.
const TIMESYNCD: &str = "run/systemd/timesync/synchronized";

/// The host's time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServerTime {
    /// The time in UTC, RFC 3339.
    pub time: String,
    /// The host's time zone, such as `Europe/Vienna`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Whether the clock is synchronised (NTP); absent if the kernel denies the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntp_synced: Option<bool>,
    /// When the host started, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_time: Option<String>,
    /// Seconds since the host started.
    pub uptime_s: u64,
    /// Seconds since gatewren started.
    pub gatewren_uptime_s: u64,
}

/// Returns the time in UTC.
pub fn utc() -> String {
    rfc3339(now_ms())
}

/// Returns the name of the time zone: the target of `/etc/localtime`, or UTC if it is missing
/// (localtime(5)).
pub fn zone(tree: &HostTree) -> Option<String> {
    if let Some(target) = tree.link("etc/localtime") {
        let (_, zone) = target.split_once("zoneinfo/")?;
        return Some(zone.to_owned());
    }
    if tree.has("etc/localtime") {
        // A copy of the zone file has no name; Debian stores the name in a separate file.
        return tree.word("etc/timezone");
    }
    Some("UTC".to_owned())
}

/// Whether the clock is synchronised.
pub fn ntp_synced(tree: &HostTree) -> Option<bool> {
    clock_is_synchronised().or_else(|| tree.has(TIMESYNCD).then_some(true))
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;

    use super::super::recording::record;
    use super::*;

    #[test]
    fn the_zone_is_what_the_link_names() {
        let empty = Scratch::new();
        assert_eq!(zone(&record(&empty, &[])).as_deref(), Some("UTC"));

        let linked = Scratch::new();
        let target = "-> ../usr/share/zoneinfo/America/Argentina/Ushuaia";
        let tree = record(
            &linked,
            &[("etc/localtime", target), ("etc/timezone", "Old\n")],
        );
        assert_eq!(zone(&tree).as_deref(), Some("America/Argentina/Ushuaia"));

        let copied = Scratch::new();
        let tree = record(&copied, &[("etc/localtime", "TZif2")]);
        assert_eq!(zone(&tree), None);
        record(&copied, &[("etc/timezone", "Europe/Vienna\n")]);
        assert_eq!(zone(&tree).as_deref(), Some("Europe/Vienna"));
    }
}
