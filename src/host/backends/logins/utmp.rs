//! Parses wtmp and btmp: the binary records of logins (utmp(5)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::event::{LoginEvent, LoginKind};

/// The types of records that are logins (utmp.h): `LOGIN_PROCESS`, which failed logins at a terminal have, and
/// `USER_PROCESS`.
const LOGIN_PROCESS: i16 = 6;
const USER_PROCESS: i16 = 7;

/// The highest type that exists.
const LAST_TYPE: i16 = 9;

/// Where the fields are in a record.
#[derive(Debug, Clone, Copy)]
struct RecordLayout {
    /// The size of a record.
    bytes: usize,
    /// The seconds since 1970.
    time: usize,
    /// Whether they have 64 bits.
    wide_time: bool,
    /// The address.
    address: usize,
}

/// x86 and 32-bit ARM: glibc keeps 32-bit times there, so that programs of both sizes share the file.
const NARROW: RecordLayout = RecordLayout {
    bytes: 384,
    time: 340,
    wide_time: false,
    address: 348,
};

/// 64-bit ARM and others: 64-bit times.
const WIDE: RecordLayout = RecordLayout {
    bytes: 400,
    time: 344,
    wide_time: true,
    address: 360,
};

/// Parses the logins of a part of a file that begins at `offset` in it. Records of other types, and damaged ones, are
/// left out. `success` states whether the file records logins that succeeded.
pub fn utmp_events(bytes: &[u8], offset: u64, success: bool) -> Vec<LoginEvent> {
    let narrow = logins(bytes, offset, NARROW, success);
    let wide = logins(bytes, offset, WIDE, success);
    // The file states no layout. With the wrong one, hardly any record has a valid type and time.
    if score(bytes, offset, WIDE) > score(bytes, offset, NARROW) {
        wide
    } else {
        narrow
    }
}

/// The whole records of a part of a file.
fn records(bytes: &[u8], offset: u64, layout: RecordLayout) -> impl Iterator<Item = &[u8]> {
    let size = layout.bytes as u64;
    let skipped = (size - offset % size) % size;
    let begin = usize::try_from(skipped).unwrap_or(usize::MAX);
    bytes
        .get(begin..)
        .unwrap_or_default()
        .chunks_exact(layout.bytes)
}

/// The number of records that are valid, less those that are not.
fn score(bytes: &[u8], offset: u64, layout: RecordLayout) -> i64 {
    let of = |record: &[u8]| {
        let is_type = kind(record).is_some_and(|kind| (1..=LAST_TYPE).contains(&kind));
        if is_type && seconds(record, layout).is_some() {
            1
        } else {
            -1
        }
    };
    records(bytes, offset, layout).map(of).sum()
}

fn logins(bytes: &[u8], offset: u64, layout: RecordLayout, success: bool) -> Vec<LoginEvent> {
    records(bytes, offset, layout)
        .filter_map(|record| login(record, layout, success))
        .collect()
}

fn login(record: &[u8], layout: RecordLayout, success: bool) -> Option<LoginEvent> {
    let kind = kind(record)?;
    if kind != USER_PROCESS && (success || kind != LOGIN_PROCESS) {
        return None;
    }
    let line = text(record, 8, 32);
    let user = text(record, 44, 32);
    let host = text(record, 76, 256);
    let at_ms = seconds(record, layout)?.checked_mul(1000)?;
    let address = address(record, layout).map_or(host, |address| address.to_string());
    // sshd writes "ssh:notty" into btmp. A login with an address came over the network.
    let over_ssh = line.starts_with("ssh") || !address.is_empty() && !address.starts_with(':');
    let kind = if over_ssh {
        LoginKind::Ssh
    } else {
        LoginKind::Console
    };
    let terminal = if line.starts_with("ssh:") { "" } else { &line };
    let mut event = LoginEvent::new(at_ms, kind, &user, success)
        .from(&address)
        .on(terminal);
    event.pid = number(record, 4);
    Some(event)
}

fn kind(record: &[u8]) -> Option<i16> {
    let bytes = record.get(..2)?.try_into().ok()?;
    Some(i16::from_le_bytes(bytes))
}

fn number(record: &[u8], at: usize) -> Option<u32> {
    let bytes = record.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(bytes))
}

