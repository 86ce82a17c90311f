//! Which rights over the host a container has: with one of them, a command in it can do what root on the host can.
//!
//! The engine's answer shows neither a symbolic link on the host at a mount's source nor the options of a named volume,
//! which can be a directory of the host. So the mounts of a running container are read from the kernel too.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use super::facts::EngineMount;
use super::inspect::InspectedContainer;

/// A right over the host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostRight {
    /// It was created with `--privileged`.
    Privileged,
    /// It sees the host's processes, and may send signals to them.
    HostProcesses,
    /// The named path is mounted: a socket through which root's services take orders, or a directory with one. That
    /// works through a read-only mount too.
    ControlSocket(PathBuf),
    /// The named directory or file of the host, or one above it, is mounted writable.
    WritablePath(PathBuf),
    /// It has the named capability, without `CAP_`.
    Capability(String),
    /// It has all devices of the host, or the kernel's memory.
    AllDevices,
    /// It has the named disk, or another device through which data of the host can be changed.
    Disk(PathBuf),
    /// It may write to the kernel's settings in `/proc/sys`.
    KernelSettings,
    /// Not all of its mounts can be read, so it may have any.
    UnknownMounts,
}

/// Sockets through which root's services take orders.
const CONTROL_SOCKETS: [&str; 12] = [
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/systemd/private",
    "/run/dbus/system_bus_socket",
    "/run/libvirt/libvirt-sock",
    "/run/incus/unix.socket",
    "/var/lib/incus/unix.socket",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
    "/run/gatewren/helper.sock",
];

/// Names of sockets of engines, wherever they are.
const ENGINE_SOCKET_NAMES: [&str; 2] = ["docker.sock", "podman.sock"];

/// Paths of the host. A program that may write to one of them, or to a directory above it, can become root.
const ROOT_PATHS: [&str; 32] = [
    "/etc",
    "/etc/passwd",
    "/etc/shadow",
    "/etc/group",
    "/etc/sudoers",
    "/etc/crontab",
    "/etc/ld.so.preload",
    "/etc/ld.so.conf",
    "/etc/profile",
    "/proc",
    "/sys",
    "/dev",
    "/root",
    "/root/.bashrc",
    "/root/.profile",
    "/boot",
    "/run",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/var/lib/docker",
    "/var/lib/containers",
    "/var/lib/containerd",
    "/var/lib/lxc",
    "/var/spool/cron",
];

/// Directories of the host. A program that may write to one of them, or anywhere below it, can become root.
const ROOT_TREES: [&str; 18] = [
    "/etc/cron.d",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/etc/sudoers.d",
    "/etc/systemd",
    "/etc/ssh",
    "/etc/pam.d",
    "/etc/profile.d",
    "/etc/init.d",
    "/etc/docker",
    "/etc/containers",
    "/root/.ssh",
    "/proc/sys",
    "/sys/fs/cgroup",
    "/sys/kernel",
    "/var/spool/cron/crontabs",
];

/// Capabilities that are as good as root on the host (capabilities(7)).
const ROOT_CAPABILITIES: [&str; 7] = [
    "ALL",
    "SYS_ADMIN",
    "SYS_PTRACE",
    "SYS_MODULE",
    "SYS_RAWIO",
    "DAC_READ_SEARCH",
    "BPF",
];

/// The starts of the names of devices in `/dev` that are disks, or that change disks.
const DISKS: [&str; 14] = [
    "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "dm-", "mapper", "md", "loop", "disk", "sg", "bsg",
    "zfs",
];

/// Devices that are the host's memory and ports.
const MEMORY_DEVICES: [&str; 3] = ["mem", "kmem", "port"];

