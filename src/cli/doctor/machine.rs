//! Checks the host itself: clock, cgroups, `AppArmor`, disk space, LXC, mDNS, and Proxmox's quorum.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::super::console::program::is_there;
use super::finding::Finding;
use gatewren_base::config::Settings;
use gatewren_base::sys::{
    LIMITING_CONTROLLERS, cgroup2_mount, clock_is_synchronised, disk_space, files, is_root,
    limiting_controllers,
};

/// Free space is low below both values, in bytes and in percent.
const LITTLE: (u64, u64) = (1 << 30, 10);

/// Below this many bytes, databases and audit soon cannot be written, and calls are rejected.
const TOO_LITTLE: u64 = 100 << 20;

/// The status of the cluster of Proxmox VE (pmxcfs(8)).
const MEMBERS: &str = "/etc/pve/.members";

/// Runs all checks.
pub fn look(settings: &Settings) -> Vec<Finding> {
    let mut found = vec![
        clock(),
        cgroups(),
        limits(cgroup2_mount().as_deref()),
        audit_sessions(Path::new("/proc/self/sessionid")),
        apparmor(),
        space(&settings.state_dir),
        lxc(),
        mdns(),
    ];
    found.extend(quorum(Path::new(MEMBERS)));
    found
}

fn clock() -> Finding {
    match clock_is_synchronised() {
        Some(true) => Finding::good("clock", "the clock is synchronised"),
        Some(false) => Finding::warning(
            "clock",
            "no time synchronisation is active; tokens and certificates expire by this clock",
            "apt install systemd-timesyncd (or chrony), then timedatectl set-ntp true",
        ),
        None => Finding::skipped(
            "clock",
            "the kernel does not report whether the clock is synchronised",
        ),
    }
}

fn cgroups() -> Finding {
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        return Finding::good(
            "cgroups",
            "version 2: a call and all its child processes are killed in one step",
        );
    }
    let remedy = "boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line";
    match cgroup2_mount() {
        Some(place) => Finding::warning(
            "cgroups",
            format!(
                "version 1, with version 2 at {}: limits of single calls may be missing",
                place.display()
            ),
            remedy,
        ),
        None => Finding::warning(
            "cgroups",
            "only version 1: the child processes of a call are found by their parents, not in one step",
            remedy,
        ),
    }
}

/// Checks whether the kernel can limit what a call uses; Raspberry Pi OS boots without the memory controller.
fn limits(mount: Option<&Path>) -> Finding {
    let Some(mount) = mount else {
        return Finding::skipped("limits", "calls have no limits without cgroups version 2");
    };
    let there = limiting_controllers(mount);
    let missing = LIMITING_CONTROLLERS
        .iter()
        .filter(|one| !there.contains(one));
    let missing: Vec<&str> = missing.copied().collect();
    if missing.is_empty() {
        return Finding::good(
            "limits",
            "the kernel can limit memory, processes and processor time of a call",
        );
    }
    Finding::warning(
        "limits",
        format!(
            "cgroups version 2 lacks these controllers, so calls have no such limit: {}",
            missing.join(", ")
        ),
        "add cgroup_enable=memory (and the other missing controllers) to the kernel's command line, and reboot",
    )
}

/// Checks whether a process that left the cgroup of its call is identified by a number that it cannot change.
fn audit_sessions(file: &Path) -> Finding {
    if file.exists() {
        return Finding::good(
            "sessions",
            "each call is an audit session, so all its processes are found",
        );
    }
    Finding::warning(
        "sessions",
        "this kernel has no audit: a call's process is not found if it leaves its cgroup, kills its reaper and \
         clears its environment at once",
        "use a kernel with CONFIG_AUDIT, such as Debian's",
    )
}

fn apparmor() -> Finding {
    let enabled = fs::read_to_string("/sys/module/apparmor/parameters/enabled");
    if !enabled.is_ok_and(|text| text.trim() == "Y") {
        return Finding::skipped("apparmor", "this kernel runs without AppArmor");
    }
    let profiles = Path::new("/sys/kernel/security/apparmor/profiles");
    let Ok(text) = files::read_bounded(profiles, 1 << 20) else {
        return Finding::skipped("apparmor", "only root can read its profiles");
    };
    let text = String::from_utf8_lossy(&text);
    match text
        .lines()
        .find(|line| line.starts_with("gatewren-front "))
    {
        Some(line) => Finding::good("apparmor", format!("the profile is loaded: {line}")),
        None => Finding::warning(
            "apparmor",
            "the profile of the front is not loaded",
            "apparmor_parser -r /etc/apparmor.d/gatewren-front; systemctl restart gatewren",
        ),
    }
}

