//! What the helper sees of the machine for a process in a sandbox.

use std::collections::BTreeMap;
use std::path::Path;

use crate::sys::{DiskSpace, disk_space};

/// The mounts and the clock of the machine.
#[derive(Debug, Default)]
pub struct Seen {
    /// The table of mounts.
    pub mountinfo: String,
    /// Whether something keeps the clock right, where that is known.
    pub clock_synchronised: Option<bool>,
    /// The sizes of what is mounted; nothing where this process measures by itself.
    pub spaces: Option<BTreeMap<String, DiskSpace>>,
}

impl Seen {
    /// As this process sees it.
    pub fn by_ourselves(mountinfo: &str) -> Self {
        Self {
            mountinfo: mountinfo.to_owned(),
            ..Self::default()
        }
    }

    /// How full the file system at a place is; may hang for as long as a disk does.
    pub fn space(&self, place: &str) -> Option<DiskSpace> {
        match &self.spaces {
            Some(spaces) => spaces.get(place).copied(),
            None => disk_space(Path::new(place)).ok(),
        }
    }
}