/// Returns the rights over the host that the engine's answer shows for a container; none for a usual container.
pub fn host_rights(container: &InspectedContainer) -> Vec<HostRight> {
    let given = &container.confinement;
    let mut rights = Vec::new();
    if given.is_privileged {
        rights.push(HostRight::Privileged);
    }
    if given.pid_mode == "host" {
        rights.push(HostRight::HostProcesses);
    }
    for mount in &container.mounts {
        rights.extend(right_of_mount(mount));
    }
    for name in &given.added_capabilities {
        let upper = name.to_uppercase();
        let name = upper.strip_prefix("CAP_").unwrap_or(&upper);
        if ROOT_CAPABILITIES.contains(&name) {
            rights.push(HostRight::Capability(name.to_owned()));
        }
    }
    for device in &given.devices {
        rights.extend(right_of_device(&normalized(&device.host_path)));
    }
    for rule in &given.device_rules {
        rights.extend(right_of_rule(rule));
    }
    if given.has_writable_proc {
        rights.push(HostRight::KernelSettings);
    }
    rights
}

fn right_of_mount(mount: &EngineMount) -> Option<HostRight> {
    if mount.source.is_empty() || mount.kind == "tmpfs" {
        return None;
    }
    right_of_path(normalized(&mount.source), mount.is_writable)
}

/// Returns the right that a mount of this path of the host gives.
pub(super) fn right_of_path(source: PathBuf, is_writable: bool) -> Option<HostRight> {
    let name = source.file_name().and_then(|name| name.to_str());
    if name.is_some_and(|name| ENGINE_SOCKET_NAMES.contains(&name)) {
        return Some(HostRight::ControlSocket(source));
    }
    let mut sockets = CONTROL_SOCKETS.iter().map(Path::new);
    // Elsewhere than in /run, most hosts do not have them, and a directory far above is mounted for other reasons.
    let is_given = |socket: &Path| {
        source == socket
            || socket.parent() == Some(&source)
            || (socket.starts_with("/run") && socket.starts_with(&source))
    };
    if sockets.any(is_given) {
        return Some(HostRight::ControlSocket(source));
    }
    if !is_writable {
        return None;
    }
    let is_above = |path: &&Path| path.starts_with(&source);
    let is_around = |tree: &&Path| source.starts_with(tree) || tree.starts_with(&source);
    let path = ROOT_PATHS.iter().map(Path::new).find(is_above);
    let path = path.or_else(|| ROOT_TREES.iter().map(Path::new).find(is_around));
    path.map(|path| HostRight::WritablePath(path.to_owned()))
}

fn right_of_device(device: &Path) -> Option<HostRight> {
    let Ok(below) = device.strip_prefix("/dev") else {
        // Docker accepts a device file anywhere; then its name does not show what it is.
        return Some(HostRight::Disk(device.to_owned()));
    };
    let name = below.to_str().unwrap_or_default();
    if name.is_empty() || MEMORY_DEVICES.contains(&name) {
        return Some(HostRight::AllDevices);
    }
    let mut disks = DISKS.iter();
    let is_disk = disks.any(|disk| name.starts_with(disk));
    is_disk.then(|| HostRight::Disk(device.to_owned()))
}

/// Interprets a rule of the device cgroup: type `a`, `b` or `c`, `MAJOR:MINOR`, and access. Character devices of
/// major number 1 include the kernel's memory; disks are block devices.
fn right_of_rule(rule: &str) -> Option<HostRight> {
    let mut words = rule.split_whitespace();
    let (kind, numbers) = (words.next()?, words.next().unwrap_or("*:*"));
    let major = numbers.split(':').next().unwrap_or("*");
    match (kind, major) {
        ("c", "*" | "1") | ("a", _) => Some(HostRight::AllDevices),
        ("b", _) => Some(HostRight::Disk(PathBuf::from("/dev"))),
        _ => None,
    }
}

/// Returns a path without `.`, `..` and double slashes, and with `/run` for `/var/run`, which is a link to it.
pub(super) fn normalized(path: &str) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    match clean.strip_prefix("/var/run") {
        Ok(below) => Path::new("/run").join(below),
        Err(_) => clean,
    }
}

