//! The kernels of the host that are installed as Debian packages, and which of them are old.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use gatewren_base::sys::source::word;
use gatewren_wire::operations::{KernelRelease, OperationRefusal, PackageName};

use crate::context::orphans::Orphans;
use crate::context::tools::{HostTool, output};

/// The beginnings of the names of packages that belong to one kernel; the kernel's version follows.
const PARTS: [&str; 5] = [
    "linux-image-unsigned-",
    "linux-image-",
    "linux-modules-extra-",
    "linux-modules-",
    "linux-headers-",
];

/// An installed kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledKernel {
    /// Its version.
    pub release: KernelRelease,
    /// Its packages.
    pub packages: Vec<PackageName>,
    /// The size of their files in bytes.
    pub bytes: u64,
}

/// Returns the kernels that are neither running nor the newest, oldest first; none if it is unclear which one runs.
pub async fn old_kernels(orphans: &Arc<Orphans>) -> Result<Vec<InstalledKernel>, OperationRefusal> {
    let format = "--showformat=${db:Status-Abbrev}\t${Package}\t${Installed-Size}\n";
    let patterns = ["linux-image-[0-9]*", "linux-image-unsigned-[0-9]*"];
    let more = ["linux-modules-*", "linux-headers-[0-9]*"];
    let args = ["--show", format, "--"]
        .into_iter()
        .chain(patterns)
        .chain(more);
    // A pattern without a match is an error of dpkg-query, but the others are listed.
    let listed = output(&HostTool::new("dpkg-query", args), orphans).await?;
    let running = word("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(old_of(installed(&listed), &running))
}

/// Parses the list of packages: status, name and KiB.
fn installed(listed: &str) -> Vec<InstalledKernel> {
    let mut kernels: BTreeMap<KernelRelease, InstalledKernel> = BTreeMap::new();
    let mut with_image = Vec::new();
    for line in listed.lines() {
        let mut fields = line.split('\t');
        let (Some(status), Some(name), Some(size)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let part = PARTS.iter().find_map(|part| {
            let release = name.strip_prefix(part)?.parse::<KernelRelease>().ok()?;
            Some((*part, release))
        });
        let (Some((part, release)), Ok(package)) = (part, name.parse()) else {
            continue;
        };
        // Only completely installed packages that are not on hold ("hi").
        if status.trim_end() != "ii" {
            continue;
        }
        if part.starts_with("linux-image") {
            with_image.push(release.clone());
        }
        let kernel = kernels
            .entry(release.clone())
            .or_insert_with(|| InstalledKernel {
                release,
                packages: Vec::new(),
                bytes: 0,
            });
        kernel.packages.push(package);
        kernel.bytes += size.parse::<u64>().unwrap_or(0).saturating_mul(1024);
    }
    let mut kernels: Vec<_> = kernels.into_values().collect();
    // Headers without a kernel are kept: a compiler may need them.
    kernels.retain(|kernel| with_image.contains(&kernel.release));
    kernels
}

fn old_of(mut kernels: Vec<InstalledKernel>, running: &str) -> Vec<InstalledKernel> {
    let runs = |kernel: &InstalledKernel| kernel.release.as_str() == running;
    if !kernels.iter().any(runs) {
        return Vec::new();
    }
    kernels.sort_by(|a, b| by_version(a.release.as_str(), b.release.as_str()));
    kernels.pop();
    kernels.retain(|kernel| !runs(kernel));
    kernels
}

/// Compares two versions: runs of digits as numbers, the rest by its bytes.
fn by_version(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (left, right) = (run(&mut a), run(&mut b));
        if left.is_empty() && right.is_empty() {
            return Ordering::Equal;
        }
        let numbers = (left.parse::<u64>(), right.parse::<u64>());
        let order = match numbers {
            (Ok(left), Ok(right)) => left.cmp(&right),
            _ => left.cmp(right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Takes the first run of digits, or of others, from a text.
fn run<'t>(text: &mut &'t str) -> &'t str {
    let is_digit = |c: char| c.is_ascii_digit();
    let digits = text.starts_with(is_digit);
    let end = text.find(|c| is_digit(c) != digits).unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    *text = rest;
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "ii \tlinux-image-6.1.0-9-amd64\t400\n\
        ii \tlinux-image-6.1.0-25-amd64\t400\n\
        ii \tlinux-headers-6.1.0-25-amd64\t100\n\
        ii \tlinux-image-6.1.0-27-amd64\t400\n\
        ii \tlinux-image-amd64\t1\n\
        rc \tlinux-image-6.1.0-7-amd64\t400\n\
        hi \tlinux-image-6.1.0-8-amd64\t400\n\
        ii \tlinux-headers-6.1.0-1-amd64\t50\n\
        garbage\n";

    fn old(running: &str) -> Vec<String> {
        let old = old_of(installed(LISTED), running);
        let old = old.into_iter().map(|kernel| {
            let packages: Vec<&str> = kernel.packages.iter().map(PackageName::as_str).collect();
            format!("{} {}", packages.join("+"), kernel.bytes)
        });
        old.collect()
    }

    #[test]
    fn neither_the_running_kernel_nor_the_newest_is_old() {
        let first = "linux-image-6.1.0-9-amd64 409600";
        let second = "linux-image-6.1.0-25-amd64+linux-headers-6.1.0-25-amd64 512000";
        assert_eq!(old("6.1.0-27-amd64"), [first, second]);
        assert_eq!(old("6.1.0-25-amd64"), [first]);
        assert_eq!(old("6.1.0-9-amd64"), [second]);
    }

    #[test]
    fn without_the_running_kernel_among_the_packages_none_is_old() {
        for running in ["", "6.8.12-pve", "6.1.0-7-amd64"] {
            assert!(old(running).is_empty(), "{running}");
        }
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let mut versions = ["6.10.2-1", "6.9-1", "6.1.0-9", "6.1.0-27", "6.1.0-9+b1"];
        versions.sort_by(|a, b| by_version(a, b));
        let expected = ["6.1.0-9", "6.1.0-9+b1", "6.1.0-27", "6.9-1", "6.10.2-1"];
        assert_eq!(versions, expected);
    }
}
