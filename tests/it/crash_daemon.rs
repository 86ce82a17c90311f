//! Kills the daemon at random points while it, its clients and another program write.
//!
//! Every acknowledged value is still there afterwards, and the next daemon continues from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::client::{Client, runtime};
use crate::support::cores::core;
use crate::support::history::{History, connect, insert};
use crate::support::machine::{IN_TIME, is_alive, wait_until};
use crate::support::rng::Rng;
use crate::support::server::{Directory, Server, server};
use crate::support::state::said;

/// The number of daemons to kill, unless `GATEWREN_DAEMON_CRASHES` is set; `GATEWREN_SEED` repeats the random
/// choices.
const CRASHES: usize = 20;

/// A call that would change the host. Its intent is written to the audit before it runs. A call that only
/// reads is written when it ends, and the last of them may be lost with the daemon.
const TRIED: &str = "container_start";

/// The value that the other program increments.
const COUNTER: &str = "/public/counter";

/// A value that the observer owns, and corrects.
const CORRECTED: &str = "/public/serverInfo/hostname";

/// The values that others got acknowledged.
#[derive(Default)]
struct Told {
    at_work: AtomicBool,
    /// The client for the current daemon.
    client: Mutex<Option<Client>>,
    /// The revisions that the other program has made, with their patches.
    written: Mutex<BTreeMap<u64, String>>,
    /// The values that the client has read: a revision, and the counter at that revision.
    read: Mutex<Vec<(u64, Value)>>,
    /// The number of answered calls that would change the host.
    tried: AtomicUsize,
}

impl Told {
    fn is_at_work(&self) -> bool {
        self.at_work.load(Ordering::Relaxed)
    }

    fn reads(&self) -> usize {
        self.read.lock().unwrap().len()
    }
}

/// Increments the counter as another program, with or without a daemon. Some patches do not apply, some are large,
/// and some change values that only the observer should write.
fn write(told: &Told, path: &Path, mut rng: Rng) {
    let connection = connect(path);
    let mut n = 0;
    while told.is_at_work() {
        n += 1;
        let mut operations = vec![json!({ "op": "add", "path": COUNTER, "value": n })];
        match rng.below(8) {
            0 => operations.push(json!({ "op": "remove", "path": "/public/nothing" })),
            1 => {
                let filling = "x".repeat(rng.below(40_000));
                operations.push(json!({ "op": "add", "path": "/public/filling", "value": filling }));
            }
            2 => operations.push(json!({
                "op": "add", "path": "/public/serverInfo", "value": { "hostname": format!("foreign {n}") },
            })),
            _ => {}
        }
        let text = Value::Array(operations).to_string();
        let sql =
            "INSERT INTO revision (at_ms, actor, patch) VALUES (?1, 'local:test', ?2) RETURNING id";
        let id: i64 = connection
            .query_row(sql, (n, &text), |row| row.get(0))
            .unwrap();
        let mut written = told.written.lock().unwrap();
        written.insert(id.try_into().unwrap(), text);
        drop(written);
        thread::sleep(Duration::from_millis(rng.pick(&[0, 1, 5, 10])));
    }
}

/// Creates and deletes containers, which the observer may see.
fn stir(told: &Told, lxcpath: &Path) {
    for n in (0..3).cycle() {
        if !told.is_at_work() {
            return;
        }
        let container = lxcpath.join(format!("c{n}"));
        // LXC's tools may read it at that moment. If they prevent the deletion, it succeeds the next time.
        fs::create_dir_all(&container).unwrap();
        fs::write(container.join("config"), "").unwrap();
        thread::sleep(Duration::from_millis(300));
        let _ = fs::remove_dir_all(container);
    }
}

