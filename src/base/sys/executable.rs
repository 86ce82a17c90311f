//! Files in memory that nobody can change: a copy of this program that can run in a container, and data for another
//! program.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::relocation::{base_from, relocate};
use gatewren_portable::random_bytes;

const EXECUTABLE: &str = "/proc/self/exe";

/// The program header of an ELF interpreter: the program is dynamically linked.
const PT_INTERP: u32 = 3;
const PT_LOAD: u32 = 1;

/// `MFD_EXEC`, Linux 6.3: states that the file will be executed, which some hosts require.
const MFD_EXEC: u32 = 0x10;

/// `MFD_NOEXEC_SEAL`, Linux 6.3: states that it will not.
const MFD_NOEXEC_SEAL: u32 = 0x8;

/// Returns whether this program needs no shared libraries.
pub fn is_static() -> io::Result<bool> {
    let segments = segments(&mut File::open(EXECUTABLE)?)?;
    Ok(segments.iter().all(|segment| segment.kind != PT_INTERP))
}

/// Returns an in-memory copy of this program that nothing can change, not even root inside a container.
///
/// A container's root can reach the file of a running program through `/proc/PID/exe`. If that were the file on the
/// host's disk, it could be overwritten from inside (CVE-2019-5736); the copy is sealed.
///
/// Fast path: the copy is relocated here, once, to a random address. It starts and ends in 0.36 ms instead of 0.74. All
/// that run from it have the same addresses, until the helper is started again.
pub fn sealed_copy() -> io::Result<File> {
    let mut original = File::open(EXECUTABLE)?;
    let segments = segments(&mut original)?;
    // Data after the loaded segments, such as debugging information, is not needed to run.
    let loaded = segments.iter().filter(|segment| segment.kind == PT_LOAD);
    let length = loaded.map(|segment| segment.end).max().unwrap_or(0);
    let mut copy = memory_file(MFD_EXEC)?;
    original.seek(SeekFrom::Start(0))?;
    let copied = io::copy(&mut original.take(length), &mut copy)?;
    if copied != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // A program that cannot be relocated here relocates itself, as it does elsewhere.
    if let Ok(random) = random_bytes()
        && !relocate(&copy, base_from(u64::from_ne_bytes(random)))?
    {
        tracing::debug!("the copy for containers relocates itself at each start");
    }
    seal(copy)
}

/// Returns a file in memory with these bytes, which nobody can change. It is open at its beginning.
pub fn sealed_bytes(bytes: &[u8]) -> io::Result<File> {
    let mut file = memory_file(MFD_NOEXEC_SEAL)?;
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    seal(file)
}

/// Returns an empty file in memory that can be sealed. Kernels before 6.3 do not know the flag about execution.
fn memory_file(execution: u32) -> io::Result<File> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let name = c"gatewren";
    let file = match memfd_create(name, flags | MFdFlags::from_bits_retain(execution)) {
        Err(Errno::EINVAL) => memfd_create(name, flags),
        other => other,
    };
    Ok(File::from(file?))
}

fn seal(mut file: File) -> io::Result<File> {
    file.flush()?;
    let seals = SealFlag::F_SEAL_WRITE
        | SealFlag::F_SEAL_GROW
        | SealFlag::F_SEAL_SHRINK
        | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file)
}

/// One entry of an ELF program header table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    kind: u32,
    /// The end of the segment: the offset in the file just after it.
    end: u64,
}

fn segments(file: &mut File) -> io::Result<Vec<Segment>> {
    /// The table follows the header directly in every linker's output; this many bytes hold both.
    const HEAD_BYTES: u64 = 8 * 1024;
    let mut head = Vec::new();
    Read::by_ref(file).take(HEAD_BYTES).read_to_end(&mut head)?;
    parse(&head)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it has no ELF program headers"))
}

/// Parses ELF of 32 or 64 bits in this host's byte order (elf(5)).
fn parse(head: &[u8]) -> Option<Vec<Segment>> {
    let wide = match head.get(..5)? {
        [0x7f, b'E', b'L', b'F', 1] => false,
        [0x7f, b'E', b'L', b'F', 2] => true,
        _ => return None,
    };
    let word = |at: usize| -> Option<u64> {
        if wide {
            Some(u64::from_ne_bytes(*head.get(at..)?.first_chunk()?))
        } else {
            Some(u32::from_ne_bytes(*head.get(at..)?.first_chunk()?).into())
        }
    };
    let short = |at: usize| Some(u16::from_ne_bytes(*head.get(at..)?.first_chunk()?));
    let (table, size, count) = if wide {
        (word(32)?, short(54)?, short(56)?)
    } else {
        (word(28)?, short(42)?, short(44)?)
    };
    let (offset_at, length_at) = if wide { (8, 32) } else { (4, 16) };
    (0..usize::from(count))
        .map(|n| {
            let at = usize::try_from(table).ok()? + n * usize::from(size);
            let kind = u32::from_ne_bytes(*head.get(at..)?.first_chunk()?);
            let end = word(at + offset_at)?.checked_add(word(at + length_at)?)?;
            Some(Segment { kind, end })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_are_static_and_their_copy_cannot_be_written() {
        assert!(is_static().unwrap());
        let mut copy = sealed_copy().unwrap();
        copy.seek(SeekFrom::Start(0)).unwrap();
        assert!(copy.write_all(b"x").is_err());
        assert!(copy.set_len(0).is_err());
    }

    #[test]
    fn a_program_with_a_loader_is_seen() {
        let shell = segments(&mut File::open("/bin/bash").unwrap()).unwrap();
        assert!(shell.iter().any(|s| s.kind == PT_INTERP));
    }

    #[test]
    fn no_bytes_make_the_parser_panic() {
        let mut head = Vec::new();
        let own = File::open(EXECUTABLE).unwrap();
        own.take(1024).read_to_end(&mut head).unwrap();
        for cut in 0..head.len() {
            let _ = parse(&head[..cut]);
        }
        for at in 0..128 {
            let mut broken = head.clone();
            broken[at] = 0xff;
            let _ = parse(&broken);
        }
    }
}
