//! Commands in real containers that try to escape the end of their call: the helper still finds and kills them.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::container::Containers;
use crate::support::helper::{Helper, LONG_MS, container, host};
use crate::support::machine::{
    IN_TIME, call_cgroups, cgroup2, is_alive, marked, marker, skip, sleeping, wait_until,
};

/// Makes a cgroup beside that of the call, and a shell function to enter it.
const LEAVE: &str = "busybox mkdir -p /tmp/cg; busybox mount -t cgroup2 none /tmp/cg 2>/dev/null; \
    busybox mkdir -p /tmp/cg/away; leave() { echo 0 > /tmp/cg/away/cgroup.procs; }; ";

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// The command has killed its reaper.
    ReaperLost,
    /// The command exited by itself.
    Exited,
    /// The command ran until it was cancelled.
    Cancelled,
}

/// The way that needs the pipe of the reaper.
pub const FORGES_REPORTS: &str = "reports in the name of a reaper that lives";

/// Ways to escape, with `MARK` in place of the marker, and how the call ends. All of them leave the cgroup first.
pub const WAYS: &[(&str, &str, End)] = &[
    (
        "kills the reaper",
        "leave; (setsid sleep MARK &); kill -9 $PPID; sleep MARK",
        End::ReaperLost,
    ),
    (
        "mounts over /proc",
        "leave; (setsid sleep MARK >/dev/null 2>&1 &); busybox mount -t tmpfs none /proc; exit 0",
        End::Exited,
    ),
    (
        "mounts over /proc and kills the reaper",
        "leave; (setsid sleep MARK &); busybox mount -t tmpfs none /proc; kill -9 $PPID; sleep MARK",
        End::ReaperLost,
    ),
    (
        "takes the reaper along and stops it",
        "leave; echo $PPID > /tmp/cg/away/cgroup.procs; (setsid sleep MARK &); kill -STOP $PPID; sleep MARK",
        End::Cancelled,
    ),
    (
        "forks twice into another session",
        "(setsid sh -c 'echo 0 > /tmp/cg/away/cgroup.procs; setsid sleep MARK & exec sleep MARK' &); sleep 0.3; \
         kill -9 $PPID; sleep MARK",
        End::ReaperLost,
    ),
    (
        "takes another name",
        "leave; (setsid sh -c 'echo lxc-start > /proc/self/comm; while :; do sleep MARK; done' &); sleep 0.3; \
         kill -9 $PPID; sleep MARK",
        End::ReaperLost,
    ),
    (
        "enters pid and mount namespaces of its own",
        "leave; (busybox unshare -p -m -f setsid sleep MARK &); sleep 0.3; kill -9 $PPID; sleep MARK",
        End::ReaperLost,
    ),
    (
        "enters a user namespace of its own",
        "leave; (busybox unshare -U setsid sleep MARK &); sleep 0.3; kill -9 $PPID; sleep MARK",
        End::ReaperLost,
    ),
    (
        "clears its environment",
        "leave; (env -i setsid sleep MARK &); sleep 1; kill -9 $PPID; sleep MARK",
        End::ReaperLost,
    ),
    (
        "forks without end",
        "leave; (setsid sh -c 'while :; do (setsid sleep MARK &); done' &); sleep 0.3; kill -9 $PPID; sleep MARK",
        End::ReaperLost,
    ),
    (
        "hops from one process to the next",
        "leave; (setsid sh -c 'hop() { hop & }; hop' MARK &); sleep 0.3; kill -9 $PPID; sleep MARK",
        End::ReaperLost,
    ),
    (
        "stops itself in the background",
        "leave; (setsid sh -c 'kill -STOP $$; sleep MARK' &); sleep 0.3; kill -9 $PPID; sleep MARK",
        End::ReaperLost,
    ),
    (
        "writes other login users",
        "leave; for user in 4294967295 7 0; do echo $user > /proc/self/loginuid; done; (setsid sleep MARK &); \
         kill -9 $PPID; sleep MARK",
        End::ReaperLost,
    ),
    (
        "reports in the name of the reaper",
        "leave; (setsid sleep MARK &); echo '{\"ended\":{\"exited\":{\"code\":0}}}' > /proc/$PPID/fd/4; \
         kill -9 $PPID; sleep MARK",
        End::ReaperLost,
    ),
    (
        FORGES_REPORTS,
        "leave; (setsid sleep MARK &); echo '{\"ended\":{\"exited\":{\"code\":0}}}' > /proc/$PPID/fd/4; sleep MARK",
        End::ReaperLost,
    ),
];

