//! Parses the boots in a journal from the output of `journalctl --list-boots --output=json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::host::boot_time_s;
use gatewren_base::sys::{now_ms, rfc3339};

/// One boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(
    clippy::struct_field_names,
    reason = "the field has the name of the argument of `logs_query`"
)]
pub struct Boot {
    /// 0 for the current boot, -1 for the one before, and so on.
    pub boot: i64,
    /// Its id, 32 hexadecimal digits.
    pub id: String,
    /// The time of its first stored line, RFC 3339.
    pub first: String,
    /// The time of its last line.
    pub last: String,
}

/// A boot as journalctl prints it; times are microseconds since 1970.
#[derive(Debug, Deserialize)]
struct ListedBoot {
    // The key is the heading of the column where it has no name of its own.
    #[serde(alias = "idx")]
    index: i64,
    boot_id: String,
    first_entry: u64,
    last_entry: u64,
}

/// Returns the boots, newest first; none if the output is not understood. Its text is of no use: with a list of boots,
/// journalctl of systemd 252 ignores `--utc`, and prints the times in the zone of the host.
pub(super) fn boots(json: &str) -> Vec<Boot> {
    let listed: Vec<ListedBoot> = serde_json::from_str(json).unwrap_or_default();
    let mut all: Vec<Boot> = listed.into_iter().filter_map(boot).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.boot));
    all
}

fn boot(listed: ListedBoot) -> Option<Boot> {
    let id = listed.boot_id;
    let is_id = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then(|| Boot {
        boot: listed.index,
        id,
        first: rfc3339(listed.first_entry / 1000),
        last: rfc3339(listed.last_entry / 1000),
    })
}

/// Returns the time of this boot in microseconds since 1970; 0 if it cannot be read.
pub(super) fn boot_us() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    boot_time_s(&stat).unwrap_or(0).saturating_mul(1_000_000)
}

/// Returns the current boot, from the kernel.
pub(super) fn current_boot() -> Option<Vec<Boot>> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(vec![Boot {
        boot: 0,
        id: id.trim().replace('-', ""),
        first: rfc3339(boot_us() / 1000),
        last: rfc3339(now_ms()),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_systemd_252_is_read() {
        let got = boots(
            r#"[{"index":-1,"boot_id":"6a1f0d47c3a10d47c3a10d47c3a10d47","first_entry":1795500000000000,"last_entry":1795600000000000},
                {"index":0,"boot_id":"1b759ad366784a34b06f8a2f01b19883","first_entry":1795694530321355,"last_entry":1795696429953913}]"#,
        );
        let [this, before] = got.as_slice() else {
            panic!("{got:?}");
        };
        assert_eq!((this.boot, before.boot), (0, -1));
        assert_eq!(this.first, "2026-11-26T12:02:10.321Z");
        assert_eq!(before.last, "2026-11-25T09:46:40.000Z");
    }

    #[test]
    fn what_is_no_list_of_boots_has_none() {
        for odd in [
            "",
            "[]",
            "-- No entries --\n",
            r#"[{"index":0,"boot_id":"zz","first_entry":1,"last_entry":2}]"#,
        ] {
            assert_eq!(boots(odd), [], "{odd}");
        }
    }
}
