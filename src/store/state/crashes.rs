//! Kills processes that write the state at random points: acknowledged writes must survive.

use std::env;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use gatewren_base::sys::Scratch;

use super::author::Author;
use super::error::StateError;
use super::integrity::{ReplayedDatabase, TestRng, rounds};
use super::log::StateLogRetention;
use super::patch::Patch;
use super::store::State;

/// The bodies of the writing processes: the names of the tests that hold them.
const BODIES: [&str; 2] = ["the_daemons_writer", "another_program"];

/// The environment variable that passes the database to such a process.
const DATABASE: &str = "GATEWREN_CRASHING_DATABASE";

/// The most acknowledgements that are awaited before a process is killed.
const MOST_HEARD: u64 = 10;

/// The most revisions that a process writes before it waits to be killed, so that others get room.
const MOST_WRITTEN: u64 = 40;

/// How long it waits: longer than any test takes.
const PATIENCE: Duration = Duration::from_hours(1);

/// Frequent snapshots and trimming, so that crashes hit them.
fn retention() -> StateLogRetention {
    StateLogRetention {
        revisions: 20,
        snapshot_every: 5,
        ..StateLogRetention::default()
    }
}

/// Returns the n-th patch of a process. An acknowledged revision must be found in the log with this patch.
fn numbered(whose: &str, n: u64) -> Value {
    // Sometimes as large as several pages.
    let size = [10, 10, 10, 5_000, 10, 10, 10, 40_000][usize::try_from(n % 8).unwrap()];
    json!([
        {"op": "add", "path": format!("/public/{whose}"), "value": {"n": n, "pid": std::process::id()}},
        {"op": "add", "path": format!("/public/filling{}", n % 3), "value": "x".repeat(size)},
    ])
}

fn print_acknowledgement(id: u64, n: u64) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\ndone {id} {n} {}", std::process::id()).unwrap();
    out.flush().unwrap();
}

/// The body of a process: writes as the daemon does until it is killed.
#[tokio::test]
async fn the_daemons_writer() {
    let Some(database) = env::var_os(DATABASE) else {
        return;
    };
    let state = loop {
        match State::open_keeping(Path::new(&database), retention()) {
            Err(StateError::Busy(_)) => {}
            opened => break opened.unwrap(),
        }
    };
    for n in 0..MOST_WRITTEN {
        let patch = Patch::from_value(numbered("ours", n)).unwrap();
        match state.apply(&Author::observer(), patch).await {
            // On a slow machine the other program may hold the lock for longer than a write waits.
            Err(StateError::Busy(_)) => {}
            written => print_acknowledgement(written.unwrap(), n),
        }
    }
    thread::sleep(PATIENCE);
}

/// The body of a process: writes as other programs may until it is killed. Some of its patches do not apply.
#[test]
fn another_program() {
    let Some(database) = env::var_os(DATABASE) else {
        return;
    };
    let connection = Connection::open(&database).unwrap();
    connection.busy_timeout(Duration::from_mins(10)).unwrap();
    for n in 0..MOST_WRITTEN {
        let mut patch = numbered("theirs", n);
        if n % 7 == 3 {
            patch[1] = json!({"op": "remove", "path": "/public/nothing"});
        }
        let id: i64 = connection
            .query_row(
                "INSERT INTO revision (at_ms, actor, patch) VALUES (?1, 'local:test', ?2) RETURNING id",
                (n.cast_signed(), patch.to_string()),
                |row| row.get(0),
            )
            .unwrap();
        print_acknowledgement(id.try_into().unwrap(), n);
    }
    thread::sleep(PATIENCE);
}

/// A write that a process acknowledged before it was killed.
struct AcknowledgedWrite {
    revision: u64,
    /// The number of the patch.
    patch: u64,
    /// The process id.
    process: u64,
}

/// A process of this test program, with one of the bodies.
struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
    printed: String,
}

impl Process {
    fn start(body: &str, database: &Path) -> Self {
        let name = format!("state::crashes::{body}");
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", &name, "--nocapture", "--test-threads=1"]);
        command.env(DATABASE, database);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        // The stderr of a killed process does not matter; a process that fails is detected by its missing output.
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let printed = String::new();
        Self {
            child,
            output,
            printed,
        }
    }

