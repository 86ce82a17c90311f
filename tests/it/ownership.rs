//! Commands that root runs on the host leave the service's files to the service's user.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::machine::{IN_TIME, install_program, is_root, skip, wait_until};
use crate::support::server::Directory;

/// A user id other than root's; it needs no name.
const SERVICE: u32 = 64_123;

/// A host whose service runs as a separate user, with settings that belong to root.
struct Home {
    home: Directory,
    running: Option<Child>,
}

impl Home {
    fn new() -> Option<Self> {
        if !is_root() {
            skip("only root can act as somebody else");
            return None;
        }
        let home = Directory::new();
        fs::set_permissions(&home.0, Permissions::from_mode(0o755)).unwrap();
        // Not every directory above the build is readable by all users.
        install_program(
            Path::new(env!("CARGO_BIN_EXE_gatewren")),
            &home.join("gatewren"),
        );
        let state = home.join("state");
        fs::create_dir(&state).unwrap();
        fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
        chown(&state, Some(SERVICE), Some(SERVICE)).unwrap();
        let settings = format!(
            "listen = [\"127.0.0.1:0\"]\nstate_dir = \"{}\"\n[helper]\nsocket = \"{}\"\n",
            state.display(),
            home.join("no-socket").display()
        );
        let file = home.join("gatewren.toml");
        fs::write(&file, settings).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        Some(Self {
            home,
            running: None,
        })
    }

