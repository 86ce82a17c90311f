//! Reads the kernel's messages from its own ring, `/dev/kmsg`.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;

use nix::fcntl::OFlag;

use super::container_root::FileEnd;

/// The size of the buffer for one message; the kernel's own limit is 8 KiB.
const MESSAGE_BYTES: usize = 16 * 1024;

/// The most messages that are read. The kernel may write them as fast as they are read.
const MAX_MESSAGES: usize = 200_000;

/// Returns the newest messages, a line or more each, in the format of the kernel's
/// Documentation/ABI/testing/dev-kmsg. Older ones are left out beyond `most` bytes.
///
/// # Errors
/// If the device does not exist or cannot be read.
pub fn read_kernel_ring(most: usize) -> io::Result<FileEnd> {
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(OFlag::O_NONBLOCK.bits());
    let mut ring = options.open("/dev/kmsg")?;
    let (mut bytes, mut size) = (Vec::new(), 0_u64);
    let mut message = vec![0; MESSAGE_BYTES];
    for _ in 0..MAX_MESSAGES {
        // Each read returns one whole message.
        match ring.read(&mut message) {
            Ok(0) => break,
            Ok(length) => {
                bytes.extend_from_slice(message.get(..length).unwrap_or_default());
                size += length as u64;
            }
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => break,
            // The message was overwritten before it was read; the next read continues after the gap.
            Err(cause)
                if matches!(cause.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(cause) => return Err(cause),
        }
        if bytes.len() > most.saturating_mul(2) {
            bytes = newest(&bytes, most);
        }
    }
    let bytes = newest(&bytes, most);
    Ok(FileEnd {
        offset: size.saturating_sub(bytes.len() as u64),
        size_bytes: size,
        bytes,
    })
}

/// Returns the last whole lines, at most so many bytes.
fn newest(bytes: &[u8], most: usize) -> Vec<u8> {
    let start = bytes.len().saturating_sub(most);
    let part = bytes.get(start..).unwrap_or_default();
    if start == 0 {
        return part.to_vec();
    }
    let first = part.iter().position(|byte| *byte == b'\n');
    let begin = first.map_or(part.len(), |end| end + 1);
    part.get(begin..).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_whole_lines_are_kept() {
        assert_eq!(newest(b"a\nbb\nccc\n", 100), b"a\nbb\nccc\n");
        assert_eq!(newest(b"a\nbb\nccc\n", 5), b"ccc\n");
        assert_eq!(newest(b"abcdef", 3), b"");
    }
}