fn space(state_dir: &Path) -> Finding {
    let shown = state_dir.display();
    let Ok(space) = disk_space(state_dir) else {
        return Finding::skipped("disk", format!("cannot read the free space at {shown}"));
    };
    // The service is an ordinary user: what the file system reserves for root is not free for it, nor in df.
    let free = space.available_bytes;
    let reserved = space.free_bytes.saturating_sub(free);
    let total = space.total_bytes.saturating_sub(reserved).max(1);
    let percent = u128::from(free) * 100 / u128::from(total);
    let seen = format!("{} MB free ({percent} %) at {shown}", free / 1_000_000);
    let remedy = "free some space, for example with apt clean and journalctl --vacuum-size=200M";
    if free < TOO_LITTLE {
        Finding::problem("disk", seen, remedy)
    } else if free < LITTLE.0 && percent < u128::from(LITTLE.1) {
        Finding::warning("disk", seen, remedy)
    } else {
        Finding::good("disk", seen)
    }
}

fn lxc() -> Finding {
    let programs = ["lxc-attach", "lxc-info", "lxc-ls", "lxc-config"];
    let (there, missing): (Vec<&str>, Vec<&str>) =
        programs.iter().partition(|program| is_there(program));
    if missing.is_empty() {
        Finding::good("lxc", "its programs are installed")
    } else if there.is_empty() {
        Finding::skipped("lxc", "LXC is not installed")
            .with("apt install lxc, if you want its containers")
    } else {
        let seen = format!("{} is missing", missing.join(", "));
        Finding::problem("lxc", seen, "apt install --reinstall lxc")
    }
}

fn mdns() -> Finding {
    let announced = Path::new("/etc/avahi/services/gatewren.service").exists();
    let avahi = Path::new("/run/avahi-daemon/socket").exists();
    match (announced, avahi) {
        (true, true) => Finding::good("mdns", "the server is announced on the local network"),
        (true, false) => Finding::warning(
            "mdns",
            "the announcement is enabled, but avahi-daemon is not running",
            "apt install avahi-daemon; systemctl start avahi-daemon",
        ),
        (false, _) => Finding::skipped("mdns", "the server is not announced on the local network")
            .with("gatewren mdns enable, if you want this"),
    }
}

/// Without quorum, nothing in /etc/pve can be written, so no container can be changed.
fn quorum(members: &Path) -> Option<Finding> {
    if !members.exists() {
        // Not a Proxmox node.
        return None;
    }
    let text = files::read_bounded(members, 1 << 20).ok();
    let read: Option<Value> = text.and_then(|text| serde_json::from_slice(&text).ok());
    let Some(read) = read else {
        let seen = "cannot read the state of the cluster";
        return Some(Finding::skipped("quorum", seen).with(if is_root() {
            "pvecm status"
        } else {
            "run this as root"
        }));
    };
    let quorate = read.pointer("/cluster/quorate").and_then(Value::as_i64);
    Some(match quorate {
        None => Finding::good("quorum", "this Proxmox node is not in a cluster"),
        Some(0) => Finding::problem(
            "quorum",
            "the Proxmox cluster has no quorum: containers cannot be changed",
            "pvecm status; bring the other nodes back",
        ),
        Some(_) => Finding::good("quorum", "the Proxmox cluster has quorum"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;
    use gatewren_base::sys::Scratch;

    #[test]
    fn quorum_is_what_proxmox_says() {
        let scratch = Scratch::new();
        let file = scratch.join(".members");
        assert_eq!(quorum(&file), None);
        for (text, state) in [
            (
                r#"{"nodename":"a","cluster":{"quorate":1}}"#,
                FindingState::Good,
            ),
            (
                r#"{"nodename":"a","cluster":{"quorate":0}}"#,
                FindingState::Problem,
            ),
            (r#"{"nodename":"a"}"#, FindingState::Good),
            ("nothing", FindingState::Skipped),
        ] {
            fs::write(&file, text).unwrap();
            assert_eq!(quorum(&file).unwrap().state, state, "{text}");
        }
    }

    #[test]
    fn a_controller_that_is_missing_is_a_warning_that_names_it() {
        let scratch = Scratch::new();
        let file = scratch.join("cgroup.controllers");
        let mount = file.parent().unwrap();
        fs::write(&file, "cpuset cpu io memory pids\n").unwrap();
        assert_eq!(limits(Some(mount)).state, FindingState::Good);
        fs::write(&file, "cpuset cpu io pids\n").unwrap();
        let found = limits(Some(mount));
        assert_eq!(found.state, FindingState::Warning);
        assert!(found.seen.ends_with(": memory"), "{}", found.seen);
        assert_eq!(limits(None).state, FindingState::Skipped);
    }

    #[test]
    fn a_kernel_without_audit_is_a_warning() {
        let scratch = Scratch::new();
        let file = scratch.join("sessionid");
        assert_eq!(audit_sessions(&file).state, FindingState::Warning);
        fs::write(&file, "1").unwrap();
        assert_eq!(audit_sessions(&file).state, FindingState::Good);
    }

    #[test]
    fn space_is_measured_where_the_state_is() {
        let found = space(Path::new("/proc/self/no-such-place"));
        assert_eq!(found.state, FindingState::Skipped);
        assert!(space(Path::new("/")).seen.contains("MB free"));
    }
}
