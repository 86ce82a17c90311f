//! The whole server as a black box: the real program on a free port, ended by its process id.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::client::Client;
use super::engines::{Engine, EngineKind};
use super::machine::{IN_TIME, exit_of, is_alive, skip, wait_until};
use super::namespace::NetworkNamespace;

/// Waits for the end of the tests, even by a crash, then kills the server and deletes its directory.
const GUARDIAN: &str = r#"cat > /dev/null; kill "$1" 2> /dev/null; sleep 3; rm -rf "$2""#;

/// A free port that only this machine reaches.
const LOOPBACK: &str = "127.0.0.1:0";

/// The name of the settings file.
const SETTINGS: &str = "gatewren.toml";

/// The name of the helper's policy file.
const POLICY: &str = "helper.toml";

/// A builder for a server.
pub struct Builder {
    policy: String,
    lxcpath: Option<PathBuf>,
    directory: Option<PathBuf>,
    settings: Option<String>,
    bounds: String,
    env: Vec<(String, String)>,
    listen: String,
    /// The command that runs it on another machine, if any.
    runner: Option<Vec<OsString>>,
    /// Further options of a trial.
    options: Vec<OsString>,
}

/// A directory of the host, and the one of a test that replaces it.
pub struct Place {
    pub of_host: &'static str,
    pub own: PathBuf,
}

/// Returns a builder for a server with the policy `operate` and its own directory, as the defaults.
pub fn server() -> Builder {
    Builder {
        policy: "operate".to_owned(),
        lxcpath: None,
        directory: None,
        settings: None,
        // As much as in a trial.
        bounds: "host_shell = \"full\"\npower = \"on\"\nlxc_manage = \"on\"\n\
                 container_files = \"on\"\ntemplates = [\"busybox\"]\n"
            .to_owned(),
        env: Vec::new(),
        listen: LOOPBACK.to_owned(),
        runner: None,
        options: Vec::new(),
    }
}

impl Builder {
    pub fn policy(mut self, policy: &str) -> Self {
        policy.clone_into(&mut self.policy);
        self
    }

    /// Adds an option of `gatewren try`.
    pub fn option(mut self, word: &str) -> Self {
        self.options.push(word.into());
        self
    }

    pub fn lxcpath(mut self, path: &Path) -> Self {
        self.lxcpath = Some(path.to_owned());
        self
    }

    /// Sets a directory that the caller makes and deletes.
    pub fn directory(mut self, path: &Path) -> Self {
        self.directory = Some(path.to_owned());
        self
    }

    /// Uses these settings, as TOML, instead of a trial.
    pub fn settings(mut self, toml: &str) -> Self {
        self.settings = Some(toml.to_owned());
        self
    }

    /// Sets the helper's policy, as in helper.toml; for servers with settings.
    pub fn bounds(mut self, toml: &str) -> Self {
        toml.clone_into(&mut self.bounds);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the address that it listens on, for servers with settings.
    pub fn listen(mut self, address: &str) -> Self {
        address.clone_into(&mut self.listen);
        self
    }

    /// Runs it on a separate machine.
    pub fn in_namespace(mut self, machine: &NetworkNamespace) -> Self {
        let inside = machine.inside(env!("CARGO_BIN_EXE_gatewren"));
        let words = std::iter::once(inside.get_program()).chain(inside.get_args());
        self.runner = Some(words.map(ToOwned::to_owned).collect());
        self
    }

    /// Runs it in the mount namespace of these engines, which they share, and has it serve their containers.
    pub fn engines(mut self, engines: &[Engine]) -> Self {
        for engine in engines {
            self = self.run_inside(engine);
            if engine.kind == EngineKind::DockerInLxc {
                self = self.lxcpath(&engine.lxcpath());
                continue;
            }
            let option = format!("--{}-socket", engine.kind.name());
            self.options.extend([option.into(), engine.socket().into()]);
        }
        self
    }

    /// Runs it in the mount namespace of an engine, where commands can enter its containers.
    pub fn run_inside(mut self, engine: &Engine) -> Self {
        let mut words = engine.inside();
        words.push(env!("CARGO_BIN_EXE_gatewren").into());
        self.runner = Some(words);
        self
    }

    /// Runs it with its own mounts: each existing directory of the host is replaced by a directory of the test.
    pub fn with_places(mut self, places: &[Place]) -> Self {
        const MOUNT: &str = "while [ \"$1\" != -- ]; do mount --bind \"$1\" \"$2\"; shift 2; done; shift; exec \"$@\"";
        let words = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-ec",
            MOUNT,
            "mount",
        ];
        let mut runner: Vec<OsString> = words.iter().map(OsString::from).collect();
        for place in places {
            runner.extend([place.own.clone().into(), place.of_host.into()]);
        }
        runner.extend(["--".into(), env!("CARGO_BIN_EXE_gatewren").into()]);
        self.runner = Some(runner);
        self
    }

