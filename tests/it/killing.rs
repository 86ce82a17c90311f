//! When a call ends, by any cause, no process that it started is left: on the host and in real containers.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::engines::{Engine, EngineKind};
use crate::support::helper::{Helper, LONG_MS, container, host};
use crate::support::kill_case::{CallsEnd, KillCase, MarkedCommand};
use crate::support::machine::{
    IN_TIME, call_cgroups, holds_within, lxcpath, marked, marker, runs, skip, sleeping, wait_until,
    with_time_enough,
};

/// The commands, with `MARK` in place of the marker, and the minimum number of marked processes of each.
const COMMANDS: &[(&str, &str, usize)] = &[
    ("foreground", "sleep MARK", 1),
    ("background", "sleep MARK & sleep MARK & wait", 2),
    (
        "double fork",
        "(setsid sh -c 'setsid sleep MARK & sleep MARK' &) ; sleep MARK",
        3,
    ),
    (
        "deaf to signals",
        "trap '' TERM HUP INT QUIT; setsid sleep MARK & sleep MARK",
        2,
    ),
    (
        "no environment",
        "(env -i setsid sleep MARK &) ; exec env -i sleep MARK",
        2,
    ),
    ("holds stdout", "echo said; sleep MARK & sleep MARK", 2),
    (
        "storm of 200",
        "i=0; while [ $i -lt 200 ]; do (setsid sleep MARK &) ; i=$((i+1)); done; sleep MARK",
        201,
    ),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Host,
    Container,
}

/// Makes the commands with new marks.
fn commands(place: Place) -> Vec<MarkedCommand> {
    let made = COMMANDS.iter().map(|(what, line, processes)| {
        let mark = marker();
        let line = line.replace("MARK", &mark);
        MarkedCommand {
            what,
            mark,
            operation: match place {
                Place::Host => host(&line),
                Place::Container => container("alpha", &line),
            },
            processes: *processes,
        }
    });
    made.collect()
}

fn end_all(lxcpath: &Path, place: Place, end: CallsEnd) {
    let case = KillCase {
        start: &|end| match end {
            CallsEnd::FrontSigkill => Helper::start_with_front(lxcpath),
            _ => Helper::start(lxcpath),
        },
        commands: &|| commands(place),
        running: sleeping,
        left: marked,
    };
    case.run(end);
}

macro_rules! matrix {
    ($($test:ident: $place:ident $end:ident;)*) => {$(
        #[test]
        fn $test() {
            let path = match Place::$place {
                Place::Host => Some("/nonexistent".into()),
                Place::Container => lxcpath(),
            };
            if let Some(path) = path {
                end_all(&path, Place::$place, CallsEnd::$end);
            }
        }
    )*};
}

matrix! {
    on_the_host_a_timeout_leaves_nothing: Host Timeout;
    on_the_host_a_closed_connection_leaves_nothing: Host ConnectionClosed;
    on_the_host_sigterm_of_the_helper_leaves_nothing: Host HelperSigterm;
    on_the_host_sigkill_of_the_helper_leaves_nothing: Host HelperSigkill;
    on_the_host_sigkill_of_the_front_leaves_nothing: Host FrontSigkill;
    in_a_container_a_timeout_leaves_nothing: Container Timeout;
    in_a_container_a_closed_connection_leaves_nothing: Container ConnectionClosed;
    in_a_container_sigterm_of_the_helper_leaves_nothing: Container HelperSigterm;
    in_a_container_sigkill_of_the_helper_leaves_nothing: Container HelperSigkill;
    in_a_container_sigkill_of_the_front_leaves_nothing: Container FrontSigkill;
}

/// A helper, and the function that makes a shell line an operation there.
type Ground = (Helper, fn(&str) -> Value);

/// Returns the host, and a container of each runtime that is there.
fn places() -> Vec<Ground> {
    let mut places: Vec<Ground> = vec![(Helper::start(Path::new("/nonexistent")), host)];
    if let Some(path) = lxcpath() {
        places.push((Helper::start(&path), |line| container("alpha", line)));
    }
    if let Some(docker) = Engine::shared(EngineKind::Docker) {
        places.push((docker.helper(), |line| container("docker:alpha", line)));
    }
    if let Some(podman) = Engine::shared(EngineKind::Podman) {
        places.push((podman.helper(), |line| container("podman:alpha", line)));
    }
    places
}

