//! Watches folders: reports entries that appear, are written, or are removed (inotify(7)).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches folders, each under a key that the caller chooses.
#[derive(Debug)]
pub struct FolderWatch<K> {
    inotify: AsyncFd<Queue>,
    folders: BTreeMap<WatchDescriptor, K>,
}

/// The kernel's queue of events, as a descriptor for tokio.
#[derive(Debug)]
struct Queue(Inotify);

impl AsRawFd for Queue {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// A change of an entry of a folder, or of the folder itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEvent<K> {
    /// The folder's key.
    pub folder: K,
    /// The entry that appeared, was written and closed, or was removed. `None` when the folder itself was removed;
    /// it is then no longer watched.
    pub entry: Option<OsString>,
}

impl<K: Clone + PartialEq> FolderWatch<K> {
    /// Creates a watch of no folders; must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the user's inotify instances are used up.
    pub fn new() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        #[expect(unsafe_code, reason = "AsyncFd needs a descriptor that never changes")]
        // SAFETY: the queue is owned and never replaced, so it returns the same number until it is dropped.
        let inotify =
            unsafe { AsyncFd::register_with_interest(Queue(inotify), Interest::READABLE) }?;
        let folders = BTreeMap::new();
        Ok(Self { inotify, folders })
    }

    /// The number of folders that are watched.
    pub fn count(&self) -> usize {
        self.folders.len()
    }

    /// Watches `folder` from now on; existing entries are not reported.
    ///
    /// # Errors
    /// When it is no folder, or the user's inotify watches are used up.
    pub fn add(&mut self, folder: &Path, key: K) -> io::Result<()> {
        let what = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        let watch = self.inotify.get_ref().0.add_watch(folder, what)?;
        self.folders.insert(watch, key);
        Ok(())
    }

    /// Waits for the next events; safe to drop while waiting.
    ///
    /// # Errors
    /// When the kernel's queue has overflowed: the caller must read all folders again.
    pub async fn next(&mut self) -> io::Result<Vec<FolderEvent<K>>> {
        loop {
            let mut ready = self.inotify.readable().await?;
            match self.inotify.get_ref().0.read_events() {
                Err(Errno::EAGAIN) => ready.clear_ready(),
                Err(errno) => return Err(errno.into()),
                Ok(events) => {
                    let changes =
                        read_events(&mut self.folders, &self.inotify.get_ref().0, events)?;
                    if !changes.is_empty() {
                        return Ok(changes);
                    }
                }
            }
        }
    }
}

fn read_events<K: Clone>(
    folders: &mut BTreeMap<WatchDescriptor, K>,
    inotify: &Inotify,
    events: Vec<InotifyEvent>,
) -> io::Result<Vec<FolderEvent<K>>> {
    let mut changes = Vec::new();
    for event in events {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            return Err(io::Error::other("the queue of inotify overflowed"));
        }
        let own = AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_UNMOUNT
            | AddWatchFlags::IN_IGNORED;
        let folder = if event.mask.intersects(own) {
            // A folder that was moved still exists and would be reported under its old key.
            let _ = inotify.rm_watch(event.wd);
            folders.remove(&event.wd)
        } else {
            folders.get(&event.wd).cloned()
        };
        if let Some(folder) = folder {
            let entry = event.name;
            changes.push(FolderEvent { folder, entry });
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use gatewren_portable::Scratch;

    const LONG: Duration = Duration::from_mins(1);

    async fn expect_event(watch: &mut FolderWatch<u8>, folder: u8, entry: Option<&str>) {
        let expected = FolderEvent {
            folder,
            entry: entry.map(OsString::from),
        };
        let wait = async { while !watch.next().await.unwrap().contains(&expected) {} };
        timeout(LONG, wait).await.expect("an event");
    }

    #[tokio::test]
    async fn entries_are_heard_of_until_their_folder_goes() {
        let scratch = Scratch::new();
        let (one, other) = (scratch.join("one"), scratch.join("other"));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&other).unwrap();
        let mut watch = FolderWatch::new().unwrap();
        watch.add(&one, 1).unwrap();
        watch.add(&other, 2).unwrap();
        fs::write(one.join("config"), "x").unwrap();
        expect_event(&mut watch, 1, Some("config")).await;
        fs::rename(one.join("config"), other.join("moved")).unwrap();
        expect_event(&mut watch, 2, Some("moved")).await;
        fs::rename(&one, scratch.join("elsewhere")).unwrap();
        expect_event(&mut watch, 1, None).await;
        fs::remove_dir_all(&other).unwrap();
        expect_event(&mut watch, 2, None).await;
        assert_eq!(watch.count(), 0);
    }

    #[tokio::test]
    async fn a_file_is_no_folder() {
        let scratch = Scratch::new();
        fs::write(scratch.join("file"), "x").unwrap();
        let mut watch = FolderWatch::new().unwrap();
        assert!(watch.add(&scratch.join("file"), ()).is_err());
        assert!(watch.add(&scratch.join("nothing"), ()).is_err());
    }
}