    /// Runs it with its own mounts and with a copy of /etc in this directory, which may already hold a test's files.
    pub fn with_etc(mut self, etc: &Path) -> Self {
        const MOUNT: &str =
            "cp -a --no-clobber /etc/. \"$0\"; mount --bind \"$0\" /etc; exec \"$@\"";
        let words = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-ec",
            MOUNT,
        ];
        let words = words.iter().map(OsString::from);
        let program = env!("CARGO_BIN_EXE_gatewren");
        self.runner = Some(words.chain([etc.into(), program.into()]).collect());
        self
    }

    pub fn start(self) -> Server {
        let home = Directory::new();
        let directory = self.directory.clone();
        let directory = directory.unwrap_or_else(|| home.join("state"));
        let Some(settings) = &self.settings else {
            return self.launch(home, &self.trial(&directory, &self.listen));
        };
        // The first start creates the agent.
        let said = self
            .launch(Directory::new(), &self.trial(&directory, LOOPBACK))
            .said
            .clone();
        let file = home.join(SETTINGS);
        let own = format!(
            "listen = [\"{}\"]\nstate_dir = \"{}\"\n",
            self.listen,
            directory.display()
        );
        fs::write(&file, own + settings).unwrap();
        let args = [
            "serve".into(),
            "--config".into(),
            file.into(),
            "--helper-policy".into(),
            bound(&home, &self.bounds).into(),
        ];
        let mut server = self.launch(home, &args);
        server.said = said;
        let url = server.url_in_log();
        server.said["url"] = json!(url);
        server
    }

    fn trial(&self, directory: &Path, listen: &str) -> Vec<OsString> {
        let fixed = ["try", "--json", "--listen", listen, "--policy"];
        let mut args: Vec<OsString> = fixed.iter().map(OsString::from).collect();
        args.extend([
            OsString::from(&self.policy),
            "--dir".into(),
            directory.into(),
        ]);
        if let Some(path) = &self.lxcpath {
            args.extend(["--lxcpath".into(), path.into()]);
        }
        args.extend(self.options.iter().cloned());
        args
    }

    fn launch(&self, home: Directory, args: &[OsString]) -> Server {
        let log = home.join("log");
        let here = [OsString::from(env!("CARGO_BIN_EXE_gatewren"))];
        let words = self.runner.as_deref().unwrap_or(&here);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command.args(args).env_remove("NOTIFY_SOCKET");
        command.envs(self.env.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
        let guardian = guard(process.id(), &home.0);
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut server = Server {
            said: Value::Null,
            log,
            process,
            guardian,
            output,
            home,
        };
        if args.first().is_some_and(|first| first != "serve") {
            server.read_what_it_says();
        }
        server
    }
}

/// Writes the helper's policy file.
fn bound(home: &Directory, bounds: &str) -> PathBuf {
    let file = home.join(POLICY);
    fs::write(&file, bounds).unwrap();
    // The helper rejects a file that others could write or replace.
    for (trusted, mode) in [(&file, 0o644), (&home.0, 0o755)] {
        fs::set_permissions(trusted, Permissions::from_mode(mode)).unwrap();
    }
    file
}

/// Starts a server of the reference fixtures, over TLS and with a token.
#[cfg(feature = "everything")]
pub fn fixtures() -> Server {
    const TOKEN: &str = "fixtures";
    let words = ["everything", "--json", "--tls", "--token", TOKEN];
    let mut server = server().launch(Directory::new(), &words.map(OsString::from));
    server.said["token"] = json!(TOKEN);
    server
}