    /// Waits for this many acknowledgements.
    fn wait_for_acknowledgements(&mut self, times: u64) {
        let mut heard = 0;
        while heard < times {
            let begun = self.printed.len();
            let read = self.output.read_line(&mut self.printed).unwrap();
            assert!(read > 0, "it ended before it was killed: {}", self.printed);
            heard += u64::from(self.printed[begun..].starts_with("done "));
        }
    }

    /// Kills the process. Returns what it acknowledged.
    fn kill(mut self) -> Vec<AcknowledgedWrite> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.output.read_to_string(&mut self.printed).unwrap();
        let whole = self
            .printed
            .rfind('\n')
            .map_or("", |end| &self.printed[..end]);
        let lines = whole.lines().filter_map(|line| line.strip_prefix("done "));
        lines
            .map(|line| {
                let mut words = line.split(' ').map(|word| word.parse().unwrap());
                let mut word = || words.next().unwrap();
                AcknowledgedWrite {
                    revision: word(),
                    patch: word(),
                    process: word(),
                }
            })
            .collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It is dead already, unless a test fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts one or two processes, kills them at a random point, and returns what was acknowledged.
fn crash(rng: &mut TestRng, database: &Path) -> Vec<AcknowledgedWrite> {
    let bodies = match rng.below(3) {
        0 => &BODIES[..],
        _ => &BODIES[..1],
    };
    let mut processes: Vec<_> = bodies
        .iter()
        .map(|body| Process::start(body, database))
        .collect();
    // With zero, it is killed while it opens the file.
    let heard = rng.below(MOST_HEARD);
    processes[0].wait_for_acknowledgements(heard);
    thread::sleep(Duration::from_micros(rng.below(20_000)));
    if rng.below(2) == 0 {
        processes.reverse();
    }
    processes.into_iter().flat_map(Process::kill).collect()
}

/// Asserts that an acknowledged revision is in the log under its number, unless it was trimmed.
fn assert_logged(found: &ReplayedDatabase, write: &AcknowledgedWrite) {
    let id = write.revision;
    let (floor, newest) = (found.documents[0].0, found.newest().0);
    assert!(
        id <= newest,
        "revision {id} is lost; the newest is {newest}"
    );
    if id > floor {
        let at = usize::try_from(id - floor - 1).unwrap();
        let (found, patch) = &found.patches[at];
        assert_eq!(*found, id);
        let patch: Value = serde_json::from_str(patch).unwrap();
        assert_eq!(
            patch[0]["value"],
            json!({"n": write.patch, "pid": write.process}),
            "revision {id}"
        );
    }
}

#[test]
#[ignore = "long: 200 writers are killed"]
fn nothing_that_was_done_is_lost_when_writers_are_killed() {
    let (rounds, seed) = rounds("GATEWREN_CRASHES", 200);
    let mut rng = TestRng::new(seed);
    let scratch = Scratch::new();
    let path = scratch.join("state.db");
    let id = State::open_keeping(&path, retention())
        .unwrap()
        .database_id()
        .to_owned();
    let (mut done, mut newest) = (0, 0);
    for round in 0..rounds {
        let writes = crash(&mut rng, &path);
        eprint!("{}", if round % 20 == 19 { ".\n" } else { "." });
        let found = ReplayedDatabase::of(&path);
        for write in &writes {
            assert_logged(&found, write);
        }
        done += writes.len();

        assert!(found.newest().0 >= newest, "a revision is gone");
        newest = found.newest().0;
        let state = State::open_keeping(&path, retention()).unwrap();
        assert_eq!(state.database_id(), id, "rebuilt");
        let document = state.document();
        assert_eq!(
            (document.revision, &document.root),
            (newest, &found.newest().1)
        );
    }
    eprintln!("{rounds} crashes, {done} acknowledged, {newest} revisions");
    assert!(done as u64 >= rounds, "the processes did nothing");
}
