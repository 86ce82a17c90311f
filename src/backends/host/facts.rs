//! What the machine is: the facts that rarely change.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::sys::rfc3339;

use super::super::os_release::OsRelease;
use super::super::source;
use super::addresses::{InterfaceAddress, addresses};
use super::metrics::{self, Metrics};
use super::mounts::{Mount, mounts};
use super::platform::{Cpu, cpu, virtualization};
use super::usage::boot_time_s;

/// How long the processors are watched for their usage.
const SAMPLE: Duration = Duration::from_millis(200);

/// The machine that gatewren runs on.
#[derive(Debug, Default)]
pub struct Host {
    /// Read once: the kernel computes it from the clock, which is set and corrected.
    boot_time_s: OnceLock<Option<u64>>,
}

/// What the machine is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServerInfo {
    /// Its name.
    pub hostname: String,
    /// Its operating system.
    pub os: OsRelease,
    /// The kernel's release.
    pub kernel: String,
    /// The processor's architecture, such as `x86_64` or `aarch64`.
    pub architecture: String,
    /// The kind of virtual machine or container it is; absent on bare metal.
    pub virtualization: Option<String>,
    /// Its processors.
    pub cpu: Cpu,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Its addresses but for loopback and link-local ones, sorted.
    pub addresses: Vec<InterfaceAddress>,
    /// When it started, RFC 3339.
    pub boot_time: Option<String>,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// Whether an update waits for a reboot.
    pub reboot_required: bool,
    /// The program that says all this.
    pub gatewren: Gatewren,
}

/// gatewren itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gatewren {
    /// Its version.
    pub version: String,
}

impl Host {
    /// This machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// What it is; what cannot be found out is absent or has a neutral value.
    pub fn info(&self) -> ServerInfo {
        let cpuinfo = source::text("/proc/cpuinfo").unwrap_or_default();
        let dmi = |name: &str| source::word(Path::new("/sys/class/dmi/id").join(name));
        let virtualization = virtualization(
            source::word("/run/systemd/container").as_deref(),
            dmi("sys_vendor").as_deref(),
            dmi("product_name").as_deref(),
            &cpuinfo,
        );
        let os_release = source::text("/etc/os-release");
        let os_release = os_release.or_else(|| source::text("/usr/lib/os-release"));
        let kernel = |name: &str| source::word(Path::new("/proc/sys/kernel").join(name));
        ServerInfo {
            hostname: kernel("hostname").unwrap_or_else(|| "localhost".to_owned()),
            os: OsRelease::parse(&os_release.unwrap_or_default()),
            kernel: kernel("osrelease").unwrap_or_default(),
            architecture: std::env::consts::ARCH.to_owned(),
            virtualization,
            cpu: cpu(&cpuinfo),
            memory_bytes: metrics::memory().total_bytes,
            addresses: addresses(),
            boot_time: self
                .boot_time()
                .map(|seconds| rfc3339(seconds.saturating_mul(1000))),
            uptime_s: uptime_s(&source::text("/proc/uptime").unwrap_or_default()),
            reboot_required: Path::new("/run/reboot-required").exists(),
            gatewren: Gatewren {
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
        }
    }

    /// How it stands; takes 200 ms, in which the processors are watched.
    pub async fn metrics(&self) -> Metrics {
        let earlier = metrics::cpu_time();
        tokio::time::sleep(SAMPLE).await;
        Metrics::since(earlier)
    }

    /// The local file systems of the machine, sorted by path.
    pub fn mounts() -> Vec<Mount> {
        mounts(&source::text("/proc/self/mounts").unwrap_or_default())
    }

    fn boot_time(&self) -> Option<u64> {
        let read = || boot_time_s(&source::text("/proc/stat")?);
        *self.boot_time_s.get_or_init(read)
    }
}

/// Whole seconds from `/proc/uptime`.
fn uptime_s(text: &str) -> u64 {
    let seconds = text.split(['.', ' ']).next();
    seconds
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let info = Host::new().info();
        assert!(!info.hostname.is_empty() && !info.kernel.is_empty());
        assert!(info.cpu.cores >= 1 && info.memory_bytes > 1 << 20 && info.uptime_s > 0);
        assert!(info.boot_time.is_some_and(|time| time.ends_with('Z')));
        let json = serde_json::to_value(Host::new().info()).unwrap();
        assert_eq!(json["gatewren"]["version"], env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn uptime_is_whole_seconds() {
        assert_eq!(uptime_s("1981.39 3475.97\n"), 1981);
        for odd in ["", " ", "x", "-1.0"] {
            assert_eq!(uptime_s(odd), 0, "{odd}");
        }
    }

    #[tokio::test]
    async fn this_machine_is_measured() {
        let metrics = Host::new().metrics().await;
        assert!((0.0..=100.0).contains(&metrics.cpu_percent), "{metrics:?}");
        assert!(metrics.memory.total_bytes > metrics.memory.available_bytes);
        assert!(
            metrics
                .network
                .iter()
                .any(|interface| interface.interface == "lo")
        );
        assert!(
            metrics
                .network
                .is_sorted_by_key(|interface| &interface.interface)
        );
    }
}
