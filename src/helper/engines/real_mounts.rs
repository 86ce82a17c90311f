//! The mounts of a running container as the kernel has them. They show what the engine's answer hides: a symbolic link at
//! a mount's source, and a volume that is a directory or a disk of the host.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use gatewren_base::sys::{process, unescape_mount};

use super::host_rights::{HostRight, host_rights, right_of_path};
use super::inspect::InspectedContainer;

/// The most bytes that are read of a table of mounts, and the most mounts of a container. A container with more counts
/// as one with rights over the host, because not all of its mounts are known.
const MAX_TABLE_BYTES: u64 = 4 << 20;
const MAX_MOUNTS: usize = 4096;

/// The host's first process, which has the host's mounts.
const HOST: i32 = 1;

/// A line of the table (`proc_pid_mountinfo(5)`).
struct MountLine<'a> {
    /// The device of the file system, as `MAJOR:MINOR`. All mounts of a file system have the same.
    device: &'a str,
    /// The directory or file of the file system that is mounted.
    root: PathBuf,
    /// Where it is mounted.
    place: PathBuf,
    is_writable: bool,
    filesystem: &'a str,
}

/// Returns the rights over the host that a container with this first process has, a phrase each: those of
/// [`host_rights`], and those that only the kernel shows.
pub fn running_host_rights(container: &InspectedContainer, init: i32) -> Vec<String> {
    let mut rights = host_rights(container);
    for right in rights_of_mounts(init) {
        if !rights.contains(&right) {
            rights.push(right);
        }
    }
    rights.iter().map(ToString::to_string).collect()
}

/// Returns the rights over the host that the mounts of a container give, by its first process; none if it has ended.
fn rights_of_mounts(init: i32) -> Vec<HostRight> {
    let own = match read_table(init) {
        Ok(own) => own,
        // The kernel does not show the mounts of a process that has ended.
        Err(_) if process(init).is_none_or(|process| process.is_ending) => return Vec::new(),
        Err(_) => return vec![HostRight::UnknownMounts],
    };
    match read_table(HOST) {
        Ok(host) => compare(&own, &host),
        Err(_) => vec![HostRight::UnknownMounts],
    }
}

