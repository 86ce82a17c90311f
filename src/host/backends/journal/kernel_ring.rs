//! The kernel's messages from its own ring, for a host without a journal.

use serde_json::{Map, Value, json};

use crate::helper_client::{LogCursor, LogOrder, LogPriority, LogQuery};

use super::line::{LogLine, PAGE_BYTES};

/// What cursors of these messages begin with; the message's number follows. Cursors of a journal begin with `s=`.
const CURSOR: &str = "k=";

/// The fields of a message as `journalctl -o json` names them; `None` for a line that is no message. `boot_us` is the time
/// of the boot in microseconds since 1970.
///
/// A message is `6,339,5140900,-;text`: syslog's facility and severity in one number, the message's number, and
/// microseconds since the boot (dev-kmsg in the kernel's Documentation/ABI/testing).
fn fields(line: &str, boot_us: u64) -> Option<Map<String, Value>> {
    let (head, text) = line.split_once(';')?;
    let mut parts = head.split(',');
    let mut number = || parts.next()?.parse::<u64>().ok();
    let (level, serial, after_boot_us) = (number()?, number()?, number()?);
    // Programs may write to the ring too; the kernel's own facility is 0.
    if level > 7 {
        return None;
    }
    let fields = json!({
        "__REALTIME_TIMESTAMP": boot_us.saturating_add(after_boot_us).to_string(),
        "__CURSOR": format!("{CURSOR}{serial}"),
        "_TRANSPORT": "kernel",
        "PRIORITY": level.to_string(),
        "MESSAGE": text,
    });
    match fields {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

/// Returns the messages that a query asks for, at most so many, oldest first, and whether there are more in its
/// direction. `is_shown` decides about each.
pub(super) fn kernel_lines(
    bytes: &[u8],
    boot_us: u64,
    query: &LogQuery,
    most: usize,
    is_shown: impl Fn(&Map<String, Value>) -> bool,
) -> (Vec<LogLine>, bool) {
    let text = String::from_utf8_lossy(bytes);
    // Lines that continue a message begin with a space.
    let all = text.lines().filter(|line| !line.starts_with(' '));
    let all = all
        .filter_map(|line| fields(line, boot_us))
        .filter(is_shown);
    let from = query.cursor.as_ref().map(serial);
    let is_newer = query.order != LogOrder::Older;
    let fits = |line: &LogLine| {
        let severe = |least: LogPriority| line.priority.is_some_and(|priority| priority <= least);
        let serial = serial(&line.cursor);
        query.priority.is_none_or(severe)
            && from.is_none_or(|from| {
                if is_newer {
                    serial > from
                } else {
                    serial < from
                }
            })
    };
    let mut lines: Vec<LogLine> = all
        .filter_map(|fields| LogLine::of(&fields))
        .filter(fits)
        .collect();
    if !is_newer {
        lines.reverse();
    }
    let mut bytes = 0;
    let has_room = |line: &&LogLine| {
        let has_room = bytes <= PAGE_BYTES;
        bytes += line.page_bytes();
        has_room
    };
    let count = lines.iter().take(most).take_while(has_room).count();
    let has_more = count < lines.len();
    lines.truncate(count);
    if !is_newer {
        lines.reverse();
    }
    (lines, has_more)
}

/// The number of the message that a cursor names; `None` for a cursor of a journal, and for a text that is none.
pub(super) fn serial(cursor: &LogCursor) -> Option<u64> {
    cursor.as_str().strip_prefix(CURSOR)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: &[u8] = b"6,1,1000000,-;Linux version 6.1\n SUBSYSTEM=x\n\
        3,2,2000000,-;ata1: failed\n30,2,2000000,-;a program\n4,3,3000000,-;thermal: hot\n6,4,4000000,-;eth0: up\nbroken\n";

    fn numbers(query: &LogQuery, most: usize) -> (Vec<String>, bool) {
        let (lines, more) = kernel_lines(RING, 1_785_231_000_000_000, query, most, |_| true);
        let cursors = lines.iter().map(|line| line.cursor.as_str().to_owned());
        (cursors.collect(), more)
    }

    #[test]
    fn the_newest_messages_come_first_and_cursors_lead_to_the_others() {
        let mut query = LogQuery::default();
        assert_eq!(numbers(&query, 2), (vec!["k=3".into(), "k=4".into()], true));
        query.cursor = LogCursor::try_from("k=3".to_owned()).ok();
        assert_eq!(
            numbers(&query, 9),
            (vec!["k=1".into(), "k=2".into()], false)
        );
        query.order = LogOrder::Newer;
        assert_eq!(numbers(&query, 9), (vec!["k=4".into()], false));
        let query = LogQuery {
            priority: Some(LogPriority::Err),
            ..LogQuery::default()
        };
        let (lines, _) = kernel_lines(RING, 1_785_231_000_000_000, &query, 9, |_| true);
        let [line] = lines.as_slice() else {
            panic!("{lines:?}")
        };
        assert_eq!(
            line.to_string(),
            "2026-07-28T09:30:02.000Z err kernel: ata1: failed"
        );
    }

    #[test]
    fn any_bytes_are_no_message() {
        for bytes in [b"".as_slice(), b"\xff;\n", b";;;\n6,x,1;a\n", b"6,1\n"] {
            assert_eq!(
                kernel_lines(bytes, 0, &LogQuery::default(), 9, |_| true).0,
                []
            );
        }
    }
}
