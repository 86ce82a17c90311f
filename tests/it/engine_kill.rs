//! Commands in real containers of Docker and Podman: when a call ends, by any cause, nothing that it started is left.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use serde_json::{Value, json};

use crate::kill_escapes::{FORGES_REPORTS, WAYS, hide_and_end};
use crate::support::engines::{Engine, EngineContainer, EngineKind, MARK, PROCESSES, with_mark};
use crate::support::helper::{Call, Finished, Helper, LONG_MS, container, powerful_container};
use crate::support::kill_case::{CallsEnd, KillCase, MarkedCommand};
use crate::support::machine::{IN_TIME, call_cgroups, marker, wait_until};

/// What the program of the lab's images starts, and how many processes that are, with the command itself.
const KINDS: &[(&str, &[&str], usize)] = &[
    ("foreground", &["fg"], 1),
    ("background", &["bg", "hold"], 2),
    ("session of its own", &["setsid", "hold"], 2),
    ("double fork", &["double", "hold"], 2),
    ("storm of 200", &["storm", "hold"], 201),
    ("program in memory", &["memory", "hold"], 2),
    ("name of a kernel thread", &["renamed", "hold"], 2),
    ("fork chain", &["chain", "hold"], 2),
];

/// Some of these at once, for calls whose container or daemon changes.
const SEVERAL: &[&str] = &["bg", "setsid", "double", "memory", "renamed", "hold"];
const SEVERAL_PROCESSES: usize = 6;

/// Lets root in a container mount a cgroup tree that it can write, as in a container with systemd inside.
const WITH_CGROUPS: &[&str] = &[
    "--cap-add=SYS_ADMIN",
    "--security-opt=seccomp=unconfined",
    "--security-opt=apparmor=unconfined",
];

/// Returns the engines that are there.
fn engines() -> Vec<Engine> {
    let kinds = EngineKind::ALL.into_iter().chain([EngineKind::PodmanUser]);
    kinds.filter_map(Engine::shared).collect()
}

/// Returns an operation that starts these kinds of processes, which have the mark, on behalf of an agent that may run
/// commands on the host.
pub fn processes(reference: &str, kinds: &[&str], mark: &str) -> Value {
    let argv = [&[PROCESSES], kinds].concat();
    json!({
        "do": "container_command", "container": reference, "on_host": true,
        "command": { "program": { "argv": argv }, "env": { MARK: mark } },
    })
}

/// A call with several kinds of processes, all of which run.
struct RunningCall {
    mark: String,
    call: Call,
}

impl RunningCall {
    fn start(helper: &Helper, reference: &str) -> Self {
        let mark = marker();
        let call = helper.ask(&processes(reference, SEVERAL, &mark), LONG_MS);
        wait_until("all processes run", IN_TIME, || {
            with_mark(&mark).len() == SEVERAL_PROCESSES
        });
        Self { mark, call }
    }

    fn processes(&self) -> usize {
        with_mark(&self.mark).len()
    }

    /// Cancels the call; nothing may live when the answer comes.
    fn cancel(self, helper: &Helper) {
        self.call.cancel();
        let mark = self.mark.clone();
        let ending = self.finish(helper).ending;
        assert_eq!(ending, json!({ "killed": { "why": "cancelled" } }));
        assert_eq!(with_mark(&mark), Vec::<i32>::new());
    }

    /// Waits for an end that the test has brought about by other means.
    fn finish(self, helper: &Helper) -> Finished {
        let finished = self.call.finish();
        assert_eq!(with_mark(&self.mark), Vec::<i32>::new());
        wait_until("its cgroups are gone", IN_TIME, || {
            call_cgroups(helper.pid()).is_empty()
        });
        finished
    }
}

/// Asserts that commands run in the container.
pub fn serves(helper: &Helper, reference: &str) {
    let finished = helper.run(&container(reference, "echo out; echo err >&2; exit 5"));
    assert_eq!(finished.ending, json!({ "exited": { "code": 5 } }));
    assert_eq!(
        (finished.stdout(), finished.stderr),
        ("out\n".to_owned(), b"err\n".to_vec())
    );
}

pub fn end_all_kinds(kind: EngineKind, runtime: &str, end: CallsEnd) {
    let Some(engine) = Engine::shared(kind) else {
        return;
    };
    let own = engine.run_with_runtime(runtime);
    let commands = || {
        let made = KINDS.iter().map(|(what, kinds, count)| {
            let mark = marker();
            MarkedCommand {
                what,
                operation: processes(&own.reference(), kinds, &mark),
                mark,
                processes: *count,
            }
        });
        made.collect()
    };
    let case = KillCase {
        start: &|_| engine.helper(),
        commands: &commands,
        running: with_mark,
        left: with_mark,
    };
    case.run(end);
    serves(&engine.helper(), &own.reference());
}