/// Whether the kernel gives each call its own audit session.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Session {
    Own,
    /// The helper is in a login session that neither it nor its calls may leave.
    Shared,
}

/// A running container of the test, and its root directory.
struct Ground {
    own: Containers,
    root: PathBuf,
}

impl Ground {
    fn new() -> Option<Self> {
        if cgroup2().is_none() {
            skip("no cgroup v2");
            return None;
        }
        let mut own = Containers::new()?;
        let root = own.make("wren");
        own.tool("lxc-start", "wren", &[]);
        own.until_ready("wren");
        Some(Self { own, root })
    }

    fn helper(&self, session: Session) -> Option<Helper> {
        match session {
            Session::Own if !Path::new("/proc/self/sessionid").exists() => {
                skip("this kernel has no audit, so no call has a session of its own");
                None
            }
            Session::Own => Some(Helper::start(self.own.lxcpath())),
            Session::Shared => Some(self.helper_in_a_login_session()),
        }
    }

    fn helper_in_a_login_session(&self) -> Helper {
        let program = self.own.lxcpath().join("helper");
        let gatewren = env!("CARGO_BIN_EXE_gatewren");
        let script = format!(
            "#!/bin/sh\n[ ! -e /proc/self/loginuid ] || echo 0 > /proc/self/loginuid\n\
             exec setpriv --bounding-set=-audit_control {gatewren} \"$@\"\n"
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Helper::start_program(&program, self.own.lxcpath(), |_| {})
    }

    /// Starts a process in the container that no call has started.
    fn service(&self, line: &str) -> Child {
        let mut attach = Command::new("lxc-attach");
        attach.arg("-P").arg(self.own.lxcpath());
        attach.args(["-n", "wren", "--", "/bin/sh", "-c", line]);
        attach.stdin(Stdio::null()).spawn().unwrap()
    }
}

/// Returns a container, and a helper whose calls have sessions of this kind; `None` where these are not available.
fn place(session: Session) -> Option<(Ground, Helper)> {
    let ground = Ground::new()?;
    let helper = ground.helper(session)?;
    Some((ground, helper))
}

/// Returns a container and a helper for each kind of session.
fn places() -> impl Iterator<Item = (Ground, Helper)> {
    [Session::Own, Session::Shared]
        .into_iter()
        .filter_map(place)
}

/// Tries one way in a new container: a command that mounts over /proc makes it unusable for the next.
fn hide_in_a_new_container(session: Session, way: &(&str, &str, End)) {
    if let Some((_ground, helper)) = place(session) {
        hide_and_end(&helper, |line| container("wren", line), way);
    }
}

/// Tries one way in a container, and asserts that nothing is left when the answer comes. `operation` makes a shell line a
/// command there.
pub fn hide_and_end(
    helper: &Helper,
    operation: impl Fn(&str) -> Value,
    (what, line, end): &(&str, &str, End),
) {
    let marker = marker();
    let line = format!("{LEAVE}{}", line.replace("MARK", &marker));
    let call = helper.ask(&operation(&line), LONG_MS);
    if *end == End::Cancelled {
        wait_until(what, IN_TIME, || sleeping(&marker).len() == 2);
        assert!(sleeping(&marker).iter().all(|pid| has_left(*pid)), "{what}");
        call.cancel();
    }
    let ending = call.finish().ending;
    let left = marked(&marker);
    assert!(
        left.is_empty(),
        "{what}: {left:?} live when the answer comes"
    );
    let expected = match end {
        End::ReaperLost => json!({ "killed": { "why": "reaper_lost" } }),
        End::Exited => json!({ "exited": { "code": 0 } }),
        End::Cancelled => json!({ "killed": { "why": "cancelled" } }),
    };
    assert_eq!(ending, expected, "{what}");
    wait_until("its cgroups are gone", IN_TIME, || {
        call_cgroups(helper.pid()).is_empty()
    });
}

/// Asserts that no process of a call lives after its response.
fn nothing_lives(marker: &str) {
    let left = marked(marker);
    assert!(left.is_empty(), "{left:?} live when the answer has come");
}

fn has_left(pid: i32) -> bool {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    groups.lines().any(|line| line.ends_with("/away"))
}

#[test]
fn what_leaves_its_cgroup_and_hides_is_killed() {
    for way in WAYS {
        hide_in_a_new_container(Session::Own, way);
    }
}

#[test]
fn what_leaves_its_cgroup_and_hides_is_killed_without_a_session_of_its_own_too() {
    for way in WAYS {
        hide_in_a_new_container(Session::Shared, way);
    }
}

#[test]
fn what_another_process_moved_out_of_its_cgroup_is_killed() {
    for (ground, helper) in places() {
        // As systemd-run --scope and logind do: another process moves it.
        let marker = marker();
        let line = format!(
            "{LEAVE}(setsid sleep {marker} &); until [ -e /tmp/moved ]; do sleep 0.1; done; kill -9 $PPID; \
             sleep {marker}"
        );
        let call = helper.ask(&container("wren", &line), LONG_MS);
        wait_until("it runs", IN_TIME, || sleeping(&marker).len() == 1);
        let groups = ground.root.join("tmp/cg/away/cgroup.procs");
        assert!(!groups.exists(), "the mount is the container's own");
        let pid = sleeping(&marker)[0];
        let away = PathBuf::from(format!("/proc/{pid}/root/tmp/cg/away/cgroup.procs"));
        fs::write(away, pid.to_string()).unwrap();
        assert!(has_left(pid));
        fs::write(ground.root.join("tmp/moved"), "").unwrap();
        let ending = call.finish().ending;
        assert_eq!(ending, json!({ "killed": { "why": "reaper_lost" } }));
        nothing_lives(&marker);
    }
}

#[test]
fn what_entered_a_namespace_of_another_process_is_killed_and_that_process_lives() {
    for (ground, helper) in places() {
        let (service, marker) = (marker(), marker());
        let mut attached = ground.service(&format!("busybox unshare -p -f sleep {service}"));
        wait_until("the service runs", IN_TIME, || {
            sleeping(&service).len() == 1
        });
        // Its orphans become children of the namespace's first process, and not of the reaper.
        let line = format!(
            "for it in /proc/[0-9]*; do case $(busybox tr '\\0' ' ' < $it/cmdline) in 'sleep {service} ') \
             busybox nsenter -t ${{it#/proc/}} -p sh -c '(setsid sleep {marker} >/dev/null 2>&1 &); sleep 0.3' ;; \
             esac; done 2>/dev/null; exit 0"
        );
        let finished = helper.run(&container("wren", &line));
        assert_eq!(finished.ending, json!({ "exited": { "code": 0 } }));
        nothing_lives(&marker);
        assert_eq!(sleeping(&service).len(), 1, "it is not of the call");
        end(&mut attached);
    }
}

#[test]
fn a_reaper_that_is_traced_keeps_nothing_alive() {
    for (_ground, helper) in places() {
        let marker = marker();
        let line = format!("{LEAVE}leave; (setsid sleep {marker} &); sleep {marker}");
        let call = helper.ask(&container("wren", &line), LONG_MS);
        wait_until("both run", IN_TIME, || sleeping(&marker).len() == 2);
        let reaper = Pid::from_raw(reaper_below(helper.pid()).expect("a reaper"));
        ptrace::attach(reaper).unwrap();
        waitpid(reaper, Some(WaitPidFlag::__WALL)).unwrap();
        call.cancel();
        let ending = call.finish().ending;
        assert_eq!(ending, json!({ "killed": { "why": "cancelled" } }));
        nothing_lives(&marker);
        waitpid(reaper, Some(WaitPidFlag::__WALL)).unwrap();
    }
}

/// Returns the reaper of the helper's only call.
fn reaper_below(helper: i32) -> Option<i32> {
    let mut next = vec![helper];
    while let Some(pid) = next.pop() {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if name.trim() == "gatewren-reaper" {
            return Some(pid);
        }
        for thread in fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
        {
            let children = thread.unwrap().path().join("children");
            let children = fs::read_to_string(children).unwrap_or_default();
            next.extend(
                children
                    .split_whitespace()
                    .filter_map(|n| n.parse::<i32>().ok()),
            );
        }
    }
    None
}

#[test]
fn on_the_host_what_leaves_its_cgroup_and_takes_the_name_of_a_daemon_is_killed() {
    let Some(mount) = cgroup2() else {
        return skip("no cgroup v2");
    };
    let marker = marker();
    let away = mount.join(format!("gatewren-it-away-{marker}"));
    let Ok(()) = fs::create_dir(&away) else {
        return skip("the cgroup tree cannot be written");
    };
    let folder = std::env::temp_dir().join(format!("gatewren-it-{marker}"));
    fs::create_dir(&folder).unwrap();
    let helper = Helper::start(Path::new("/nonexistent"));
    // The helper spares LXC's daemons, which it recognises by the names of their files.
    let line = format!(
        "cp /bin/sleep {folder}/lxc-start; echo 0 > {away}/cgroup.procs; (setsid {folder}/lxc-start {marker} &); \
         sleep 0.3; kill -9 $PPID; sleep {marker}",
        folder = folder.display(),
        away = away.display()
    );
    let ending = helper.run(&host(&line)).ending;
    assert_eq!(ending, json!({ "killed": { "why": "reaper_lost" } }));
    nothing_lives(&marker);
    wait_until("it is empty", IN_TIME, || fs::remove_dir(&away).is_ok());
    fs::remove_dir_all(&folder).unwrap();
}

/// The container's services fork while the call runs and hides.
#[test]
fn services_and_other_calls_live_on_when_a_call_that_hid_is_killed() {
    for (ground, helper) in places() {
        let (service, other, hidden) = (marker(), marker(), marker());
        // One of its workers is forked while the call runs, and its parent ends.
        let mut attached = ground.service(&format!(
            "until [ -e /tmp/go ]; do sleep 0.05; done; (setsid sleep {service} &); exec sleep {service}"
        ));
        let beside = helper.ask(&container("wren", &format!("sleep {other}")), LONG_MS);
        wait_until("the other call runs", IN_TIME, || {
            sleeping(&other).len() == 1
        });
        let line = format!(
            "{LEAVE}leave; : > /tmp/go; (setsid sleep {hidden} &); until [ -e /tmp/end ]; do sleep 0.05; done; \
             kill -9 $PPID; sleep {hidden}"
        );
        let call = helper.ask(&container("wren", &line), LONG_MS);
        wait_until("the workers run", IN_TIME, || sleeping(&service).len() == 2);
        fs::write(ground.root.join("tmp/end"), "").unwrap();
        let ending = call.finish().ending;
        assert_eq!(ending, json!({ "killed": { "why": "reaper_lost" } }));
        nothing_lives(&hidden);
        assert_eq!(sleeping(&service).len(), 2, "services stay");
        assert_eq!(sleeping(&other).len(), 1, "other calls stay");
        assert_eq!(ground.own.state("wren"), "RUNNING");
        drop(beside);
        end(&mut attached);
    }
}

/// gatewren-security(7) names this as out of reach.
#[test]
fn what_the_containers_own_service_was_asked_to_start_lives_on() {
    for (ground, helper) in places() {
        let marker = marker();
        let mut attached = ground.service(&format!(
            "until [ -e /tmp/order ]; do sleep 0.05; done; sleep {marker} & : > /tmp/begun; wait"
        ));
        let line = ": > /tmp/order; until [ -e /tmp/begun ]; do sleep 0.05; done; exit 3";
        let ending = helper.run(&container("wren", line)).ending;
        assert_eq!(ending, json!({ "exited": { "code": 3 } }));
        wait_until("the service runs", IN_TIME, || sleeping(&marker).len() == 1);
        end(&mut attached);
    }
}

#[test]
fn a_lost_reaper_is_a_warning_with_the_operation() {
    let Some(ground) = Ground::new() else {
        return;
    };
    let log = ground.own.lxcpath().join("log");
    let to = File::create(&log).unwrap();
    let helper = Helper::start_as(ground.own.lxcpath(), |command| {
        command.stderr(to);
    });
    let said = || fs::read_to_string(&log).unwrap();
    let quiet = helper
        .run(&container("wren", "(setsid sleep 600 &); exit 0"))
        .ending;
    assert_eq!(quiet, json!({ "exited": { "code": 0 } }));
    assert!(
        !said().contains("survived") && !said().contains("was lost"),
        "{}",
        said()
    );
    let killed: Value = helper
        .run(&container("wren", "kill -9 $PPID; sleep 600"))
        .ending;
    assert_eq!(killed, json!({ "killed": { "why": "reaper_lost" } }));
    let line = said();
    let line = line
        .lines()
        .find(|line| line.contains("the reaper of a call was lost"));
    let line = line.expect("a warning");
    assert!(
        line.contains("WARN") && line.contains("container_command"),
        "{line}"
    );
}

/// Kills the attached process of a service. What it started is in the container, which is deleted afterwards.
fn end(attached: &mut Child) {
    let pid = i32::try_from(attached.id()).unwrap();
    assert!(is_alive(pid));
    attached.kill().unwrap();
    attached.wait().unwrap();
}
