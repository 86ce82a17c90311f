//! Finds the biggest directories.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{Capture, HostDiskUsage, Operation, OperationEnd};
use gatewren_base::config::Reach;
use gatewren_base::sys::neutralise;

use super::super::error::{BackendError, ErrorKind};
use super::super::request::{limits, operation_error};
use super::disks::Storage;

/// The timeout for `du` on one tree.
const PATIENCE: Duration = Duration::from_secs(145);

/// How much of its output is kept; of a larger tree, later directories are missing.
const CAPTURE: Capture = Capture {
    head: 4 * 1024 * 1024,
    tail: 64 * 1024,
};

/// The biggest directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiskUsage {
    /// The size of the directory in bytes on disk, without file systems mounted below it.
    pub total_bytes: u64,
    /// The biggest directories below it, biggest first, each with its whole content.
    pub directories: Vec<UsedDirectory>,
    /// The number of directories counted at these levels.
    pub counted: usize,
    /// Whether something was not counted, because it disappeared or could not be read.
    pub incomplete: bool,
}

/// A directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UsedDirectory {
    /// Its path.
    pub path: String,
    /// Its size in bytes on disk.
    pub used_bytes: u64,
}

impl Storage {
    /// Returns the sizes of directories below a directory that the caller may access.
    ///
    /// # Errors
    /// When it does not exist, and when counting takes too long.
    pub async fn usage(
        &self,
        request: HostDiskUsage,
        most: usize,
        reach: &Reach,
        reference: &str,
    ) -> Result<DiskUsage, BackendError> {
        let operation = Operation::HostDiskUsage(request);
        let limits = limits(PATIENCE);
        let finished = self.helper.run(operation, limits, reference, CAPTURE);
        let finished = finished.await?;
        let complaints = finished.stderr.text_lossy();
        let wrong = operation_error(&finished.ending, &complaints);
        let incomplete = finished.ending == OperationEnd::Exited { code: 1 };
        if let Some(wrong) = wrong.filter(|_| !incomplete || finished.stdout.total_bytes == 0) {
            return Err(BackendError {
                message: neutralise(&wrong.message).into_owned(),
                ..wrong
            });
        }
        let bytes = [finished.stdout.head, finished.stdout.tail].concat();
        let usage = read(&bytes, most, |path| reach.path(path));
        let mut usage =
            usage.ok_or_else(|| BackendError::new(ErrorKind::Failed, "du's output is invalid"))?;
        usage.incomplete = incomplete;
        Ok(usage)
    }
}

/// Parses sums and paths; the last one is the total.
fn read(bytes: &[u8], most: usize, shows: impl Fn(&str) -> bool) -> Option<DiskUsage> {
    let entries = bytes.split(|byte| *byte == 0).filter_map(|entry| {
        let entry = String::from_utf8_lossy(entry);
        let (sum, path) = entry.split_once('\t')?;
        Some(UsedDirectory {
            path: neutralise(path).into_owned(),
            used_bytes: sum.parse().ok()?,
        })
    });
    let mut directories: Vec<UsedDirectory> = entries.collect();
    let whole = directories.pop()?;
    let counted = directories.len();
    directories.retain(|one| shows(&one.path));
    directories.sort_by(|a, b| (b.used_bytes, &a.path).cmp(&(a.used_bytes, &b.path)));
    directories.truncate(most);
    Some(DiskUsage {
        total_bytes: whole.used_bytes,
        directories,
        counted,
        incomplete: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_biggest_come_first() {
        let output = b"10\t/x/a\n b\x0030\t/x/lxc/web\x0020\t/x/c\x0060\t/x\0";
        let usage = read(output, 2, |_| true).unwrap();
        let paths: Vec<&str> = usage.directories.iter().map(|d| d.path.as_str()).collect();
        assert_eq!((usage.total_bytes, usage.counted), (60, 3));
        assert_eq!(paths, ["/x/lxc/web", "/x/c"]);
        let seen = read(output, 9, |path| !path.contains("lxc")).unwrap();
        assert_eq!(seen.directories.len(), 2);
        assert_eq!(read(b"", 9, |_| true), None);
    }
}
