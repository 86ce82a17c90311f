//! Hints from the kernel that something on the host may have changed; the caller must look to find out what.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::names::NameWatch;
use super::netlink::Netlink;

/// One source of hints.
#[derive(Debug)]
pub struct KernelEvents {
    source: AsyncFd<Source>,
    /// The readiness to wait for.
    interest: Interest,
}

#[derive(Debug)]
enum Source {
    Netlink(Netlink),
    Names(NameWatch),
    /// A file of `/proc` that becomes ready, with priority, once after each change (poll(2)).
    Changing(File),
}

impl KernelEvents {
    /// Watches network interfaces, addresses and routes of this network namespace.
    ///
    /// Like the other constructors, it needs a tokio runtime.
    pub fn network() -> io::Result<Self> {
        Self::register(Source::Netlink(Netlink::network()?), Interest::READABLE)
    }

    /// Watches disks and partitions.
    pub fn block_devices() -> io::Result<Self> {
        let netlink = Netlink::block_devices()?;
        Self::register(Source::Netlink(netlink), Interest::READABLE)
    }

    /// Watches names in directories; a directory that cannot be watched is left out.
    pub fn names(places: &[(&Path, &[&str])]) -> io::Result<Self> {
        let mut names = NameWatch::new()?;
        for (directory, wanted) in places {
            // Not every system has all of them.
            let _ = names.watch(directory, wanted);
        }
        Self::register(Source::Names(names), Interest::READABLE)
    }

    /// Watches a file of `/proc` that reports its changes, such as `self/mountinfo` (proc(5)) or
    /// `sys/kernel/hostname`.
    pub fn changes_of(file: &Path) -> io::Result<Self> {
        Self::register(Source::Changing(File::open(file)?), Interest::PRIORITY)
    }

    /// Waits for the next hint; several that arrive together count as one. Safe to drop while waiting.
    ///
    /// # Errors
    /// When the source no longer works.
    pub async fn next(&self) -> io::Result<()> {
        loop {
            self.source.ready(self.interest).await?.clear_ready();
            if self.source.get_ref().take()? {
                return Ok(());
            }
        }
    }

    /// Discards the hints so far, because the caller is about to look.
    pub fn forget(&self) {
        // A failing source returns its error on the next wait.
        let _ = self.source.get_ref().take();
        // Clears the readiness that the runtime may have recorded for the hints taken here.
        let _ = self.source.try_io(self.interest, |_| {
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
    }

    fn register(source: Source, interest: Interest) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "AsyncFd needs a descriptor that never changes")]
        // SAFETY: each source owns one descriptor and returns its number until it is dropped.
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
    use std::os::unix::fs::symlink;
    use std::process::Command;
    use std::time::Duration;

    use nix::sched::{CloneFlags, unshare};
    use nix::unistd::{Uid, sethostname};
    use tokio::time::timeout;

    use super::super::skip::skip;
    use super::*;
    use gatewren_portable::Scratch;

    /// Only the event ends a wait: there is no polling.
    const LONG: Duration = Duration::from_mins(1);

    /// Runs a test on a thread with its own network, mounts and host name.
    fn run_isolated(test: fn()) {
        if !Uid::effective().is_root() {
            return skip("namespaces need root");
        }
        let alone = move || {
            let own = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS;
            if let Err(cause) = unshare(own) {
                return skip(&format!("no namespaces here: {cause}"));
            }
            run("mount", &["--make-rprivate", "/"]);
            test();
        };
        let name = std::thread::current().name().map(str::to_owned);
        let thread = std::thread::Builder::new().name(name.unwrap_or_default());
        thread.spawn(alone).unwrap().join().unwrap();
    }