fn guard(server: u32, directory: &Path) -> Child {
    let mut guardian = Command::new("sh");
    guardian.args(["-c", GUARDIAN, "guardian", &server.to_string()]);
    guardian.arg(directory).stdin(Stdio::piped());
    guardian.stdout(Stdio::null()).stderr(Stdio::null());
    guardian.spawn().unwrap()
}

/// A directory for one test.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gatewren-it-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running server.
pub struct Server {
    /// The JSON that it printed when it was ready.
    pub said: Value,
    log: PathBuf,
    process: Child,
    guardian: Child,
    output: BufReader<ChildStdout>,
    home: Directory,
}

impl Server {
    fn read_what_it_says(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let said = serde_json::from_str(&line);
        self.said = said.unwrap_or_else(|_| panic!("it said {line:?} and not where it serves"));
    }

    fn url_in_log(&mut self) -> String {
        let mut url = None;
        wait_until("it serves", IN_TIME, || {
            let ended = self.process.try_wait().unwrap();
            let log = self.log();
            let rest = log.split_once("url=\"").map(|(_, rest)| rest);
            url = rest.and_then(|rest| Some(rest.split_once('"')?.0.to_owned()));
            assert!(ended.is_none(), "it ended: {ended:?}: {log}");
            url.is_some()
        });
        url.unwrap()
    }

    /// Returns the path of its settings file, if it has one.
    pub fn settings_file(&self) -> PathBuf {
        self.home.join(SETTINGS)
    }

    /// Starts another front with this name, on the same settings and state.
    pub fn front(&self, name: &str) -> Self {
        let mut front = self.launch_front(name);
        let url = front.url_in_log();
        front.said = self.said.clone();
        front.said["url"] = json!(url);
        front
    }

    /// Does the same without waiting until it serves.
    pub fn launch_front(&self, name: &str) -> Self {
        let args = [
            "serve".into(),
            "--instance".into(),
            name.into(),
            "--config".into(),
            self.settings_file().into(),
            "--helper-policy".into(),
            self.home.join(POLICY).into(),
        ];
        server().launch(Directory::new(), &args)
    }

    /// Sets the helper's policy, from its next start on.
    pub fn bound(&self, bounds: &str) {
        bound(&self.home, bounds);
    }

    /// Returns the directory of its state.
    pub fn state_dir(&self) -> PathBuf {
        self.home.join("state")
    }

    /// Replaces the settings, except where it listens and keeps its state.
    pub fn write_settings(&self, toml: &str) {
        let file = self.settings_file();
        let before = fs::read_to_string(&file).unwrap();
        let head: Vec<&str> = before.lines().take(2).collect();
        fs::write(&file, format!("{}\n{toml}", head.join("\n"))).unwrap();
    }

    /// Asks for a reload, waits for its outcome, and returns the log since.
    pub fn reload(&self) -> String {
        let before = self.log().len();
        self.signal(Signal::SIGHUP);
        let mut said = String::new();
        wait_until("it says what came of it", IN_TIME, || {
            said = self.log().split_off(before);
            said.contains("reloaded")
        });
        said
    }

    /// Does the same with these settings, which must be valid.
    pub fn reload_with(&self, toml: &str) -> String {
        self.write_settings(toml);
        let said = self.reload();
        assert!(!said.contains("not reloaded"), "{said}");
        said
    }

    /// Returns a client with the token, on HTTP/1.1 and the newest TLS.
    pub fn client(&self) -> Client {
        Client::new(
            self.address(),
            Path::new(self.text("ca")),
            self.text("token"),
        )
    }

    /// Returns clients for each pair of HTTP and TLS versions.
    pub fn clients(&self) -> Vec<(&'static str, Client)> {
        vec![
            ("HTTP/1.1, TLS 1.3", self.client()),
            ("HTTP/1.1, TLS 1.2", self.client().tls12()),
            ("HTTP/2, TLS 1.3", self.client().http2()),
            ("HTTP/2, TLS 1.2", self.client().http2().tls12()),
        ]
    }

    pub fn address(&self) -> SocketAddr {
        let url = self.text("url");
        let rest = url.strip_prefix("https://").unwrap();
        rest.strip_suffix("/mcp").unwrap().parse().unwrap()
    }

    /// Returns one of the values that it printed.
    pub fn text(&self, name: &str) -> &str {
        self.said[name].as_str().unwrap()
    }

