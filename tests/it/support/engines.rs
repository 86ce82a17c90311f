//! Real daemons of Docker and Podman with real containers: those of `tests/lab/docker`, `tests/lab/podman` and
//! `tests/lab/podman-user` and `tests/lab/docker-in-lxc`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::helper::Helper;
use super::machine::{IN_TIME, is_alive, is_root, limited, marker, skip, wait_until};
use super::server::Directory;

/// The program of the lab's images, which starts processes that are hard to end.
pub const PROCESSES: &str = "/bin/processes";

/// The image with a shell and this program.
const IMAGE: &str = "gatewren-lab";

/// The image that holds nothing but this program.
const BARE_IMAGE: &str = "gatewren-bare";

/// The variable in the environment of a call's processes by which they are found.
pub const MARK: &str = "GATEWREN_IT_MARK";

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    Docker,
    Podman,
    /// The Podman of a user without root.
    PodmanUser,
    /// Docker inside the container `media` of LXC.
    DockerInLxc,
}

/// The user of `tests/lab/podman-user`.
pub const USER: &str = "alice";

/// The container of LXC with Docker, and the one without.
pub const OUTER: &str = "media";
pub const ROGUE: &str = "rogue";

impl EngineKind {
    /// Those of root on the host.
    pub const ALL: [Self; 2] = [Self::Docker, Self::Podman];

    /// Returns the name of its lab. For those of root on the host it begins a reference to a container.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::PodmanUser => "podman-user",
            Self::DockerInLxc => "docker-in-lxc",
        }
    }

    /// Returns the variable that names the socket of a daemon that all tests share.
    fn variable(self) -> &'static str {
        match self {
            Self::Docker => "GATEWREN_DOCKER",
            Self::Podman => "GATEWREN_PODMAN",
            Self::PodmanUser => "GATEWREN_PODMAN_USER",
            Self::DockerInLxc => "GATEWREN_DOCKER_IN_LXC",
        }
    }
}

/// A daemon of the lab.
pub struct Engine {
    pub kind: EngineKind,
    /// The lab's folder, for `GATEWREN_LAB`.
    lab: PathBuf,
    /// The folder of a daemon that one test has for itself; it is deleted after the daemon has ended.
    own: Option<Directory>,
}

impl Engine {
    /// Returns the daemon that all tests share, with its containers alpha and beta. Skips the test and returns `None`
    /// where there is none.
    pub fn shared(kind: EngineKind) -> Option<Self> {
        let variable = kind.variable();
        let Some(socket) = std::env::var_os(variable) else {
            skip(&format!("{variable} names no daemon"));
            return None;
        };
        if !is_root() {
            skip("containers need root");
            return None;
        }
        // LAB/engines/KIND/KIND.sock, or LAB/engines/docker-in-lxc/lxc
        let lab = Path::new(&socket).ancestors().nth(3);
        Some(Self {
            kind,
            lab: lab.unwrap().to_owned(),
            own: None,
        })
    }

    /// Starts a daemon for one test, with containers alpha and beta, where all tests share one too. `flags` are further
    /// options of dockerd.
    pub fn own(kind: EngineKind, flags: &str) -> Option<Self> {
        Self::shared(kind)?;
        let home = Directory::new();
        let engine = Self {
            kind,
            lab: home.0.clone(),
            own: Some(home),
        };
        engine.up(flags);
        Some(engine)
    }

    /// Starts what does not run: the daemon with these further options of dockerd, and alpha and beta.
    pub fn up(&self, flags: &str) {
        self.lab(&["up"], &[("GATEWREN_DOCKERD_FLAGS", flags)]);
    }

    /// Returns the path of its socket.
    pub fn socket(&self) -> PathBuf {
        let name = self.kind.name();
        self.lab.join(format!("engines/{name}/{name}.sock"))
    }

    /// Returns the folder of all its files.
    pub fn folder(&self) -> PathBuf {
        self.lab.join("engines").join(self.kind.name())
    }

    /// Runs a command as the user of `tests/lab/podman-user` and returns its output.
    pub fn run_as_user(&self, command: &[&str]) -> String {
        self.lab(&[&["as"], command].concat(), &[])
    }

