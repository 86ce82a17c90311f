//! The host's facts that rarely change.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::super::os_release::OsRelease;
use super::super::source::HostTree;
use super::addresses::{InterfaceAddress, lasting_addresses};
use super::gpus::{Gpu, gpus};
use super::meminfo::{memory, swap};
use super::platform::{Cpu, Hardware, cpu, hardware, virtualization};

/// Created by Debian's packages when an update takes effect only after a reboot.
const REBOOT_REQUIRED: &str = "run/reboot-required";

/// The packages that requested it, one a line, possibly repeated.
const REBOOT_PACKAGES: &str = "run/reboot-required.pkgs";

/// The host's facts.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtualization: Option<String>,
    /// Its vendor and product.
    pub hardware: Hardware,
    /// Its processors.
    pub cpu: Cpu,
    /// Its memory in bytes.
    pub memory_bytes: u64,
    /// Its swap space in bytes.
    pub swap_bytes: u64,
    /// Its graphics processors, sorted by address.
    pub gpus: Vec<Gpu>,
    /// Its addresses, except loopback, link-local and temporary ones, sorted.
    pub addresses: Vec<InterfaceAddress>,
    /// When it started, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_time: Option<String>,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// Whether an installed update requires a reboot.
    pub reboot_required: bool,
    /// The packages that wait for it, sorted, if known.
    pub reboot_packages: Vec<String>,
    /// The version of gatewren that reports this.
    pub gatewren: GatewrenVersion,
}

/// gatewren itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GatewrenVersion {
    /// Its version.
    pub version: String,
}

/// Returns the host's facts; an unknown fact is absent or has a neutral value. `boot_time` is when
/// it started, RFC 3339.
pub fn info(tree: &HostTree, boot_time: Option<String>) -> ServerInfo {
    let text = |file: &str| tree.text(file).unwrap_or_default();
    let cpuinfo = text("proc/cpuinfo");
    let hardware = hardware(tree);
    let container = tree.word("run/systemd/container");
    let os_release = tree.text("etc/os-release");
    let os_release = os_release.unwrap_or_else(|| text("usr/lib/os-release"));
    let kernel = |name: &str| tree.word(&format!("proc/sys/kernel/{name}"));
    let meminfo = text("proc/meminfo");
    ServerInfo {
        hostname: hostname(tree),
        os: OsRelease::parse(&os_release),
        kernel: kernel("osrelease").unwrap_or_default(),
        architecture: std::env::consts::ARCH.to_owned(),
        virtualization: virtualization(container.as_deref(), &hardware, &cpuinfo),
        hardware,
        cpu: cpu(&cpuinfo),
        memory_bytes: memory(&meminfo).total_bytes,
        swap_bytes: swap(&meminfo).total_bytes,
        gpus: gpus(tree),
        addresses: lasting_addresses(tree),
        boot_time,
        uptime_s: uptime_s(tree),
        reboot_required: tree.has(REBOOT_REQUIRED),
        reboot_packages: reboot_packages(&text(REBOOT_PACKAGES)),
        gatewren: GatewrenVersion {
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
    }
}

/// Returns the host's name.
pub fn hostname(tree: &HostTree) -> String {
    let name = tree.word("proc/sys/kernel/hostname");
    name.unwrap_or_else(|| "localhost".to_owned())
}

/// Returns whole seconds since the host started.
pub fn uptime_s(tree: &HostTree) -> u64 {
    whole_seconds(&tree.text("proc/uptime").unwrap_or_default())
}

pub fn reboot_packages(text: &str) -> Vec<String> {
    let names = text.split_whitespace().map(str::to_owned);
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Parses `/proc/uptime`.
fn whole_seconds(text: &str) -> u64 {
    let seconds = text.split(['.', ' ']).next();
    seconds
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptime_is_whole_seconds() {
        assert_eq!(whole_seconds("1981.39 3475.97\n"), 1981);
        for odd in ["", " ", "x", "-1.0"] {
            assert_eq!(whole_seconds(odd), 0, "{odd}");
        }
    }

    #[test]
    fn what_waits_for_a_reboot_is_named_once() {
        let text = "linux-image-6.1.0-30-amd64\nlibc6\nlinux-image-6.1.0-30-amd64\n";
        assert_eq!(
            reboot_packages(text),
            ["libc6", "linux-image-6.1.0-30-amd64"]
        );
        assert!(reboot_packages("").is_empty());
    }
}
