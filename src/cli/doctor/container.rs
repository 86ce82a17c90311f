//! Checks in a real container of each runtime that a command is killed with all its child processes.

use std::fs;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::finding::Finding;
use super::runtimes::helper_problem;
use gatewren_base::config::{Reach, RuntimeKind};
use gatewren_base::sys::random_bytes;
use gatewren_host::backends::{
    ContainerDetails, ContainerRef, ContainerState, Program, Shell, ShellCall, ShellOutcome,
};
use gatewren_host::helper_client::HelperClient;

/// The reference in the helper's log.
const REFERENCE: &str = "gatewren doctor";

/// How long the command may take to start its processes, and the kernel to end them.
const WAIT: Duration = Duration::from_secs(8);

/// The pause between two looks at the processes.
const LOOK: Duration = Duration::from_millis(50);

/// The name of the check.
const CHECK: &str = "kill test";

/// The number of processes of the command: one in its own session, one whose parent has exited, and itself.
const STARTED: usize = 3;

/// The most containers of a runtime that are tried: many images have no shell.
const MAX_TRIED: usize = 4;

/// The shell that runs the command. The refusal of a command in a container without it names it.
const SHELL: &str = "'/bin/sh'";

/// The exit codes of a shell for a program that cannot be executed or was not found.
const NO_PROGRAM: [i32; 2] = [126, 127];

/// Checks one running container of each runtime, through this helper.
pub async fn look(helper: &HelperClient, containers: &[ContainerDetails]) -> Vec<Finding> {
    let mut found = Vec::new();
    for kind in RuntimeKind::ALL {
        let running: Vec<&ContainerDetails> = containers
            .iter()
            .filter(|one| one.name.runtime() == kind && one.state == ContainerState::Running)
            .collect();
        if !running.is_empty() {
            found.push(test_runtime(helper, &running).await);
        }
    }
    if found.is_empty() {
        found.push(Finding::skipped(
            CHECK,
            "no container is running to start and kill a command in",
        ));
    }
    found
}

/// Tests the first of these containers that has a shell.
async fn test_runtime(helper: &HelperClient, running: &[&ContainerDetails]) -> Finding {
    let mut seen = None;
    for container in running.iter().take(MAX_TRIED) {
        if let Some(finding) = why_untested(container) {
            seen = Some(finding);
            continue;
        }
        if let Some(finding) = kill_test(helper, &container.name).await {
            return finding;
        }
        let words = format!(
            "{} has no shell with sleep, so nothing was verified",
            container.name
        );
        seen = seen.or(Some(Finding::skipped(CHECK, words)));
    }
    seen.unwrap_or_else(|| Finding::skipped(CHECK, "no container was tried"))
}

/// The finding for a container in which commands are rejected: always, or unless commands on the host are allowed.
fn why_untested(container: &ContainerDetails) -> Option<Finding> {
    let (name, engine) = (&container.name, container.engine.as_ref()?);
    if let Some(why) = &engine.no_commands {
        let seen = format!("commands cannot run in {name}: {why}");
        return Some(Finding::warning(
            CHECK,
            seen,
            "use runc or crun as its OCI runtime",
        ));
    }
    let seen = format!("{name} counts as the host, so it is not used for this test");
    (!engine.host_rights.is_empty()).then(|| Finding::skipped(CHECK, seen))
}

/// Starts processes in a container that sleep for a unique number of seconds, drops the call, and checks whether
/// any of them is left. Returns `None` if the container has no shell.
async fn kill_test(helper: &HelperClient, container: &ContainerRef) -> Option<Finding> {
    let Ok(random) = random_bytes::<4>() else {
        return Some(Finding::skipped(
            CHECK,
            "the kernel returned no random number",
        ));
    };
    let seconds = (1_000_000_000 + u64::from(u32::from_be_bytes(random))).to_string();
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let shell = Shell::new(helper.clone(), stopped);
    let reach = Reach::everything();
    let view = shell.view_for(&reach, REFERENCE);
    let running = view.container(container, command(&seconds));
    let started = tokio::select! {
        ended = running => {
            return match ended {
                Ok(outcome) => unexpected_exit(container, &outcome),
                Err(cause) if cause.message.contains(SHELL) => None,
                Err(cause) => Some(helper_problem(CHECK, &cause)),
            };
        }
        started = wait_until(|| count_sleeping(&seconds) >= STARTED) => started,
    };
    // The call is dropped here.
    let most = count_sleeping(&seconds);
    if started.is_none() && most == 0 {
        let seen = format!(
            "the processes of {container} are not visible from here, so nothing was verified"
        );
        return Some(Finding::skipped(CHECK, seen));
    }
    Some(match wait_until(|| count_sleeping(&seconds) == 0).await {
        Some(took) => Finding::good(
            CHECK,
            format!(
                "a command in {container} and all its child processes were killed within {} ms",
                took.as_millis()
            ),
        ),
        None => Finding::problem(
            CHECK,
            format!(
                "{} processes of a killed command still run in {container}",
                count_sleeping(&seconds)
            ),
            format!("journalctl -u gatewren-helper; kill them: pkill -f 'sleep {seconds}'"),
        ),
    })
}

/// The finding for a command that ended by itself; `None` if its program does not exist.
fn unexpected_exit(container: &ContainerRef, outcome: &ShellOutcome) -> Option<Finding> {
    if outcome
        .exit_code
        .is_some_and(|code| NO_PROGRAM.contains(&code))
    {
        return None;
    }
    let seen = format!(
        "a command in {container} exited at once: {}",
        outcome.stderr
    );
    let name = container.name();
    let remedy = match container.runtime() {
        RuntimeKind::Lxc => format!("lxc-attach -n {name} -- sh -c 'sleep 1'"),
        RuntimeKind::DockerInLxc => {
            let outer = container.place().unwrap_or_default();
            format!("lxc-attach -n {outer} -- docker exec {name} sh -c 'sleep 1'")
        }
        other => format!("{other} exec {name} sh -c 'sleep 1'"),
    };
    Some(Finding::problem(CHECK, seen, remedy))
}

fn command(seconds: &str) -> ShellCall {
    let line = format!(
        "(setsid sleep {seconds} || sleep {seconds}) >/dev/null 2>&1 & (sleep {seconds} >/dev/null 2>&1 &); sleep \
         {seconds}"
    );
    ShellCall {
        command: Program::Shell(line),
        timeout: WAIT * 4,
        user: None,
        cwd: None,
        env: std::collections::BTreeMap::new(),
        // The owner asks.
        on_host: true,
    }
}

/// The number of processes on this host that sleep for this number of seconds.
fn count_sleeping(seconds: &str) -> usize {
    let Ok(processes) = fs::read_dir("/proc") else {
        return 0;
    };
    let wanted = format!("sleep\0{seconds}\0");
    let is_one = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.ends_with(wanted.as_bytes())
    };
    processes.flatten().filter(is_one).count()
}

/// Waits until the condition holds; returns how long that took, or `None` on timeout.
async fn wait_until(is_so: impl Fn() -> bool) -> Option<Duration> {
    let begun = Instant::now();
    let waited = async {
        while !is_so() {
            sleep(LOOK).await;
        }
    };
    timeout(WAIT, waited).await.ok().map(|()| begun.elapsed())
}