    fn settings(&self) -> PathBuf {
        self.home.join("gatewren.toml")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.home.join("gatewren"));
        command.args(args).arg("--config").arg(self.settings());
        command.env_remove("NOTIFY_SOCKET").stdin(Stdio::null());
        command
    }

    /// Starts the service; returns its address.
    fn start(&mut self) -> String {
        let log = self.home.join("log");
        let mut command = self.command(&["serve"]);
        command.uid(SERVICE).gid(SERVICE).stdout(Stdio::null());
        command.stderr(File::create(&log).unwrap());
        let mut process = command.spawn().unwrap();
        let mut url = None;
        wait_until("it serves", IN_TIME, || {
            let said = fs::read_to_string(&log).unwrap();
            let rest = said.split_once("url=\"").map(|(_, rest)| rest);
            url = rest.and_then(|rest| Some(rest.split_once('"')?.0.to_owned()));
            let ended = process.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {ended:?}\n{said}");
            url.is_some()
        });
        self.running = Some(process);
        url.unwrap()
    }

    fn stop(&mut self) {
        let mut process = self.running.take().unwrap();
        kill(
            Pid::from_raw(process.id().try_into().unwrap()),
            Signal::SIGTERM,
        )
        .unwrap();
        assert_eq!(process.wait().unwrap().code(), Some(0));
    }

    /// Asserts that everything in the state directory belongs to the service.
    fn is_the_services(&self, when: &str) {
        let mut folders = vec![self.home.join("state")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap().flatten() {
                let Ok(facts) = entry.metadata() else {
                    continue;
                };
                assert_eq!(facts.uid(), SERVICE, "{when}: {}", entry.path().display());
                if facts.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
    }

    fn tell(&self, args: &[&str]) -> Value {
        tell_by(&self.settings(), args)
    }

    /// Runs root's commands that change or read the state, with or without a running service.
    fn root_does_all(&self, name: &str, when: &str) -> Value {
        let added = self.tell(&["agent", "add", name, "--policy", "observe"]);
        for args in [
            &["agent", "list"][..],
            &["agent", "edit", name, "--policy", "suggest"],
            &["inbox", "list"],
            &["audit", "verify"],
            &["audit", "list"],
            &["state", "check"],
            &["state", "get"],
            &["owner", "sessions"],
        ] {
            let output = self.command(args).output().unwrap();
            assert!(output.status.success(), "{when}: {args:?}: {output:?}");
            self.is_the_services(&format!("{when}: {args:?}"));
        }
        added
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(process) = &mut self.running {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

#[test]
fn a_certificate_that_root_renews_or_installs_is_the_services() {
    let Some(mut home) = Home::new() else { return };
    home.start();
    let shows = |told: &Value| assert_eq!(told["server"]["shows"], "this", "{told}");
    shows(&home.tell(&["cert", "show"]));
    home.is_the_services("show");
    shows(&home.tell(&["cert", "renew"]));
    home.is_the_services("renew");

    // Readable only by root, as ACME clients keep it.
    let secret = home.home.join("live");
    fs::create_dir(&secret).unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o700)).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["box.example.org".to_owned()]).unwrap();
    let (chain, private) = (secret.join("chain.pem"), secret.join("key.pem"));
    fs::write(&chain, params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(&private, key.serialize_pem()).unwrap();
    let (chain, private) = (chain.to_str().unwrap(), private.to_str().unwrap());
    let install = ["cert", "install", "--cert", chain, "--key", private];
    shows(&home.tell(&install));
    home.is_the_services("install");
    let turned_on = home.home.join("conf.d/cert-installed.toml");
    let facts = fs::metadata(&turned_on).unwrap();
    assert_eq!((facts.uid(), facts.mode() & 0o7777), (0, 0o644));
    shows(&home.tell(&["cert", "install", "--remove"]));
    home.is_the_services("remove");
    assert!(!turned_on.exists());

    // Root does not follow a symbolic link that the service has made.
    let tls = home.home.join("state/tls");
    fs::rename(&tls, home.home.join("state/away")).unwrap();
    std::os::unix::fs::symlink(&secret, &tls).unwrap();
    let output = home.command(&install).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    let names = fs::read_dir(&secret).unwrap().count();
    assert_eq!(names, 2, "nothing was written there");
    assert!(!turned_on.exists());
    home.stop();
}

#[test]
fn what_root_does_with_agents_leaves_every_file_to_the_service() {
    let Some(mut home) = Home::new() else {
        return;
    };
    let output = home.command(&["agent", "list"]).output().unwrap();
    assert!(!output.status.success(), "there is nothing yet");
    home.start();
    home.is_the_services("after the first start");
    home.root_does_all("while-it-runs", "while it runs");
    home.stop();
    let added = home.root_does_all("while-it-rests", "while it rests");
    let url = home.start();
    home.is_the_services("after the second start");
    let address = url
        .strip_prefix("https://")
        .and_then(|url| url.strip_suffix("/mcp"));
    let ca = home.home.join("state/tls/ca.pem");
    let token = added["token"].as_str().unwrap();
    let client = Client::new(address.unwrap().parse().unwrap(), &ca, token);
    assert_eq!(client.modern("tools/list").send().status, 200);
    home.stop();
}

#[test]
fn the_audit_names_root_or_the_user_of_sudo_and_not_the_service() {
    let Some(mut home) = Home::new() else {
        return;
    };
    home.start();
    home.stop();
    for (agent, variable, by) in [
        ("unset", None, "local:root"),
        ("su", Some(("USER", "alice")), "local:root"),
        ("sudo", Some(("SUDO_USER", "alice")), "local:alice"),
    ] {
        let mut command = home.command(&["agent", "add", agent]);
        command.env_remove("USER").env_remove("SUDO_USER");
        let output = command.envs(variable).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let output = home.command(&["audit", "list", "--json"]).output().unwrap();
        let calls = String::from_utf8(output.stdout).unwrap();
        let newest: Value = serde_json::from_str(calls.lines().next().unwrap()).unwrap();
        assert_eq!(newest["target"], agent, "{newest}");
        assert_eq!(newest["agent"], by, "{newest}");
    }
}

#[test]
fn another_user_is_sent_to_root_at_once() {
    let Some(mut home) = Home::new() else {
        return;
    };
    home.start();
    for (subcommand, code) in [("status", 1), ("doctor", 2), ("init", 1)] {
        let mut command = home.command(&[subcommand]);
        command.uid(SERVICE + 1).gid(SERVICE + 1);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let hint = format!("Run it as root: sudo gatewren {subcommand}");
        assert!(said.contains(&hint), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    home.stop();
}

#[test]
fn root_does_not_serve_in_the_services_place_and_check_names_what_it_could_not_write() {
    let Some(home) = Home::new() else {
        return;
    };
    let output = home.command(&["serve"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("belongs to another user"), "{said}");
    assert_eq!(fs::read_dir(home.home.join("state")).unwrap().count(), 0);

    let check = |uid: Option<u32>| {
        let mut command = home.command(&["check"]);
        if let Some(uid) = uid {
            command.uid(uid).gid(uid);
        }
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for uid in [None, Some(SERVICE)] {
        assert_eq!(check(uid), (Some(0), String::new()), "{uid:?}");
    }
    let stray = home.home.join("state/vault.db-wal");
    fs::write(&stray, "").unwrap();
    fs::set_permissions(&stray, Permissions::from_mode(0o600)).unwrap();
    for uid in [None, Some(SERVICE)] {
        let (code, said) = check(uid);
        assert_eq!(code, Some(2), "{uid:?}: {said}");
        assert!(
            said.contains("vault.db-wal") && said.contains("chown"),
            "{uid:?}: {said}"
        );
    }
    let (code, said) = check(Some(SERVICE + 1));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("state_dir"), "{said}");
}