    pub fn pid(&self) -> i32 {
        self.process.id().try_into().unwrap()
    }

    /// Returns the process ids of its live children: the helper.
    pub fn children(&self) -> Vec<i32> {
        // The kernel lists a child under the thread that started it.
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid())).into_iter();
        let texts = threads.flatten().flatten().map(|thread| {
            let children = thread.path().join("children");
            fs::read_to_string(children).unwrap_or_default() + " "
        });
        texts
            .collect::<String>()
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .filter(|pid| is_alive(*pid))
            .collect()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Returns whether SIGSTOP has stopped each of its threads.
    pub fn stands_still(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        threads.flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('T'))
        })
    }

    /// Waits for its exit.
    pub fn ended(&mut self) -> ExitStatus {
        exit_of("the server", &mut self.process)
    }

    /// Returns its output after the first line; only after it has exited.
    pub fn rest_of_output(&mut self) -> String {
        let mut rest = String::new();
        while self.output.read_line(&mut rest).unwrap() > 0 {}
        rest
    }

    /// Returns the complete lines of its log, without one that is still being written.
    pub fn log(&self) -> String {
        let mut log = fs::read_to_string(&self.log).unwrap_or_default();
        log.truncate(log.rfind('\n').map_or(0, |end| end + 1));
        log
    }

    /// Changes the state as another program would, with SQLite's shell, and returns the new revision.
    pub fn patch_from_outside(&self, patch: &Value) -> u64 {
        let patch = patch.to_string().replace('\'', "''");
        let said = self.sqlite(&format!(
            "BEGIN IMMEDIATE; INSERT INTO revision (id, at_ms, actor, patch) VALUES \
             (1 + max((SELECT coalesce(max(id), 0) FROM revision), (SELECT max(revision) FROM snapshot)), \
             unixepoch() * 1000, 'local:test', '{patch}') RETURNING id; COMMIT;"
        ));
        said.trim().parse().unwrap()
    }

    /// Adds or replaces one value of the public part, and returns the new revision.
    pub fn put(&self, key: &str, value: &Value) -> u64 {
        self.patch_from_outside(&json!([
            { "op": "add", "path": format!("/public/{key}"), "value": value }
        ]))
    }

    fn sqlite(&self, sql: &str) -> String {
        let mut shell = Command::new("sqlite3");
        shell.args([
            "-bail",
            "-cmd",
            ".timeout 60000",
            self.text("state_db"),
            sql,
        ]);
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{said}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        show_if_failing("the server", &self.log());
        let _ = self.guardian.kill();
        let _ = self.guardian.wait();
        if let Ok(None) = self.process.try_wait() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the `Debug` output appears only if a test fails"
)]
fn show_if_failing(whose: &str, log: &str) {
    if std::thread::panicking() {
        eprintln!("--- the log of {whose}\n{log}---");
    }
}

/// Returns whether SQLite's shell, in the role of other programs, is installed; skips the test if not.
pub fn has_sqlite3() -> bool {
    let found = Command::new("sqlite3").arg("--version").output().is_ok();
    if !found {
        skip("there is no program sqlite3");
    }
    found
}

/// A server that several tests use; it outlives them all.
pub struct Shared(&'static Server);

/// Returns the server with this policy that is shared by tests that do not change it.
pub fn shared(policy: &'static str) -> Shared {
    shared_or(policy, || server().policy(policy).start())
}

/// Returns the server of the fixtures that is shared by tests that do not change it.
#[cfg(feature = "everything")]
pub fn shared_fixtures() -> Shared {
    shared_or("fixtures", fixtures)
}

fn shared_or(name: &'static str, start: impl FnOnce() -> Server) -> Shared {
    static SERVERS: OnceLock<Mutex<HashMap<&'static str, &'static Server>>> = OnceLock::new();
    let servers = SERVERS.get_or_init(Mutex::default).lock();
    let mut servers = servers.unwrap_or_else(std::sync::PoisonError::into_inner);
    let start = || &*Box::leak(Box::new(start()));
    Shared(servers.entry(name).or_insert_with(start))
}

impl Deref for Shared {
    type Target = Server;

    fn deref(&self) -> &Server {
        self.0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        show_if_failing("the shared server", &self.0.log());
    }
}
