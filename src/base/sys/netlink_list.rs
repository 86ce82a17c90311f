//! Requests one of the kernel's lists over netlink and parses the answer (netlink(7)); needs no privileges.

use std::io;
use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recvfrom, send,
    setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike as _};

/// The most entries of a list that are returned; the rest is left out.
const MAX_ENTRIES: usize = 16_384;

/// The timeout for the next part of the kernel's answer, in seconds.
const PATIENCE_S: i64 = 5;

/// The size of the receive buffer: the kernel sends no larger parts.
const PART_BYTES: usize = 64 * 1024;

/// The sizes of `struct nlmsghdr` and `struct rtattr`, and their alignment.
const HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
const ALIGNMENT: usize = 4;

/// `NLM_F_REQUEST | NLM_F_DUMP`.
const WHOLE_LIST: u16 = 0x001 | 0x300;

/// `NLMSG_ERROR` and `NLMSG_DONE`.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// Returns the entries of the list that a request of this kind asks for, each without its header.
pub(super) fn list(protocol: SockProtocol, kind: u16, request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        protocol,
    )?;
    setsockopt(
        &socket,
        sockopt::ReceiveTimeout,
        &TimeVal::seconds(PATIENCE_S),
    )?;
    send(
        socket.as_raw_fd(),
        &message(kind, request),
        MsgFlags::empty(),
    )?;
    let mut bytes = vec![0; PART_BYTES];
    let mut entries = Vec::new();
    while entries.len() < MAX_ENTRIES {
        let (length, from) = match recvfrom::<NetlinkAddr>(socket.as_raw_fd(), &mut bytes) {
            Err(Errno::EINTR) => continue,
            received => received?,
        };
        // Ignores messages that the kernel did not send.
        if from.is_some_and(|from| from.pid() != 0) {
            continue;
        }
        if take(bytes.get(..length).unwrap_or_default(), &mut entries)? {
            break;
        }
    }
    entries.truncate(MAX_ENTRIES);
    Ok(entries)
}

/// Adds the entries of one part; returns whether it was the last.
fn take(mut part: &[u8], entries: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    while let Some(length) = u32_at(part, 0) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (Some(payload), Some(kind)) = (part.get(HEADER..length), u16_at(part, 4)) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        match kind {
            DONE => return Ok(true),
            ERROR => {
                let code = u32_at(payload, 0).unwrap_or_default().cast_signed();
                return Err(io::Error::from_raw_os_error(code.saturating_neg()));
            }
            _ => entries.push(payload.to_vec()),
        }
        part = part
            .get(length.next_multiple_of(ALIGNMENT)..)
            .unwrap_or_default();
    }
    Ok(false)
}

fn message(kind: u16, request: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + request.len()).unwrap_or_default();
    let mut bytes = Vec::with_capacity(HEADER + request.len());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(WHOLE_LIST.to_ne_bytes());
    // Sequence number and sender: there is one request on this socket, and the kernel knows its sender.
    bytes.extend([0; 8]);
    bytes.extend(request);
    bytes
}

/// Returns the attributes that follow an entry's fixed part: number and value.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let value = bytes.get(ATTRIBUTE_HEADER..length)?;
        let number = u16_at(bytes, 2)?;
        bytes = bytes
            .get(length.next_multiple_of(ALIGNMENT)..)
            .unwrap_or_default();
        Some((number, value))
    })
}

/// Reads a number in the host's byte order.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u16::from_ne_bytes)
}

/// Reads a number in the host's byte order.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = message(kind, payload);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes
    }

    #[test]
    fn an_answer_in_parts_is_taken_apart() {
        let mut entries = Vec::new();
        let first = [entry(20, b"one"), entry(20, b"three")].concat();
        assert!(!take(&first, &mut entries).unwrap());
        let last = [entry(20, b""), entry(DONE, &[0; 4]), entry(20, b"late")].concat();
        assert!(take(&last, &mut entries).unwrap());
        assert_eq!(entries, [&b"one"[..], b"three", b""]);
        let refused = entry(ERROR, &(-13_i32).to_ne_bytes());
        let error = take(&refused, &mut entries).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn odd_bytes_are_an_error_and_not_a_loop() {
        let mut entries = Vec::new();
        for odd in [&[0; 16][..], &[15, 0, 0, 0, 20, 0, 0, 0], &[0xff; 40]] {
            assert!(take(odd, &mut entries).is_err(), "{odd:?}");
        }
        assert!(!take(b"", &mut entries).unwrap());
        assert!(entries.is_empty());
    }

    #[test]
    fn attributes_end_where_they_are_odd() {
        let whole = [8, 0, 1, 0, 10, 0, 0, 1, 5, 0, 2, 0, 7, 0, 0, 0];
        if cfg!(target_endian = "little") {
            let found: Vec<_> = attributes(&whole).collect();
            assert_eq!(found, [(1, &[10, 0, 0, 1][..]), (2, &[7][..])]);
        }
        for odd in [&[][..], &[0; 3], &[0; 8], &[3, 0, 1, 0], &[0xff; 9]] {
            assert_eq!(attributes(odd).count(), 0, "{odd:?}");
        }
    }
}