    /// Returns the lxcpath of the containers of LXC around Docker.
    pub fn lxcpath(&self) -> PathBuf {
        self.folder().join("lxc")
    }

    /// Returns the reference of a container of this engine.
    pub fn reference(&self, name: &str) -> String {
        match self.kind {
            EngineKind::PodmanUser => format!("podman:{name}@{USER}"),
            EngineKind::DockerInLxc => format!("docker:{name}@{OUTER}"),
            kind => format!("{}:{name}", kind.name()),
        }
    }

    /// Runs the engine's own client, which must succeed, and returns its output.
    pub fn cli(&self, arguments: &[&str]) -> String {
        self.lab(&[&["cli"], arguments].concat(), &[])
    }

    /// Starts the daemon again after it ended on SIGTERM, or on SIGKILL. `flags` are further options of dockerd.
    pub fn restart(&self, is_killed: bool, flags: &str) {
        let arguments: &[&str] = if is_killed {
            &["restart", "-k"]
        } else {
            &["restart"]
        };
        self.lab(arguments, &[("GATEWREN_DOCKERD_FLAGS", flags)]);
    }

    /// Starts a container with this name for one test.
    pub fn run_named(&self, name: &str) -> EngineContainer<'_> {
        self.lab(&["run", name], &[]);
        EngineContainer {
            engine: self,
            name: name.to_owned(),
        }
    }

    /// Starts a container with this name for one test, with these options of the engine's `run`.
    pub fn run_named_with(&self, name: &str, options: &[&str]) -> EngineContainer<'_> {
        self.lab(&[&["run", name], options].concat(), &[]);
        EngineContainer {
            engine: self,
            name: name.to_owned(),
        }
    }

    /// Starts a container for one test, with these options of the engine's `run`.
    pub fn run(&self, options: &[&str]) -> EngineContainer<'_> {
        self.run_with(options, &[])
    }

    /// Starts one with this runtime, if the engine is Podman.
    pub fn run_with_runtime(&self, runtime: &str) -> EngineContainer<'_> {
        self.run_with(&[], &[("GATEWREN_PODMAN_RUNTIME", runtime)])
    }

    /// Starts one that has no shell and no files.
    pub fn run_bare(&self) -> EngineContainer<'_> {
        let container = self.named();
        let name = container.name.as_str();
        let options = ["--detach", "--network", "none", "--name", name];
        let words = [&["run"], &options[..], &[BARE_IMAGE, PROCESSES, "hold"]];
        self.cli(&words.concat());
        container
    }

    /// Starts a container with this name and this shell line as its main process, for one test.
    pub fn run_line(&self, name: &str, line: &str) -> EngineContainer<'_> {
        let container = EngineContainer {
            engine: self,
            name: name.to_owned(),
        };
        let options = ["run", "--detach", "--network", "none", "--name", name];
        self.cli(&[&options[..], &[IMAGE, "/bin/sh", "-c", line]].concat());
        container
    }

    fn run_with(&self, options: &[&str], variables: &[(&str, &str)]) -> EngineContainer<'_> {
        let container = self.named();
        self.lab(
            &[&["run", container.name.as_str()], options].concat(),
            variables,
        );
        container
    }

    /// Starts a container with this name, which stays until the lab ends.
    pub fn run_staying(&self, name: &str) {
        self.lab(&["run", name], &[]);
    }

    /// Returns a name for a container, which is deleted with it.
    fn named(&self) -> EngineContainer<'_> {
        EngineContainer {
            engine: self,
            name: format!("it-{}", marker()),
        }
    }

    fn lab(&self, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let mut command = self.lab_command();
        let command = command.args(arguments).envs(variables.to_vec());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{} {arguments:?}: {said}",
            self.kind.name()
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn lab_command(&self) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab");
        let mut command = limited(script.join(self.kind.name()));
        command.env("GATEWREN_LAB", &self.lab);
        command
    }

    /// Returns the words in front of a command that is to run in the daemon's mount namespace, where the cgroup tree and
    /// the states of the runtimes are.
    pub fn inside(&self) -> Vec<OsString> {
        let keeper = fs::read_to_string(self.lab.join("engines/keeper")).unwrap();
        let words = ["nsenter", "--mount", "--target", keeper.trim(), "--"];
        words.map(OsString::from).to_vec()
    }

    /// Follows the events of a container with this name from now on.
    pub fn follow_events(&self, name: &str) -> EngineEvents {
        let home = Directory::new();
        let file = home.join("events");
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let (since, only) = (since.as_secs().to_string(), format!("container={name}"));
        let mut command = self.lab_command();
        command.args(["cli", "events", "--since", &since, "--filter", &only]);
        command.stdout(File::create(&file).unwrap());
        let process = command.process_group(0).spawn().unwrap();
        EngineEvents {
            process,
            file,
            _home: home,
        }
    }

    /// Runs a shell line in that namespace and returns its output.
    pub fn run_inside(&self, line: &str) -> String {
        let words = self.inside();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["sh", "-c", line]);
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    }

    /// Starts a helper in that namespace with this policy, which serves this Podman of a user alone.
    pub fn helper_with(&self, policy: &str) -> Helper {
        let file = self.folder().join(format!("helper-{}.toml", marker()));
        let text = format!("runtimes = []\npodman_users = [\"{USER}\"]\n{policy}");
        fs::write(&file, text).unwrap();
        Helper::start_by(&self.inside(), |command| {
            command.arg("--policy").arg(file);
        })
    }

    /// Starts a helper in that namespace, which serves this engine alone.
    pub fn helper(&self) -> Helper {
        if self.kind == EngineKind::PodmanUser {
            return self.helper_with("host_shell = \"full\"\ncontainer_files = \"on\"\n");
        }
        if self.kind == EngineKind::DockerInLxc {
            return Helper::start_by_with(&self.inside(), &self.lxcpath(), |_| {});
        }
        Helper::start_by(&self.inside(), |command| {
            let option = format!("--{}-socket", self.kind.name());
            command.arg(option).arg(self.socket());
        })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.own.is_some() {
            let _ = self.lab_command().arg("down").output();
        }
    }
}

