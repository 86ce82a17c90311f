//! `systemctl reload gatewren-helper`: the policy is read again, and running operations continue.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::support::barrier::Barrier;
use crate::support::container::Containers;
use crate::support::helper::{Helper, LONG_MS, host};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::Directory;

/// A helper with a policy file.
struct Told {
    helper: Helper,
    home: Directory,
}

impl Told {
    fn new(lxcpath: Option<PathBuf>, policy: &str) -> Self {
        let home = Directory::new();
        let lxcpath = lxcpath.unwrap_or_else(|| home.0.clone());
        let file = home.join("policy.toml");
        write(&file, policy);
        let log = File::create(home.join("log")).unwrap();
        let helper = Helper::start_as(&lxcpath, |command| {
            command.arg("--policy").arg(&file).stderr(log);
        });
        Self { helper, home }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.join("log")).unwrap()
    }

    /// Reloads with another policy; returns the log since.
    fn reload(&self, policy: &str) -> String {
        write(&self.home.join("policy.toml"), policy);
        let before = self.log().len();
        kill(Pid::from_raw(self.helper.pid()), Signal::SIGHUP).unwrap();
        let mut said = String::new();
        wait_until("it says what came of it", IN_TIME, || {
            said = self.log().split_off(before);
            said.contains("reloaded") && said.ends_with('\n')
        });
        said
    }

    fn is_let(&self) -> bool {
        let finished = self.helper.run(&host("echo here"));
        let refused = finished.refusal().0 == "forbidden";
        assert!(refused || finished.stdout() == "here\n", "{finished:?}");
        !refused
    }
}

fn write(file: &PathBuf, policy: &str) {
    fs::write(file, policy).unwrap();
    fs::set_permissions(file, Permissions::from_mode(0o644)).unwrap();
}

const ON: &str = "host_shell = \"full\"\n";
const OFF: &str = "host_shell = \"off\"\n";

#[test]
fn another_policy_holds_for_the_next_operation_and_what_runs_goes_on() {
    let told = Told::new(None, ON);
    // It has responded, so its signal handlers are installed.
    assert!(told.is_let());
    let barrier = Barrier::new();
    let line = format!("{}; echo through", barrier.line());
    let running = told.helper.ask(&host(&line), LONG_MS);
    barrier.until_reached();
    let said = told.reload(OFF);
    assert!(said.contains("another policy is in force"), "{said}");
    assert!(!told.is_let());
    barrier.open();
    assert_eq!(running.finish().stdout(), "through\n");
    let said = told.reload(OFF);
    assert!(said.contains("the same policy is in force"), "{said}");
    told.reload(ON);
    assert!(told.is_let());
}

#[test]
fn a_policy_that_is_wrong_changes_nothing_and_says_where() {
    let told = Told::new(None, OFF);
    assert!(!told.is_let());
    let file = told.home.join("policy.toml");
    let said = told.reload("host_shel = \"full\"\n");
    let at_1 = format!("{}:1: unknown key \"host_shel\"", file.display());
    assert!(
        said.contains("not reloaded") && said.contains(&at_1),
        "{said}"
    );
    assert!(!told.is_let());
    write(&file, ON);
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    let before = told.log().len();
    kill(Pid::from_raw(told.helper.pid()), Signal::SIGHUP).unwrap();
    wait_until("it says that others may write it", IN_TIME, || {
        told.log().split_off(before).contains("chmod go-w")
    });
    assert!(!told.is_let(), "whoever could write it is not listened to");
}

#[test]
fn whoever_hears_of_containers_is_told_to_look_again_and_no_more_when_none_may_be_seen() {
    let Some(own) = Containers::new() else {
        return;
    };
    let told = Told::new(
        Some(own.lxcpath().to_owned()),
        &format!("{ON}containers = [\"wren\"]\n"),
    );
    assert!(told.is_let());
    let mut events = told.helper.ask(&json!({ "do": "container_events" }), 0);
    let (sender, heard) = std::sync::mpsc::channel();
    let listening = std::thread::spawn(move || {
        let first = events.output();
        sender.send(first).unwrap();
        events.finish()
    });
    // Nothing reports when the stream has begun. So the test changes the policy until an event comes.
    let mut turn = 0;
    let first = loop {
        turn += 1;
        told.reload(&format!("containers = [\"wren\", \"other-{turn}\"]\n"));
        if let Ok(first) = heard.recv_timeout(std::time::Duration::from_millis(200)) {
            break first;
        }
        assert!(turn < 500, "it is not told");
    };
    assert_eq!(first, b"definitions changed\n");
    told.reload("lxc_reads = false\n");
    assert_eq!(listening.join().unwrap().refusal().0, "forbidden");
}