#[test]
fn a_command_that_ended_is_answered_at_once_though_its_child_holds_the_pipe() {
    for (helper, command) in places() {
        let marker = marker();
        let line = format!("sleep {marker} & (setsid sleep {marker} &) ; echo done; exit 7");
        let finished = helper.run(&command(&line));
        assert_eq!(finished.ending, json!({ "exited": { "code": 7 } }));
        assert_eq!(finished.stdout(), "done\n");
        assert!(
            marked(&marker).is_empty(),
            "the answer comes after the killing"
        );
        assert!(call_cgroups(helper.pid()).is_empty());
    }
}

#[test]
fn a_cancelled_call_still_hears_what_was_printed() {
    for (helper, command) in places() {
        let marker = marker();
        let call = helper.ask(
            &command(&format!("echo before; exec sleep {marker}")),
            LONG_MS,
        );
        // The shell's arguments contain the marker too, even before it has printed.
        wait_until("it has printed", IN_TIME, || runs(&["sleep", &marker]));
        call.cancel();
        let finished = call.finish();
        assert_eq!(finished.ending, json!({ "killed": { "why": "cancelled" } }));
        assert_eq!(finished.stdout(), "before\n");
        assert!(marked(&marker).is_empty());
    }
}

#[test]
fn too_much_output_kills_and_is_cut_to_the_byte() {
    for (helper, command) in places() {
        let marker = marker();
        let line = format!("setsid sleep {marker} & while :; do echo 0123456789; done");
        let limits = json!({ "timeout_ms": LONG_MS, "output_bytes": 100_000, "processes": 10 });
        let finished = helper.ask_with(&command(&line), &limits).finish();
        assert_eq!(finished.ending, json!({ "killed": { "why": "output" } }));
        assert_eq!(finished.stdout.len() + finished.stderr.len(), 100_000);
        assert!(marked(&marker).is_empty());
    }
}

#[test]
fn a_caller_that_does_not_read_cannot_outlast_the_timeout() {
    for (helper, command) in places() {
        let marker = marker();
        let line = format!("setsid sleep {marker} & while :; do echo 0123456789; done");
        let call = with_time_enough(Duration::from_millis(1500), |time| {
            let timeout_ms = u64::try_from(time.as_millis()).unwrap();
            let call = helper.ask(&command(&line), timeout_ms);
            holds_within(time, || !marked(&marker).is_empty()).then_some(call)
        });
        wait_until("it is killed", IN_TIME, || marked(&marker).is_empty());
        drop(call);
    }
}

#[test]
fn what_left_its_cgroup_is_killed_too() {
    for (helper, command) in places() {
        let Some(mount) = crate::support::machine::cgroup2() else {
            return skip("no cgroup v2");
        };
        let away = mount.join(format!("gatewren-it-away-{}", marker()));
        let Ok(()) = fs::create_dir(&away) else {
            return skip("the cgroup tree cannot be written");
        };
        let marker = marker();
        let call = helper.ask(
            &command(&format!("(setsid sleep {marker} &) ; sleep {marker}")),
            LONG_MS,
        );
        wait_until("both run", IN_TIME, || sleeping(&marker).len() == 2);
        for pid in sleeping(&marker) {
            fs::write(away.join("cgroup.procs"), pid.to_string()).unwrap();
        }
        drop(call);
        wait_until("all are gone", IN_TIME, || marked(&marker).is_empty());
        // A dying process has no arguments any more, but is still in its cgroup.
        wait_until("it is empty", IN_TIME, || fs::remove_dir(&away).is_ok());
    }
}

#[test]
fn a_command_that_kills_its_own_reaper_gains_nothing() {
    for (helper, command) in places() {
        let marker = marker();
        let line =
            format!("(setsid sleep {marker} &) ; sleep 0.2; kill -9 $PPID; exec sleep {marker}");
        let call = helper.ask(&command(&line), LONG_MS);
        let finished = call.finish();
        let why = json!({ "killed": { "why": "reaper_lost" } });
        assert_eq!(finished.ending, why);
        wait_until("all are gone", IN_TIME, || marked(&marker).is_empty());
        wait_until("its cgroup is gone", IN_TIME, || {
            call_cgroups(helper.pid()).is_empty()
        });
        assert_eq!(
            helper.run(&command("exit 5")).ending,
            json!({ "exited": { "code": 5 } })
        );
    }
}

