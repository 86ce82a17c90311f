//! Hints of the kernel that something on the machine may have changed; what, shows only a look.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::names::Names;
use super::netlink::Netlink;

/// One source of hints.
#[derive(Debug)]
pub struct Hints {
    source: AsyncFd<Source>,
    /// What makes it ready.
    interest: Interest,
}

#[derive(Debug)]
enum Source {
    Netlink(Netlink),
    Names(Names),
    /// A file of `/proc` that is ready, with priority, once after each change (poll(2)).
    Changing(File),
}

impl Hints {
    /// Network interfaces, addresses and routes of this network namespace.
    ///
    /// This and the others need a runtime around them.
    pub fn network() -> io::Result<Self> {
        Self::over(Source::Netlink(Netlink::network()?), Interest::READABLE)
    }

    /// Disks and partitions.
    pub fn block_devices() -> io::Result<Self> {
        let netlink = Netlink::block_devices()?;
        Self::over(Source::Netlink(netlink), Interest::READABLE)
    }

    /// Names in directories; a directory that cannot be watched is left out.
    pub fn names(places: &[(&Path, &[&str])]) -> io::Result<Self> {
        let mut names = Names::new()?;
        for (directory, wanted) in places {
            // Not every system has every one of them.
            let _ = names.watch(directory, wanted);
        }
        Self::over(Source::Names(names), Interest::READABLE)
    }

    /// A file of `/proc` that tells of its changes, such as `self/mountinfo` (proc_pid_mountinfo(5)) or
    /// `sys/kernel/hostname`.
    pub fn changes_of(file: &Path) -> io::Result<Self> {
        Self::over(Source::Changing(File::open(file)?), Interest::PRIORITY)
    }

    /// Waits for the next hint; many that came together are one. Safe to drop while it waits.
    ///
    /// # Errors
    /// When the source is of no use any more.
    pub async fn next(&self) -> io::Result<()> {
        loop {
            self.source.ready(self.interest).await?.clear_ready();
            if self.source.get_ref().take()? {
                return Ok(());
            }
        }
    }

    /// Forgets the hints that came already, because what they tell of is looked at after this.
    pub fn forget(&self) {
        // A source that fails says so when it is waited for.
        let _ = self.source.get_ref().take();
        // The runtime may know already what was taken here.
        let _ = self.source.try_io(self.interest, |_| {
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
    }

    fn over(source: Source, interest: Interest) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "tokio wants a descriptor that never changes")]
        // SAFETY: each source answers with the number of the one descriptor that it owns until it is dropped.
        let source = unsafe { AsyncFd::register_with_interest(source, interest) }?;
        Ok(Self { source, interest })
    }
}

impl Source {
    fn take(&self) -> io::Result<bool> {
        match self {
            Self::Netlink(netlink) => netlink.take(),
            Self::Names(names) => names.take(),
            Self::Changing(_) => Ok(true),
        }
    }
}

impl AsRawFd for Source {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Netlink(netlink) => netlink.as_raw_fd(),
            Self::Names(names) => names.as_raw_fd(),
            Self::Changing(file) => file.as_raw_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::super::scratch::Scratch;
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_hint_comes_once_and_can_be_forgotten() {
        let scratch = Scratch::new();
        let hints = Hints::names(&[
            (scratch.path(), &["flag"]),
            (&scratch.join("none"), &["flag"]),
        ]);
        let hints = hints.unwrap();
        fs::write(scratch.join("flag"), "").unwrap();
        timeout(LONG, hints.next()).await.unwrap().unwrap();
        fs::remove_file(scratch.join("flag")).unwrap();
        hints.forget();
        let silence = timeout(Duration::from_millis(50), hints.next()).await;
        assert!(silence.is_err());
        fs::write(scratch.join("flag"), "").unwrap();
        timeout(LONG, hints.next()).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn every_source_can_be_opened_without_rights() {
        Hints::network().unwrap();
        Hints::block_devices().unwrap();
        Hints::changes_of(Path::new("/proc/self/mountinfo")).unwrap();
        Hints::changes_of(Path::new("/proc/sys/kernel/hostname")).unwrap();
        assert!(Hints::changes_of(Path::new("/no/such/file")).is_err());
    }
}
