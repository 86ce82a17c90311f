//! Waits for kernel events after which the host's facts should be read again.

use std::io;
use std::path::Path;

use tracing::warn;

use gatewren_base::sys::KernelEvents;

/// Files that indicate a changed fact about the host.
const FILES: [(&str, &[&str]); 4] = [
    (
        "/etc",
        &[
            "hostname",
            "localtime",
            "timezone",
            "os-release",
            "resolv.conf",
        ],
    ),
    ("/run", &["reboot-required", "reboot-required.pkgs"]),
    ("/run/systemd/resolve", &["resolv.conf"]),
    ("/run/systemd/timesync", &["synchronized"]),
];

/// Sources of change events. A source that fails is dropped; periodic reads find its changes.
#[derive(Debug)]
pub struct HostEvents {
    network: Option<KernelEvents>,
    disks: Option<KernelEvents>,
    mounts: Option<KernelEvents>,
    hostname: Option<KernelEvents>,
    files: Option<KernelEvents>,
}

impl HostEvents {
    /// Subscribes to all sources.
    pub fn listen() -> Self {
        let places = FILES.map(|(directory, names)| (Path::new(directory), names));
        let proc = |file: &str| KernelEvents::changes_of(&Path::new("/proc").join(file));
        Self {
            network: ok_or_log("network", KernelEvents::network()),
            disks: ok_or_log("disks", KernelEvents::block_devices()),
            mounts: ok_or_log("mounts", proc("self/mountinfo")),
            hostname: ok_or_log("hostname", proc("sys/kernel/hostname")),
            files: ok_or_log("files", KernelEvents::names(&places)),
        }
    }

    /// Waits until something may have changed. Cancel safe.
    pub async fn next(&mut self) {
        tokio::select! {
            () = wait_for_event("network", &mut self.network) => {}
            () = wait_for_event("disks", &mut self.disks) => {}
            () = wait_for_event("mounts", &mut self.mounts) => {}
            () = wait_for_event("hostname", &mut self.hostname) => {}
            () = wait_for_event("files", &mut self.files) => {}
        }
    }

    /// Discards pending events, because a read begins.
    pub fn forget(&self) {
        let all = [
            &self.network,
            &self.disks,
            &self.mounts,
            &self.hostname,
            &self.files,
        ];
        all.into_iter().flatten().for_each(KernelEvents::forget);
    }
}

fn ok_or_log(what: &str, source: io::Result<KernelEvents>) -> Option<KernelEvents> {
    source
        .inspect_err(|cause| log_missing_events(what, cause))
        .ok()
}

async fn wait_for_event(what: &str, source: &mut Option<KernelEvents>) {
    if let Some(hints) = source {
        match hints.next().await {
            Ok(()) => return,
            Err(cause) => log_missing_events(what, &cause),
        }
        *source = None;
    }
    std::future::pending::<()>().await;
}

fn log_missing_events(what: &str, cause: &io::Error) {
    warn!(what, %cause, "the kernel reports no changes; gatewren polls instead");
}
