//! Parses the boots in a journal from the output of `journalctl --list-boots`.

use schemars::JsonSchema;
use serde::Serialize;

use gatewren_base::sys::{moment_ms, rfc3339};

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

/// Returns the boots, newest first. The format is stable, except that systemd 254 added a heading
/// and replaced the dash by a space.
pub(super) fn boots(text: &str) -> Vec<Boot> {
    let mut all: Vec<Boot> = text.lines().filter_map(boot).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.boot));
    all
}

/// Parses `-1 0d47... Tue 2026-07-28 09:30:00 UTC—Tue 2026-07-28 10:00:00 UTC`.
fn boot(line: &str) -> Option<Boot> {
    let line = line.replace('—', " ");
    let words: Vec<&str> = line.split_whitespace().collect();
    let [
        number,
        id,
        _,
        first_day,
        first_time,
        "UTC",
        _,
        last_day,
        last_time,
        "UTC",
    ] = words.as_slice()
    else {
        return None;
    };
    let moment = |day: &str, time: &str| moment_ms(&format!("{day}T{time}Z")).map(rfc3339);
    let is_id = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then_some(Boot {
        boot: number.parse().ok()?,
        id: (*id).to_owned(),
        first: moment(first_day, first_time)?,
        last: moment(last_day, last_time)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing_are_read() {
        // The formats of journalctl in systemd 252 and 257.
        let old = "-1 6a1f0d47c3a10d47c3a10d47c3a10d47 Mon 2026-07-27 08:00:00 UTC—Tue 2026-07-28 09:00:00 UTC\n \
                   0 0d47c3a10d47c3a10d47c3a10d47c3a1 Tue 2026-07-28 09:30:00 UTC—Tue 2026-07-28 10:00:00 UTC\n";
        let new = "IDX BOOT ID                          FIRST ENTRY                 LAST ENTRY\n\
                   \x20-1 6a1f0d47c3a10d47c3a10d47c3a10d47 Mon 2026-07-27 08:00:00 UTC Tue 2026-07-28 09:00:00 UTC\n\
                   \x20 0 0d47c3a10d47c3a10d47c3a10d47c3a1 Tue 2026-07-28 09:30:00 UTC Tue 2026-07-28 10:00:00 UTC\n";
        let got = boots(old);
        assert_eq!(got, boots(new));
        let [this, before] = got.as_slice() else {
            panic!("{got:?}");
        };
        assert_eq!((this.boot, before.boot), (0, -1));
        assert_eq!(this.first, "2026-07-28T09:30:00.000Z");
        assert_eq!(before.last, "2026-07-28T09:00:00.000Z");
    }

    #[test]
    fn odd_lines_are_no_boots() {
        assert_eq!(boots("\n-- No entries --\n0 zz a b c UTC d e f UTC\n"), []);
    }
}