    fn run(program: &str, args: &[&str]) -> String {
        let output = Command::new(program).args(args).output();
        let output = output.unwrap_or_else(|cause| panic!("{program}: {cause}"));
        assert!(output.status.success(), "{program} {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn has(program: &str) -> bool {
        let found = Command::new(program).arg("--version").output().is_ok();
        if !found {
            skip(&format!("there is no program {program}"));
        }
        found
    }

    /// Each of the changes must cause a hint.
    #[tokio::main(flavor = "current_thread")]
    async fn expect_hints(open: impl Fn() -> io::Result<KernelEvents>, changes: &[&dyn Fn()]) {
        let hints = open().unwrap();
        for (number, change) in changes.iter().enumerate() {
            change();
            let event = timeout(LONG, hints.next()).await;
            event.unwrap_or_else(|_| panic!("change {number}")).unwrap();
            hints.forget();
        }
    }

    #[test]
    fn interfaces_addresses_and_routes_are_heard_of() {
        run_isolated(|| {
            if Command::new("ip").arg("-V").output().is_err() {
                return skip("there is no program ip");
            }
            let ip = |line: &str| run("ip", &line.split(' ').collect::<Vec<_>>());
            let steps = [
                "link add seen0 type veth peer name seen1",
                "link set seen0 up",
                "address add 192.0.2.7/24 dev seen0",
                "route add default via 192.0.2.1",
                "route del default",
                "address del 192.0.2.7/24 dev seen0",
                "link del seen0",
            ];
            let steps = steps.map(|line| move || drop(ip(line)));
            let steps: Vec<&dyn Fn()> = steps.iter().map(|step| step as &dyn Fn()).collect();
            expect_hints(KernelEvents::network, &steps);
        });
    }

    #[test]
    fn a_storm_that_nobody_listens_to_is_a_hint_too() {
        run_isolated(|| {
            if Command::new("ip").arg("-V").output().is_err() {
                return skip("there is no program ip");
            }
            let storm = || {
                let scratch = Scratch::new();
                let line = |n: u32| format!("address add 10.0.{}.{}/8 dev lo\n", n >> 8, n & 255);
                let batch: String = (1..=1000).map(line).collect();
                fs::write(scratch.join("batch"), batch).unwrap();
                run("ip", &["-batch", scratch.join("batch").to_str().unwrap()]);
            };
            expect_hints(KernelEvents::network, &[&storm]);
        });
    }

    #[test]
    fn mounts_are_heard_of() {
        run_isolated(|| {
            let scratch = Scratch::new();
            let place = scratch.path().to_str().unwrap();
            let mount = || drop(run("mount", &["-t", "tmpfs", "none", place]));
            let change = || drop(run("mount", &["-o", "remount,ro", place]));
            let unmount = || drop(run("umount", &[place]));
            let open = || KernelEvents::changes_of(Path::new("/proc/thread-self/mountinfo"));
            expect_hints(open, &[&mount, &change, &unmount]);
        });
    }

    #[test]
    fn the_host_name_is_heard_of() {
        run_isolated(|| {
            let rename = || sethostname("renamed").unwrap();
            let open = || KernelEvents::changes_of(Path::new("/proc/sys/kernel/hostname"));
            expect_hints(open, &[&rename, &|| sethostname("again").unwrap()]);
        });
    }

    #[test]
    fn disks_are_heard_of() {
        run_isolated(|| {
            if !has("losetup") {
                return;
            }
            let scratch = Scratch::new();
            let file = scratch.join("disk");
            fs::write(&file, vec![0; 1 << 20]).unwrap();
            let attach = Command::new("losetup")
                .args(["-f", "--show"])
                .arg(&file)
                .output();
            let attach = attach.unwrap();
            if !attach.status.success() {
                return skip("no loop devices here");
            }
            let device = String::from_utf8(attach.stdout).unwrap().trim().to_owned();
            let detach = || drop(run("losetup", &["-d", &device]));
            expect_hints(KernelEvents::block_devices, &[&detach]);
        });
    }

    #[tokio::test]
    async fn a_hint_comes_once_and_can_be_forgotten() {
        let scratch = Scratch::new();
        let hints = KernelEvents::names(&[
            (scratch.path(), &["flag"]),
            (&scratch.join("none"), &["flag"]),
        ]);
        let hints = hints.unwrap();
        // A link is created without an open file: a process that another test forks at this moment would have it too,
        // and closing it would be a hint of its own.
        symlink("nowhere", scratch.join("flag")).unwrap();
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
        KernelEvents::network().unwrap();
        KernelEvents::block_devices().unwrap();
        KernelEvents::changes_of(Path::new("/proc/self/mountinfo")).unwrap();
        KernelEvents::changes_of(Path::new("/proc/sys/kernel/hostname")).unwrap();
        assert!(KernelEvents::changes_of(Path::new("/no/such/file")).is_err());
    }
}