/// The time; `None` for one that no login can have.
fn seconds(record: &[u8], layout: RecordLayout) -> Option<u64> {
    /// 2000-01-01 and 2200-01-01.
    const PLAUSIBLE: std::ops::Range<u64> = 946_684_800..7_258_118_400;
    let low = number(record, layout.time)?;
    let high = if layout.wide_time {
        number(record, layout.time + 4)?
    } else {
        0
    };
    let seconds = (u64::from(high) << 32) | u64::from(low);
    PLAUSIBLE.contains(&seconds).then_some(seconds)
}

/// The address: four bytes for IPv4, sixteen for IPv6, in network order.
fn address(record: &[u8], layout: RecordLayout) -> Option<IpAddr> {
    let bytes = record.get(layout.address..layout.address + 16)?;
    let all: [u8; 16] = bytes.try_into().ok()?;
    let (first, rest) = all.split_first_chunk::<4>()?;
    if rest.iter().any(|byte| *byte != 0) {
        return Some(Ipv6Addr::from(all).to_canonical());
    }
    (*first != [0; 4]).then(|| Ipv4Addr::from(*first).into())
}

fn text(record: &[u8], at: usize, most: usize) -> String {
    let bytes = record.get(at..at + most).unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0);
    let bytes = bytes.get(..end.unwrap_or(most)).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as a C program writes it.
    fn record(layout: RecordLayout, kind: i16, words: [&str; 3], seconds: u64) -> Vec<u8> {
        let mut record = vec![0; layout.bytes];
        record[..2].copy_from_slice(&kind.to_le_bytes());
        record[4..8].copy_from_slice(&77_u32.to_le_bytes());
        for (at, word) in [8, 44, 76].into_iter().zip(words) {
            record[at..at + word.len()].copy_from_slice(word.as_bytes());
        }
        let time = seconds.to_le_bytes();
        let length = if layout.wide_time { 8 } else { 4 };
        record[layout.time..layout.time + length].copy_from_slice(&time[..length]);
        record
    }

    #[test]
    fn both_layouts_are_read_from_any_offset() {
        for layout in [NARROW, WIDE] {
            let mut ssh = record(
                layout,
                USER_PROCESS,
                ["pts/0", "ada", "host.lan"],
                1_785_231_000,
            );
            ssh[layout.address..layout.address + 4].copy_from_slice(&[192, 0, 2, 7]);
            let file = [
                record(layout, 2, ["~", "reboot", "6.1"], 1_785_230_000),
                ssh,
                record(layout, USER_PROCESS, ["tty1", "root", ""], 1_785_231_001),
                record(layout, 8, ["pts/0", "", ""], 1_785_231_002),
            ]
            .concat();
            for offset in [0, 10] {
                let found = utmp_events(&file[offset..], offset as u64, true);
                let shown: Vec<_> = found
                    .iter()
                    .map(|one| (one.user.as_str(), one.kind, one.from.as_deref(), one.at_ms))
                    .collect();
                assert_eq!(
                    shown,
                    [
                        ("ada", LoginKind::Ssh, Some("192.0.2.7"), 1_785_231_000_000),
                        ("root", LoginKind::Console, None, 1_785_231_001_000),
                    ]
                );
            }
        }
    }

    #[test]
    fn a_failed_login_has_its_address_and_no_false_terminal() {
        let mut one = record(
            NARROW,
            LOGIN_PROCESS,
            ["ssh:notty", "bob\u{1b}[2J", ""],
            1_785_231_000,
        );
        one[NARROW.address..NARROW.address + 2].copy_from_slice(&[0x20, 0x01]);
        one[NARROW.address + 15] = 1;
        let found = utmp_events(&one, 0, false);
        assert_eq!(found[0].from.as_deref(), Some("2001::1"));
        assert_eq!((found[0].success, &found[0].terminal), (false, &None));
        assert!(!found[0].user.contains('\u{1b}'), "{:?}", found[0]);
        assert_eq!(utmp_events(&one, 0, true), []);
    }

    #[test]
    fn any_bytes_give_no_login_and_no_panic() {
        for bytes in [vec![], vec![0xff; 5000], vec![7; 399], vec![0; 100_000]] {
            for offset in [0, 1, 383, u64::MAX] {
                assert_eq!(utmp_events(&bytes, offset, true), []);
            }
        }
    }
}
