//! Watches the files that define containers of LXC, with inotify.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::Duration;

use tokio::time::sleep;

use gatewren_base::config::HelperPolicy;
use gatewren_base::sys::{FolderEvent, FolderWatch};
use gatewren_wire::operations::ContainerRef;

use crate::context::definitions::{CONFIG, ContainerDefinitions, proxmox_container};

/// The most directories that are watched. Definitions in further ones are not watched.
const MAX_FOLDERS: usize = 2048;

/// How often to look for a directory that did not exist, such as Proxmox's, which is mounted late.
const REARM_TIME: Duration = Duration::from_secs(30);

/// A file in a container's directory while lxc-create builds it. LXC reports nothing about the container until the
/// file is gone.
const PARTIAL: &str = "partial";

/// The containers whose definitions may have changed.
#[derive(Debug, PartialEq, Eq)]
pub enum ChangedDefinitions {
    /// These containers.
    Some(BTreeSet<ContainerRef>),
    /// Any container.
    All,
}

impl ChangedDefinitions {
    /// Returns the lines about containers that may be seen.
    pub fn visible(&self, policy: &HelperPolicy) -> Vec<u8> {
        let text = match self {
            Self::All => "definitions changed\n".to_owned(),
            Self::Some(names) => {
                let seen = names
                    .iter()
                    .filter(|name| policy.allows_container(name.as_str()));
                seen.flat_map(|name| ["'", name.as_str(), "' changed definition\n"])
                    .collect()
            }
        };
        text.into_bytes()
    }
}

/// A watched directory.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WatchedDirectory {
    Lxcpath,
    Proxmox,
    Container(ContainerRef),
}

/// The directories with definitions.
pub struct DefinitionWatch {
    folders: FolderWatch<WatchedDirectory>,
    lxcpath: bool,
    proxmox: bool,
}

impl DefinitionWatch {
    /// Watches the directories that exist.
    pub fn begin(definitions: &ContainerDefinitions) -> io::Result<Self> {
        let mut watched = Self {
            folders: FolderWatch::new()?,
            lxcpath: false,
            proxmox: false,
        };
        watched.arm(definitions);
        Ok(watched)
    }

    /// Waits for changes. Cancel safe.
    pub async fn next(
        &mut self,
        definitions: &ContainerDefinitions,
    ) -> io::Result<ChangedDefinitions> {
        loop {
            let events = tokio::select! {
                events = self.folders.next() => events?,
                () = sleep(REARM_TIME), if !(self.lxcpath && self.proxmox) => {
                    if self.arm(definitions) {
                        return Ok(ChangedDefinitions::All);
                    }
                    continue;
                }
            };
            let mut containers = BTreeSet::new();
            for event in events {
                containers.extend(self.container(event, definitions));
            }
            if !containers.is_empty() {
                return Ok(ChangedDefinitions::Some(containers));
            }
        }
    }

    /// Watches directories that exist now and did not before; returns whether there were any.
    fn arm(&mut self, definitions: &ContainerDefinitions) -> bool {
        let before = (self.lxcpath, self.proxmox);
        if !self.lxcpath {
            self.lxcpath = self.add(definitions, WatchedDirectory::Lxcpath);
            let entries = fs::read_dir(definitions.lxcpath()).into_iter().flatten();
            let names = entries.flatten().filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                name.parse().ok()
            });
            for name in names {
                self.add(definitions, WatchedDirectory::Container(name));
            }
        }
        if !self.proxmox {
            self.proxmox = self.add(definitions, WatchedDirectory::Proxmox);
        }
        before != (self.lxcpath, self.proxmox)
    }

    /// Returns the container that an event is about, if any.
    fn container(
        &mut self,
        event: FolderEvent<WatchedDirectory>,
        definitions: &ContainerDefinitions,
    ) -> Option<ContainerRef> {
        let entry = event.entry.as_deref().and_then(|entry| entry.to_str());
        match (event.folder, entry) {
            (WatchedDirectory::Lxcpath, Some(entry)) => {
                let name: ContainerRef = entry.parse().ok()?;
                self.add(definitions, WatchedDirectory::Container(name.clone()));
                Some(name)
            }
            (WatchedDirectory::Container(name), Some(CONFIG | PARTIAL)) => Some(name),
            (WatchedDirectory::Container(_), Some(_)) => None,
            (WatchedDirectory::Container(name), None) => {
                // After a rename the event arrives here under the new name.
                self.add(definitions, WatchedDirectory::Container(name.clone()));
                Some(name)
            }
            (WatchedDirectory::Proxmox, Some(entry)) => proxmox_container(entry),
            (WatchedDirectory::Lxcpath, None) => {
                self.lxcpath = false;
                None
            }
            (WatchedDirectory::Proxmox, None) => {
                self.proxmox = false;
                None
            }
        }
    }

    fn add(&mut self, definitions: &ContainerDefinitions, place: WatchedDirectory) -> bool {
        let path = match &place {
            WatchedDirectory::Lxcpath => Some(definitions.lxcpath().to_owned()),
            WatchedDirectory::Proxmox => definitions.proxmox().map(ToOwned::to_owned),
            WatchedDirectory::Container(name) => Some(definitions.directory(name)),
        };
        let Some(path) = path.filter(|_| self.folders.count() < MAX_FOLDERS) else {
            return false;
        };
        let added = self.folders.add(&path, place);
        if let Err(cause) = &added {
            tracing::debug!(%cause, path = %path.display(), "not watched");
        }
        added.is_ok()
    }
}