impl fmt::Display for HostRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Privileged => f.write_str("it is privileged"),
            Self::HostProcesses => f.write_str("it has the host's processes"),
            Self::ControlSocket(path) => {
                let path = path.display();
                write!(
                    f,
                    "it has {path} of the host, where services of root take orders"
                )
            }
            Self::WritablePath(path) => write!(f, "it may write to {} of the host", path.display()),
            Self::Capability(name) if name == "ALL" => f.write_str("it has all capabilities"),
            Self::Capability(name) => write!(f, "it has the capability {name}"),
            Self::AllDevices => f.write_str("it has all devices or the memory of the host"),
            Self::Disk(path) => write!(f, "it has the disk {} of the host", path.display()),
            Self::KernelSettings => f.write_str("it may change the kernel's settings"),
            Self::UnknownMounts => f.write_str("not all of its mounts can be read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::container_id::EngineContainerId;
    use crate::engines::facts::EngineStatus;
    use crate::engines::inspect::{Confinement, EngineDevice, InspectedState};
    use crate::engines::labels::ContainerLabels;

    fn usual() -> InspectedContainer {
        InspectedContainer {
            id: EngineContainerId::parse(&"ab".repeat(32)).unwrap(),
            name: "web".to_owned(),
            created_ms: None,
            state: InspectedState {
                status: EngineStatus::Running,
                is_running: true,
                is_paused: false,
                pid: Some(1),
                started_ms: None,
                finished_ms: None,
                exit_code: None,
                is_oom_killed: false,
                health: None,
            },
            image: "web:1".to_owned(),
            image_id: None,
            restart_policy: None,
            labels: ContainerLabels::default(),
            ports: Vec::new(),
            mounts: Vec::new(),
            user: String::new(),
            has_tty: false,
            network_mode: "bridge".to_owned(),
            runtime: "runc".to_owned(),
            confinement: Confinement::default(),
        }
    }

    fn mounted(source: &str, is_writable: bool) -> Vec<String> {
        let mut container = usual();
        container.mounts.push(EngineMount {
            kind: "bind".to_owned(),
            source: source.to_owned(),
            destination: "/x".to_owned(),
            is_writable,
        });
        let rights = host_rights(&container);
        rights.iter().map(HostRight::to_string).collect()
    }

    fn given(confinement: Confinement) -> Vec<HostRight> {
        host_rights(&InspectedContainer {
            confinement,
            ..usual()
        })
    }

    #[test]
    fn a_usual_container_has_none() {
        assert_eq!(host_rights(&usual()), []);
        for source in [
            "/srv/media",
            "/etc/localtime",
            "/etc/letsencrypt",
            "/root/appdata",
            "/home/me",
            "/dev/dri",
            "/sys/class/gpio",
            "/var/lib/docker/volumes/x/_data",
            "/var/log",
            "/run/udev",
            "/usr/share/zoneinfo",
            "/etcetera",
            "",
        ] {
            assert_eq!(mounted(source, true), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn a_writable_path_of_root_and_each_directory_above_it_count() {
        for source in [
            "/etc",
            "/proc",
            "/sys",
            "/dev",
            "/root",
            "/boot",
            "/var/lib/docker",
            "/var/lib/containers",
            "/var/lib",
            "/usr",
            "/usr/local",
            "/etc/",
            "//etc",
            "/srv/../etc",
            "/etc/systemd/system",
            "/etc/cron.d/x",
            "/root/.ssh",
            "/proc/sys/kernel",
        ] {
            let rights = mounted(source, true);
            assert_eq!(rights.len(), 1, "{source}");
            assert!(rights[0].starts_with("it may write to /"), "{rights:?}");
        }
        for source in [
            "/etc", "/proc", "/sys", "/boot", "/usr", "/etc/ssh", "/var/lib",
        ] {
            assert_eq!(mounted(source, false), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn a_socket_that_takes_orders_counts_also_read_only() {
        for source in [
            "/run/docker.sock",
            "/var/run/docker.sock",
            "/run",
            "/var/run",
            "/var/run/",
            "/",
            "/var/run/../run",
            "/run/podman",
            "/run/user/1000/podman/podman.sock",
            "/srv/docker.sock",
            "/run/dbus",
            "/run/containerd/containerd.sock",
        ] {
            for is_writable in [false, true] {
                let rights = mounted(source, is_writable);
                assert_eq!(rights.len(), 1, "{source}");
                assert!(
                    rights[0].contains("services of root take orders"),
                    "{rights:?}"
                );
            }
        }
    }

    #[test]
    fn capabilities_count_in_all_spellings() {
        let added = |name: &str| {
            given(Confinement {
                added_capabilities: vec![name.to_owned()],
                ..Confinement::default()
            })
        };
        for name in ["SYS_ADMIN", "CAP_SYS_ADMIN", "sys_admin", "cap_sys_admin"] {
            assert_eq!(added(name), [HostRight::Capability("SYS_ADMIN".to_owned())]);
        }
        for name in [
            "ALL",
            "SYS_PTRACE",
            "SYS_MODULE",
            "DAC_READ_SEARCH",
            "SYS_RAWIO",
        ] {
            assert_eq!(added(name).len(), 1, "{name}");
        }
        for name in ["NET_ADMIN", "NET_RAW", "CHOWN", "SYS_NICE", ""] {
            assert_eq!(added(name), [], "{name}");
        }
    }

    #[test]
    fn disks_and_memory_count_and_other_devices_do_not() {
        let device = |path: &str| {
            given(Confinement {
                devices: vec![EngineDevice {
                    host_path: path.to_owned(),
                    container_path: "/dev/x".to_owned(),
                }],
                ..Confinement::default()
            })
        };
        for path in ["/dev", "/dev/", "/dev/mem", "/dev/./kmem"] {
            assert_eq!(device(path), [HostRight::AllDevices], "{path}");
        }
        for path in [
            "/dev/sda",
            "/dev/nvme0n1",
            "/dev/mapper/root",
            "/dev/disk/by-id/x",
            "/srv/node",
        ] {
            assert!(matches!(device(path)[..], [HostRight::Disk(_)]), "{path}");
        }
        for path in [
            "/dev/dri",
            "/dev/ttyUSB0",
            "/dev/net/tun",
            "/dev/snd",
            "/dev/kvm",
            "/dev/fuse",
            "/dev/bus/usb",
        ] {
            assert_eq!(device(path), [], "{path}");
        }
        let rule = |rule: &str| {
            given(Confinement {
                device_rules: vec![rule.to_owned()],
                ..Confinement::default()
            })
        };
        assert_eq!(rule("a *:* rwm"), [HostRight::AllDevices]);
        assert_eq!(rule("c *:* rwm"), [HostRight::AllDevices]);
        assert_eq!(rule("a"), [HostRight::AllDevices]);
        assert_eq!(rule("b 8:* rwm"), [HostRight::Disk("/dev".into())]);
        for usb in ["c 188:* rwm", "c 13:* rmw", "c 189:0 r", ""] {
            assert_eq!(rule(usb), [], "{usb}");
        }
    }

    #[test]
    fn other_options_of_root_count() {
        let all = given(Confinement {
            is_privileged: true,
            pid_mode: "host".to_owned(),
            has_writable_proc: true,
            ..Confinement::default()
        });
        let phrases: Vec<String> = all.iter().map(HostRight::to_string).collect();
        assert_eq!(
            phrases,
            [
                "it is privileged",
                "it has the host's processes",
                "it may change the kernel's settings"
            ]
        );
        for pid_mode in ["", "private", "container:abc"] {
            let own = Confinement {
                pid_mode: pid_mode.to_owned(),
                ..Confinement::default()
            };
            assert_eq!(given(own), []);
        }
    }
}
