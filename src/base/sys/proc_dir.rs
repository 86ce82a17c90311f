//! `/proc` as this process first opened it: a later mount over it has no effect here.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::sync::OnceLock;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::read;

use super::descriptors::duplicate_above;

/// The length of most files below `/proc`, in bytes.
const USUAL_BYTES: u64 = 1024;

/// The directory, or the error number with which opening it failed.
static PROC: OnceLock<Result<File, i32>> = OnceLock::new();

/// Opens `/proc` for the rest of this process's life. A reaper does so before its command can mount anything.
///
/// # Errors
/// When `/proc` cannot be opened, now or at the first call.
pub fn hold_proc() -> io::Result<&'static File> {
    let opened = PROC.get_or_init(|| {
        // Out of the way of the descriptors that a forked process is given.
        let opened = File::open("/proc").and_then(|opened| duplicate_above(opened.as_fd()));
        let opened = opened.map(File::from);
        opened.map_err(|cause| cause.raw_os_error().unwrap_or_default())
    });
    opened
        .as_ref()
        .map_err(|number| io::Error::from_raw_os_error(*number))
}

/// Reads at most `most` bytes of the file at `path` below `/proc`.
///
/// # Errors
/// `NotFound` when the process that it is about has ended.
pub fn read_proc(path: &str, most: u64) -> io::Result<Vec<u8>> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let file = File::from(openat(hold_proc()?, path, flags, Mode::empty())?);
    // The files have no size. Without room for a usual one, they would be read in six pieces.
    let usual = usize::try_from(most.min(USUAL_BYTES)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(usual);
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the beginning of the file at `path` below `/proc` into `buffer`, in one piece; returns what was read.
///
/// # Errors
/// As [`read_proc`].
pub(super) fn read_beginning<'b>(path: &str, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let file = openat(hold_proc()?, path, flags, Mode::empty())?;
    let length = read(&file, buffer)?;
    Ok(buffer.get(..length).unwrap_or_default())
}

/// Returns how many threads this process has.
pub(super) fn threads() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Returns the pids of all processes, in rising order; processes that start during the iteration may be among them.
pub fn process_numbers() -> impl Iterator<Item = i32> {
    let opened = hold_proc().and_then(|proc| {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Dir::openat(proc, c".", flags, Mode::empty()).map_err(Errno::into)
    });
    let entries = opened.into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str().ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_listed_and_read() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(process_numbers().any(|pid| pid == me));
        let stat = read_proc(&format!("{me}/stat"), 4096).unwrap();
        assert!(stat.starts_with(format!("{me} (").as_bytes()));
        assert_eq!(read_proc("self/stat", 3).unwrap().len(), 3);
        assert_eq!(read_beginning("self/stat", &mut [0; 3]).unwrap().len(), 3);
        let missing = read_proc("0/stat", 10).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
