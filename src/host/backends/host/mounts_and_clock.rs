//! What the helper reads for a sandboxed process.

use std::collections::BTreeMap;
use std::path::Path;

use gatewren_base::sys::{DiskSpace, disk_space};

/// The host's mounts and clock.
#[derive(Debug, Default)]
pub struct MountsAndClock {
    /// The table of mounts.
    pub mountinfo: String,
    /// Whether the clock is synchronised, if known.
    pub clock_synchronised: Option<bool>,
    /// The sizes of the mounts; `None` if this process measures them itself.
    pub spaces: Option<BTreeMap<String, DiskSpace>>,
}

impl MountsAndClock {
    /// Returns the view of this process.
    pub fn of_this_process(mountinfo: &str) -> Self {
        Self {
            mountinfo: mountinfo.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the size and usage of the file system at a path; blocks as long as a disk does.
    pub fn space(&self, place: &str) -> Option<DiskSpace> {
        match &self.spaces {
            Some(spaces) => spaces.get(place).copied(),
            None => disk_space(Path::new(place)).ok(),
        }
    }
}