macro_rules! matrix {
    ($($(#[$attribute:meta])* $test:ident: $engine:ident $runtime:literal $end:ident;)*) => {$(
        #[test]
        $(#[$attribute])*
        fn $test() {
            end_all_kinds(EngineKind::$engine, $runtime, CallsEnd::$end);
        }
    )*};
}

matrix! {
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_docker_a_timeout_leaves_nothing: Docker "runc" Timeout;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_docker_a_closed_connection_leaves_nothing: Docker "runc" ConnectionClosed;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_docker_sigterm_of_the_helper_leaves_nothing: Docker "runc" HelperSigterm;
    in_docker_sigkill_of_the_helper_leaves_nothing: Docker "runc" HelperSigkill;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_podman_a_timeout_leaves_nothing: Podman "crun" Timeout;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_podman_a_closed_connection_leaves_nothing: Podman "crun" ConnectionClosed;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_podman_sigterm_of_the_helper_leaves_nothing: Podman "crun" HelperSigterm;
    in_podman_sigkill_of_the_helper_leaves_nothing: Podman "crun" HelperSigkill;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_podman_with_runc_a_timeout_leaves_nothing: Podman "runc" Timeout;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_podman_with_runc_a_closed_connection_leaves_nothing: Podman "runc" ConnectionClosed;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_podman_with_runc_sigterm_of_the_helper_leaves_nothing: Podman "runc" HelperSigterm;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_podman_with_runc_sigkill_of_the_helper_leaves_nothing: Podman "runc" HelperSigkill;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_podman_of_a_user_a_timeout_leaves_nothing: PodmanUser "crun" Timeout;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_podman_of_a_user_a_closed_connection_leaves_nothing: PodmanUser "crun" ConnectionClosed;
    #[ignore = "long: 8 kinds of processes, one end of 4"]
    in_podman_of_a_user_sigterm_of_the_helper_leaves_nothing: PodmanUser "crun" HelperSigterm;
    in_podman_of_a_user_sigkill_of_the_helper_leaves_nothing: PodmanUser "crun" HelperSigkill;
}

#[test]
fn a_container_that_is_paused_during_a_call_keeps_nothing_alive() {
    for engine in engines() {
        let (own, helper) = (engine.run(&[]), engine.helper());
        let call = RunningCall::start(&helper, &own.reference());
        own.act("pause");
        call.cancel(&helper);
        assert_eq!(own.inspect(".State.Status"), "paused");
        own.act("unpause");
        serves(&helper, &own.reference());
    }
}

#[test]
fn a_command_in_a_paused_or_stopped_container_is_refused_with_the_reason() {
    for engine in engines() {
        let (own, helper) = (engine.run(&[]), engine.helper());
        for (change, word, back) in [
            ("pause", "is paused", "unpause"),
            ("kill", "is stopped", "start"),
        ] {
            own.act(change);
            let (code, message) = helper.run(&container(&own.reference(), "true")).refusal();
            assert!(message.contains(word), "{change}: {code}: {message}");
            own.act(back);
            serves(&helper, &own.reference());
        }
    }
}

/// The kernel kills all processes of a container at once. The reaper may report the end of the command before its own.
fn is_killed_with_container(ending: &Value) -> bool {
    let endings = [
        json!({ "killed": { "why": "reaper_lost" } }),
        json!({ "signalled": { "signal": 9 } }),
    ];
    endings.contains(ending)
}

/// Ends the container by other means during a call, and asserts that the call ends too.
fn end_by(engine: &Engine, act: impl Fn(&EngineContainer<'_>)) {
    let (own, helper) = (engine.run(&[]), engine.helper());
    let call = RunningCall::start(&helper, &own.reference());
    act(&own);
    let ending = call.finish(&helper).ending;
    assert!(is_killed_with_container(&ending), "{ending}");
    if own.inspect(".State.Status") != "running" {
        own.act("start");
    }
    serves(&helper, &own.reference());
}

#[test]
fn a_call_ends_with_its_container() {
    for engine in engines() {
        for verb in ["stop", "kill", "restart"] {
            end_by(&engine, |own| own.act(verb));
        }
    }
}

#[test]
#[ignore = "long: daemons of its own"]
fn a_call_ends_when_dockerd_ends_with_its_containers() {
    for is_killed in [false, true] {
        let Some(engine) = Engine::own(EngineKind::Docker, "") else {
            return;
        };
        end_by(&engine, |_| engine.restart(is_killed, ""));
    }
}

/// Restarts the daemon during a call, which goes on.
fn outlive_restart(kind: EngineKind, is_killed: bool, flags: &str) {
    let Some(engine) = Engine::own(kind, flags) else {
        return;
    };
    let helper = engine.helper();
    let reference = engine.reference("alpha");
    let call = RunningCall::start(&helper, &reference);
    engine.restart(is_killed, flags);
    assert_eq!(call.processes(), SEVERAL_PROCESSES);
    serves(&helper, &reference);
    call.cancel(&helper);
    serves(&helper, &reference);
}

#[test]
#[ignore = "long: daemons of its own"]
fn a_call_goes_on_when_dockerd_restarts_and_its_containers_do_not() {
    for is_killed in [false, true] {
        outlive_restart(EngineKind::Docker, is_killed, "--live-restore");
    }
}

#[test]
#[ignore = "long: daemons of its own"]
fn a_call_goes_on_when_the_service_of_podman_restarts() {
    for is_killed in [false, true] {
        outlive_restart(EngineKind::Podman, is_killed, "");
    }
}

#[test]
#[ignore = "long: restarts of a container"]
fn commands_while_a_container_restarts_run_or_are_refused() {
    for engine in engines() {
        let (own, helper) = (engine.run(&[]), engine.helper());
        let (ran, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let calls = || ran.load(Relaxed) + refused.load(Relaxed);
        thread::scope(|scope| {
            // A busy machine makes few calls within a restart, so restarts go on until there were enough.
            let restarts = scope.spawn(|| {
                let mut restarts = 0;
                while restarts < 5 || (calls() <= 5 && restarts < 60) {
                    engine.cli(&["restart", "--time", "0", &own.name]);
                    restarts += 1;
                }
            });
            while !restarts.is_finished() {
                let finished = helper.run(&container(&own.reference(), "echo ran"));
                if finished.ending == json!({ "exited": { "code": 0 } }) {
                    assert_eq!(finished.stdout(), "ran\n");
                    ran.fetch_add(1, Relaxed);
                } else {
                    let (_, message) = finished.refusal();
                    let is_told = is_killed_with_container(&finished.ending) || !message.is_empty();
                    assert!(is_told, "{}", finished.ending);
                    refused.fetch_add(1, Relaxed);
                }
            }
        });
        assert!(calls() > 5, "{ran:?} ran, {refused:?} did not");
        wait_until("no cgroup is left", IN_TIME, || {
            call_cgroups(helper.pid()).is_empty()
        });
        serves(&helper, &own.reference());
    }
}

#[test]
#[ignore = "long: a container for each way to escape"]
fn what_leaves_its_cgroup_and_hides_in_a_container_of_an_engine_is_killed() {
    for engine in engines() {
        let helper = engine.helper();
        let ways = WAYS.iter().filter(|way| {
            // There the command cannot write into the pipe of its reaper, which is root's.
            engine.kind != EngineKind::PodmanUser || way.0 != FORGES_REPORTS
        });
        for way in ways {
            let own = engine.run(WITH_CGROUPS);
            let operation = |line: &str| powerful_container(&own.reference(), line);
            hide_and_end(&helper, operation, way);
        }
    }
}

#[test]
fn a_program_in_a_container_without_a_shell_runs_and_ends_with_its_call() {
    for engine in engines() {
        let (own, helper) = (engine.run_bare(), engine.helper());
        let reference = own.reference();
        let exited = helper.run(&processes(&reference, &["bg", "setsid"], "none"));
        assert_eq!(exited.ending, json!({ "exited": { "code": 7 } }));
        RunningCall::start(&helper, &reference).cancel(&helper);
        let finished = helper.run(&container(&reference, "true"));
        let (code, message) = finished.refusal();
        assert_eq!(code, "bad_command", "{:?}", finished.ending);
        assert!(message.contains("/bin/sh"), "{message}");
    }
}

/// The reaper and the helper are killed, so only the next helper can find the processes.
#[test]
fn the_next_helper_kills_what_a_lost_reaper_and_a_killed_helper_left() {
    for engine in engines() {
        let own = engine.run(&[]);
        let mut helper = engine.helper();
        let mark = marker();
        let line =
            format!("export {MARK}={mark}; {PROCESSES} setsid double; kill -STOP $PPID; sleep 600");
        let call = helper.ask(&container(&own.reference(), &line), LONG_MS);
        wait_until("both run", IN_TIME, || with_mark(&mark).len() >= 2);
        let group = call_cgroups(helper.pid()).pop().unwrap();
        helper.process.kill().unwrap();
        helper.process.wait().unwrap();
        drop(call);
        let next = engine.helper();
        next.run(&json!({ "do": "ping" }));
        wait_until("all are gone", IN_TIME, || with_mark(&mark).is_empty());
        wait_until("its cgroup is gone", IN_TIME, || {
            !fs::exists(&group).unwrap()
        });
        serves(&next, &own.reference());
    }
}