/// Reads the counter with a tool, and records the response.
fn read(told: &Told) {
    while told.is_at_work() {
        let client = told.client.lock().unwrap().clone();
        if let Some(client) = client {
            if let Some(data) = answered(&client, "state_get", json!({ "pointer": COUNTER })) {
                assert_ne!(data["isError"], true, "{data}");
                let data = &data["structuredContent"];
                let revision = data["revision"].as_u64().unwrap();
                let mut read = told.read.lock().unwrap();
                read.push((revision, data["value"].clone()));
            }
            if answered(&client, TRIED, json!({ "container": "nobody" })).is_some() {
                told.tried.fetch_add(1, Ordering::Relaxed);
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the result of a call; a daemon that is being killed may return an error or nothing.
fn answered(client: &Client, tool: &str, arguments: Value) -> Option<Value> {
    let call = client.call(tool, arguments);
    let answer = runtime().block_on(call.try_send()).ok()?;
    (answer.status == 200).then(|| answer.rpc()["result"].clone())
}

/// A directory for successive daemons, and the threads around them.
struct Scene {
    home: Directory,
    lxcpath: Directory,
    told: Arc<Told>,
    threads: Vec<JoinHandle<()>>,
    history: History,
    /// The counter at each revision, by the log.
    counter: BTreeMap<u64, Value>,
}

impl Scene {
    fn new(rng: &mut Rng) -> Self {
        let (home, lxcpath) = (Directory::new(), Directory::new());
        let told = Arc::<Told>::default();
        told.at_work.store(true, Ordering::Relaxed);
        let path = home.join("state.db");
        let mut scene = Self {
            history: History::new(&path, []),
            home,
            lxcpath,
            told,
            threads: Vec::new(),
            counter: BTreeMap::new(),
        };
        // The first daemon makes the database.
        scene.kill(scene.start());
        let (told, own) = (scene.told.clone(), Rng::new(rng.next()));
        scene
            .threads
            .push(thread::spawn(move || write(&told, &path, own)));
        wait_until("there is a counter", IN_TIME, || {
            scene.told.written.lock().unwrap().len() > 1
        });
        let told = scene.told.clone();
        scene.threads.push(thread::spawn(move || read(&told)));
        let (told, lxcpath) = (scene.told.clone(), scene.lxcpath.0.clone());
        scene
            .threads
            .push(thread::spawn(move || stir(&told, &lxcpath)));
        scene
    }

    fn start(&self) -> Server {
        let server = server().directory(&self.home.0).lxcpath(&self.lxcpath.0);
        server.start()
    }

    fn kill(&self, mut server: Server) {
        let helpers = server.children();
        server.signal(Signal::SIGKILL);
        *self.told.client.lock().unwrap() = None;
        server.ended();
        assert_eq!(complaints(&server), [""; 0]);
        wait_until("the helper goes with it", IN_TIME, || {
            !helpers.iter().any(|pid| is_alive(*pid))
        });
    }

    /// Starts a daemon, lets it serve for a while, and kills it.
    fn serve_and_crash(&self, rng: &mut Rng) {
        let server = self.start();
        let before = self.told.reads();
        *self.told.client.lock().unwrap() = Some(server.client());
        let wanted = before + 1 + rng.below(10);
        wait_until("it is read", IN_TIME, || {
            assert!(!self.threads.iter().any(JoinHandle::is_finished));
            self.told.reads() >= wanted
        });
        thread::sleep(Duration::from_millis(rng.next() % 500));
        self.kill(server);
    }

    /// Kills a daemon before or just after it begins to serve.
    fn begin_and_crash(&self, rng: &mut Rng) {
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        daemon.args(["try", "--json", "--listen", "127.0.0.1:0", "--dir"]);
        daemon
            .arg(&self.home.0)
            .arg("--lxcpath")
            .arg(&self.lxcpath.0);
        daemon.stdin(Stdio::null()).stdout(Stdio::null());
        let mut daemon = daemon.stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(rng.next() % 500));
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// Asserts that the log has all acknowledged values, and that the file is undamaged.
    fn holds(&mut self) {
        // Values that are acknowledged after this point are checked the next time.
        let written = self.told.written.lock().unwrap().clone();
        let read = self.told.read.lock().unwrap().clone();
        let connection = connect(&self.home.join("state.db"));
        let checked: String = connection
            .query_row("PRAGMA quick_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(checked, "ok");
        let known = self.history.revision;
        self.history.read_on();
        let sql = "SELECT id, patch FROM revision WHERE id > ?1 AND id <= ?2 ORDER BY id";
        let mut rows = connection.prepare(sql).unwrap();
        let ids = [known, self.history.revision].map(|id| i64::try_from(id).unwrap());
        let rows = rows.query_map(ids, |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        });
        let mut counter = self
            .counter
            .last_key_value()
            .map(|(_, value)| value.clone());
        for row in rows.unwrap() {
            let (id, patch) = row.unwrap();
            let id = u64::try_from(id).unwrap();
            if let Some(told) = written.get(&id) {
                assert_eq!(*told, patch, "revision {id}");
            }
            let operations: Value = serde_json::from_str(&patch).unwrap();
            let applies = operations[1]["op"] != "remove";
            if operations[0]["path"] == COUNTER && applies {
                counter = Some(operations[0]["value"].clone());
            }
            self.counter.insert(id, counter.clone().unwrap_or_default());
        }
        let newest = self.history.revision;
        let last = written.last_key_value().map_or(0, |(id, _)| *id);
        assert!(
            last <= newest,
            "revision {last} is lost; the newest is {newest}"
        );
        for (revision, value) in read {
            let at = self.counter.get(&revision);
            assert_eq!(at, Some(&value), "revision {revision} of {newest}");
        }
        let names = fs::read_dir(&self.home.0).unwrap().flatten();
        let mut names = names.map(|entry| entry.file_name().into_string().unwrap());
        assert!(
            !names.any(|name| name.contains("damaged")),
            "it was built anew"
        );
    }

    fn finish(&mut self) {
        self.told.at_work.store(false, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

/// Returns log lines that report a database error. On a slow and busy machine the other program may hold the lock for
/// long; that is logged, and is not an error.
fn complaints(server: &Server) -> Vec<String> {
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains(" ERROR "));
    let lines = lines.filter(|line| !line.contains("keeps the database locked"));
    lines.map(str::to_owned).collect()
}

fn audit(directory: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let output = command
        .arg("audit")
        .args(words)
        .arg("--dir")
        .arg(directory)
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "long: 20 daemons are killed"]
fn nothing_that_was_told_is_lost_when_the_daemon_is_killed() {
    let _core = core();
    let seed = Rng::seed("GATEWREN_SEED");
    println!("GATEWREN_SEED={seed}");
    let crashes = std::env::var("GATEWREN_DAEMON_CRASHES");
    let crashes = crashes.map_or(CRASHES, |text| text.parse().unwrap());
    let mut rng = Rng::new(seed);
    let mut scene = Scene::new(&mut rng);
    for _ in 0..crashes {
        if rng.one_in(3) {
            scene.begin_and_crash(&mut rng);
        } else {
            scene.serve_and_crash(&mut rng);
        }
        scene.holds();
    }
    scene.finish();
    insert(
        &connect(&scene.home.join("state.db")),
        &json!([{ "op": "add", "path": "/public/serverInfo", "value": { "hostname": "foreign" } }]),
    );
    scene.holds();

    // The last daemon corrects a value that the other program wrote, and finds no damage.
    let server = scene.start();
    let hostname = || {
        let call = server
            .client()
            .call("state_get", json!({ "pointer": CORRECTED }));
        call.send().data()["value"].clone()
    };
    wait_until("what the observer writes is its own again", IN_TIME, || {
        !hostname().as_str().unwrap().starts_with("foreign")
    });
    said(&server, &["check"]);
    scene.kill(server);
    scene.holds();

    let own: i64 = connect(&scene.home.join("state.db"))
        .query_row(
            "SELECT count(*) FROM revision WHERE actor = 'observer'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let (reads, revisions) = (scene.told.reads(), scene.history.revision);
    println!(
        "{crashes} crashes, {revisions} revisions, {own} of them the daemon's own, {reads} answers"
    );
    assert!(own > 0, "the daemon wrote nothing of its own");
    audit(&scene.home.0, &["verify"]);
    let tried = scene.told.tried.load(Ordering::Relaxed);
    assert!(tried > 0, "nothing was tried");
    let words = ["list", "--tool", TRIED, "--limit", "100000", "--json"];
    let recorded = audit(&scene.home.0, &words).lines().count();
    assert!(
        recorded >= tried,
        "{tried} calls were answered and {recorded} are in the audit"
    );
}