#[test]
fn a_reaper_on_the_host_is_forked_and_without_the_fork_server_its_program_is_started() {
    let helper = Helper::start(Path::new("/nonexistent"));
    // It names itself when it gets a processor.
    let mut server = None;
    wait_until("there is a fork server", IN_TIME, || {
        server = child_named(helper.pid(), "gatewren-fork");
        server.is_some()
    });
    for has_server in [true, false] {
        if !has_server {
            let server = nix::unistd::Pid::from_raw(server.unwrap());
            nix::sys::signal::kill(server, nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        let mark = marker();
        let line = format!("(setsid sleep {mark} &) ; sleep {mark}");
        let call = helper.ask(&host(&line), LONG_MS);
        wait_until("both run", IN_TIME, || sleeping(&mark).len() == 2);
        let reaper = child_named(helper.pid(), "gatewren-reaper").expect("a reaper");
        let arguments = fs::read_to_string(format!("/proc/{reaper}/cmdline")).unwrap();
        assert_eq!(arguments.contains("__reaper"), !has_server, "{arguments}");
        call.cancel();
        let ending = call.finish().ending;
        assert_eq!(ending, json!({ "killed": { "why": "cancelled" } }));
        assert!(marked(&mark).is_empty());
    }
    assert_eq!(child_named(helper.pid(), "gatewren-fork"), None);
}

/// Returns a child of the helper by its name in process lists.
fn child_named(helper: i32, name: &str) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{helper}/task/{helper}/children")).unwrap();
    let mut children = children
        .split_whitespace()
        .map(|pid| pid.parse::<i32>().unwrap());
    children.find(|pid| {
        let own = fs::read_to_string(format!("/proc/{pid}/comm"));
        own.is_ok_and(|own| own.trim() == name)
    })
}

#[test]
fn twenty_calls_at_once_do_not_disturb_each_other() {
    for (helper, command) in places() {
        let marker = marker();
        let long = helper.ask_for(&json!("owner"), &command(&format!("sleep {marker}")));
        wait_until("it runs", IN_TIME, || marked(&marker).len() == 1);
        let line = |n| command(&format!("(setsid sleep 5 &) ; echo {n}; exit {n}"));
        let calls: Vec<_> = (0..20)
            .map(|n| (n, helper.ask_for(&json!("owner"), &line(n))))
            .collect();
        for (n, call) in calls {
            let finished = call.finish();
            assert_eq!(finished.ending, json!({ "exited": { "code": n } }));
            assert_eq!(finished.stdout(), format!("{n}\n"));
        }
        assert_eq!(marked(&marker).len(), 1);
        drop(long);
        wait_until("it is gone", IN_TIME, || marked(&marker).is_empty());
    }
}

#[test]
fn who_forks_without_end_is_outrun() {
    for (helper, command) in places() {
        let marker = marker();
        let line = format!("while :; do (setsid sleep {marker} &) ; done");
        let finished = helper.ask(&command(&line), 700).finish();
        assert_eq!(finished.ending, json!({ "killed": { "why": "timeout" } }));
        assert!(
            marked(&marker).is_empty(),
            "nothing is left when the answer comes"
        );
    }
}

#[test]
fn the_next_helper_kills_what_a_dead_one_could_not() {
    let Some(mount) = crate::support::machine::cgroup2() else {
        return skip("no cgroup v2");
    };
    let helper = Helper::start(Path::new("/nonexistent"));
    let template = marker();
    let call = helper.ask(&host(&format!("exec sleep {template}")), LONG_MS);
    wait_until("it runs", IN_TIME, || !sleeping(&template).is_empty());
    let Some(living) = call_cgroups(helper.pid()).pop() else {
        return skip("no call has a cgroup of its own here");
    };
    // Named like the living helper's, but with a start time that never was. Every helper that starts, also those of
    // other tests, removes such cgroups while they are empty. In that case it is made again.
    let name = living.file_name().unwrap().to_str().unwrap();
    let parts: Vec<&str> = name.split('-').collect();
    let stale = mount.join(format!("gatewren-exec-{}-{}-1-0", parts[2], helper.pid()));
    let mut orphan = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    wait_until("the orphan is in it", IN_TIME, || {
        let _ = fs::create_dir(&stale);
        fs::write(stale.join("cgroup.procs"), orphan.id().to_string()).is_ok()
    });

    let next = Helper::start(Path::new("/nonexistent"));
    next.run(&json!({ "do": "ping" }));
    assert!(!orphan.wait().unwrap().success());
    wait_until("it is removed", IN_TIME, || !stale.exists());
    assert!(
        living.exists() && sleeping(&template).len() == 1,
        "a living helper's is left alone"
    );
    drop(call);
}