/// The events of a container, as the engine's own client prints them.
pub struct EngineEvents {
    process: Child,
    file: PathBuf,
    _home: Directory,
}

impl EngineEvents {
    /// Waits until an event with this word has come, and returns all.
    pub fn until(&self, word: &str) -> String {
        let mut events = String::new();
        wait_until("the event comes", IN_TIME, || {
            events = fs::read_to_string(&self.file).unwrap();
            events.contains(word)
        });
        events
    }
}

impl Drop for EngineEvents {
    fn drop(&mut self) {
        // The script and the client.
        let group = Pid::from_raw(self.process.id().try_into().unwrap());
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.process.wait();
    }
}

/// A container of one test; it is deleted when the test ends.
pub struct EngineContainer<'a> {
    engine: &'a Engine,
    pub name: String,
}

impl EngineContainer<'_> {
    /// Returns its reference.
    pub fn reference(&self) -> String {
        self.engine.reference(&self.name)
    }

    /// Runs one of the engine's commands on it, such as `pause`.
    pub fn act(&self, verb: &str) {
        self.engine.cli(&[verb, &self.name]);
    }

    /// Returns one of the values that the engine's `inspect` has, such as `.State.Status`.
    pub fn inspect(&self, value: &str) -> String {
        let format = format!("{{{{{value}}}}}");
        self.engine
            .cli(&["inspect", "--format", &format, &self.name])
    }
}

impl Drop for EngineContainer<'_> {
    fn drop(&mut self) {
        // The daemon may have ended with the test that failed.
        let mut remove = self.engine.lab_command();
        let _ = remove.args(["cli", "rm", "--force", &self.name]).output();
    }
}

/// Returns the live processes with this mark in their environment, without zombies.
pub fn with_mark(mark: &str) -> Vec<i32> {
    let variable = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        let variables = fs::read(entry.path().join("environ")).unwrap_or_default();
        let mut variables = variables.split(|byte| *byte == 0);
        if variables.any(|one| one == variable.as_bytes()) && is_alive(pid) {
            found.push(pid);
        }
    }
    found
}
