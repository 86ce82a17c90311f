//! Checks the helper, and that a command in a real container is killed with all its child processes.

use std::fs;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::finding::Finding;
use gatewren_base::config::Reach;
use gatewren_base::sys::random_bytes;
use gatewren_host::backends::{BackendError, ContainerRef, Lxc, Program, Shell, ShellCall};
use gatewren_host::helper_client::HelperClient;

/// The reference in the helper's log.
const REFERENCE: &str = "gatewren doctor";

/// How long the command may take to start its processes, and the kernel to end them.
const WAIT: Duration = Duration::from_secs(8);

/// The pause between two looks at the processes.
const LOOK: Duration = Duration::from_millis(50);

/// The number of processes of the command: one in its own session, one whose parent has exited, and itself.
const STARTED: usize = 3;

/// Checks through this helper.
pub async fn look(helper: &HelperClient) -> Vec<Finding> {
    let lxc = Lxc::new(helper.clone()).view_for(&Reach::everything(), REFERENCE);
    let containers = match lxc.all_vitals().await {
        Ok(containers) => containers,
        Err(cause) => return vec![helper_problem("helper", &cause)],
    };
    let mut found = vec![Finding::good("helper", "it answers")];
    let running = containers.iter().find(|container| !container.frozen);
    found.push(match running {
        Some(container) => kill_test(helper, &container.container).await,
        None => Finding::skipped(
            "kill test",
            "no container is running to start and kill a command in",
        ),
    });
    found
}

fn helper_problem(check: &'static str, cause: &BackendError) -> Finding {
    let seen = cause.message.clone();
    let remedy = cause.hint.clone();
    let remedy = remedy.unwrap_or_else(|| "systemctl status gatewren-helper.socket".to_owned());
    Finding::problem(check, seen, remedy)
}

/// Starts processes in a container that sleep for a unique number of seconds, drops the call, and checks whether
/// any of them is left.
async fn kill_test(helper: &HelperClient, container: &ContainerRef) -> Finding {
    const CHECK: &str = "kill test";
    let Ok(random) = random_bytes::<4>() else {
        return Finding::skipped(CHECK, "the kernel returned no random number");
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
                Ok(outcome) => unexpected_exit(container, &outcome.stderr),
                Err(cause) => helper_problem(CHECK, &cause),
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
        return Finding::skipped(CHECK, seen);
    }
    match wait_until(|| count_sleeping(&seconds) == 0).await {
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
    }
}

fn unexpected_exit(container: &ContainerRef, output: &str) -> Finding {
    let seen = format!("a command in {container} exited at once: {output}");
    let remedy = format!("lxc-attach -n {container} -- sh -c 'sleep 1'");
    Finding::problem("kill test", seen, remedy)
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