fn read_table(process: i32) -> io::Result<String> {
    let file = File::open(format!("/proc/{process}/mountinfo"))?;
    let mut bytes = Vec::new();
    file.take(MAX_TABLE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_TABLE_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the rights that the mounts in a container's table give, by the table of the host.
fn compare(own: &str, host: &str) -> Vec<HostRight> {
    let mut of_host: HashMap<&str, Vec<MountLine<'_>>> = HashMap::new();
    for line in host.lines().filter_map(MountLine::parse) {
        of_host.entry(line.device).or_default().push(line);
    }
    let mut rights = Vec::new();
    for (number, mount) in own.lines().filter_map(MountLine::parse).enumerate() {
        if number == MAX_MOUNTS {
            rights.push(HostRight::UnknownMounts);
            break;
        }
        for on_host in of_host.get(mount.device).into_iter().flatten() {
            let path = mount.path_on_host(on_host);
            let right = path.and_then(|path| right_of_path(path, mount.is_writable));
            rights.extend(right.filter(|right| !rights.contains(right)));
        }
    }
    rights
}

impl<'a> MountLine<'a> {
    /// Parses a line; `None` for what is no directory or file, such as a namespace.
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let (device, root, place) = (mount.next()?, mount.next()?, mount.next()?);
        let options = mount.next()?;
        let mut filesystem = filesystem.split(' ');
        let kind = filesystem.next()?;
        let of_filesystem = filesystem.nth(1).unwrap_or_default();
        let is_read_only = |options: &str| options.split(',').any(|option| option == "ro");
        // The kernel marks what was deleted after it was mounted.
        let root = unescape_mount(root);
        let root = root.strip_suffix("//deleted").unwrap_or(&root);
        root.starts_with('/').then(|| Self {
            device,
            root: PathBuf::from(root),
            place: PathBuf::from(unescape_mount(place)),
            is_writable: !is_read_only(options) && !is_read_only(of_filesystem),
            filesystem: kind,
        })
    }

    /// Returns the path at which a mount of the host shows what this one does, or a part of it; `None` if it shows
    /// something else.
    fn path_on_host(&self, on_host: &MountLine<'_>) -> Option<PathBuf> {
        // The tree of cgroups is one file system. An engine mounts a container's own part of it.
        if self.filesystem.starts_with("cgroup") && self.root != Path::new("/") {
            return None;
        }
        if let Ok(below) = self.root.strip_prefix(&on_host.root) {
            return Some(on_host.place.join(below));
        }
        // The container's mount begins above the host's, and contains it.
        let contains = on_host.root.starts_with(&self.root);
        contains.then(|| on_host.place.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mounts of a host.
    const TABLE: &str = "\
22 28 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
24 28 0:5 / /dev rw,nosuid,relatime shared:2 - devtmpfs udev rw,size=8177268k,mode=755
26 28 0:23 / /run rw,nosuid,nodev,noexec,relatime shared:5 - tmpfs tmpfs rw,size=1638956k,mode=755
28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro
35 22 0:29 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw
60 28 8:17 / /srv/media\\040disk rw,relatime shared:31 - ext4 /dev/sdb1 rw
90 28 0:61 / /var/lib/docker/overlay2/3f/merged rw,relatime shared:50 - overlay overlay rw,lowerdir=a
";

    /// The mounts of a usual container, from Docker, with a volume and a directory of the host.
    const USUAL: &str = "\
650 600 0:61 / / rw,relatime master:50 - overlay overlay rw,lowerdir=a
651 650 0:70 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
652 650 0:71 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
653 652 0:72 / /dev/pts rw,nosuid,noexec,relatime - devpts devpts rw,gid=5,mode=620,ptmxmode=666
654 650 0:73 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ro
655 654 0:29 /docker/3f /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw
656 650 254:1 /var/lib/docker/containers/3f/resolv.conf /etc/resolv.conf rw,relatime - ext4 /dev/vda1 rw
657 650 254:1 /var/lib/docker/volumes/x/_data /data rw,relatime - ext4 /dev/vda1 rw
658 650 8:17 /films /films rw,relatime - ext4 /dev/sdb1 rw
659 651 0:70 /sys /proc/sys ro,nosuid,nodev,noexec,relatime - proc proc rw
660 651 0:5 /null /proc/kcore rw,nosuid - devtmpfs udev rw,size=8177268k,mode=755
661 650 0:23 /containers/3f/hosts /etc/hosts rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,mode=755
662 650 0:4 net:[4026532281] /run/netns rw - nsfs nsfs rw
";

    /// Returns the rights of the usual container with one more mount.
    fn with(line: &str) -> Vec<String> {
        let rights = compare(&format!("{USUAL}{line}\n"), TABLE);
        rights.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_usual_container_has_none() {
        assert_eq!(compare(USUAL, TABLE), []);
        assert_eq!(compare("", ""), []);
        for line in [
            "",
            "700 650 254:1 / /x",
            "x - ext4",
            // A disk that the host has not mounted.
            "700 650 8:33 / /x rw,relatime - ext4 /dev/sdd1 rw",
            "700 650 254:1 /etc /x ro,relatime - ext4 /dev/vda1 rw",
            "700 650 254:1 /etc /x rw,relatime - ext4 /dev/vda1 ro",
            "700 650 0:20 / /x ro,relatime - sysfs sysfs rw",
        ] {
            assert_eq!(with(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn what_a_mount_really_is_counts() {
        for (line, expected) in [
            // A link to the host's root, or a volume with it as its device.
            (
                "254:1 / /x rw,relatime - ext4 /dev/vda1 rw",
                "/ of the host",
            ),
            (
                "254:1 / /x ro,relatime - ext4 /dev/vda1 rw",
                "/ of the host",
            ),
            (
                "254:1 /etc /x rw,relatime - ext4 /dev/vda1 rw",
                "write to /etc of",
            ),
            (
                "254:1 /root/.ssh//deleted /x rw - ext4 /dev/vda1 rw",
                "write to /root/.ssh of",
            ),
            (
                "0:23 /docker.sock /x ro - tmpfs tmpfs rw",
                "/run/docker.sock of the host",
            ),
            ("0:5 / /x rw - devtmpfs udev rw", "write to /dev of"),
            (
                "0:29 / /x rw - cgroup2 cgroup2 rw",
                "write to /sys/fs/cgroup of",
            ),
        ] {
            let rights = with(&format!("700 650 {line}"));
            assert!(
                rights.len() == 1 && rights[0].contains(expected),
                "{rights:?}"
            );
        }
    }

    #[test]
    fn a_mount_above_what_the_host_has_mounted_contains_it() {
        let host = "61 28 0:45 /@ / rw,relatime shared:32 - btrfs /dev/sdc rw,subvol=/@\n";
        let mount = "700 650 0:45 / /x rw - btrfs /dev/sdc rw\n";
        let rights = compare(mount, host);
        assert!(matches!(&rights[..], [HostRight::ControlSocket(path)] if path == Path::new("/")));
    }

    #[test]
    fn more_mounts_than_are_read_count_as_a_right() {
        let many = "700 650 8:33 / /x rw - ext4 /dev/sdd1 rw\n".repeat(MAX_MOUNTS + 1);
        assert_eq!(compare(&many, TABLE), [HostRight::UnknownMounts]);
    }

    #[test]
    fn a_process_that_does_not_exist_has_none() {
        assert_eq!(rights_of_mounts(i32::MAX), []);
    }
}
