//! Ten thousand sessions on two fronts: each finds those of the other, and neither becomes large or slow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use crate::support::client::{Client, Connection, runtime};
use crate::support::cores::core;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};
use crate::support::session::Session;

/// The number of sessions of both fronts together.
const SESSIONS: usize = 10_000;

/// The number of connections that open them, half of them to each front.
const CONNECTIONS: usize = 20;

/// Every how many sessions one is tried at the other front.
const SAMPLED: usize = 25;

/// The calls that are measured.
const CALLS: usize = 1_000;

/// How much memory a front may take for its sessions and those of the other that it was asked for.
const GROWTH_KIB: u64 = 32 * 1024;

const LIMITS: &str = "[sessions]\ninstance = \"a\"\n\
    [limits]\nmax_sessions = 20000\nmax_sessions_per_agent = 20000\nsession_unused = \"1h\"\n\
    address_rate = 100000\naddress_burst = 100000\nagent_rate = 1000000\n";

/// Returns the memory of a front without that of its program file, in KiB.
fn resident(front: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", front.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let words = line.unwrap().split_whitespace().nth(1);
    words.unwrap().parse().unwrap()
}

/// Returns the processor time of a front.
fn processor(front: &Server) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", front.pid())).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1;
    let fields = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// Opens that many sessions, one after the other.
async fn open(client: Client, count: usize) -> Vec<Session> {
    let mut connection = client.connect().await;
    let mut opened = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = client.initialize("2025-11-25");
        let begun = begun.sent_over(&mut connection).await;
        opened.push(Session::as_answered(&client, begun));
    }
    opened
}

/// Opens all sessions, at both fronts at the same time.
fn open_all(fronts: [&Client; 2]) -> [Vec<Session>; 2] {
    fronts
        .map(|client| {
            let mut opening = JoinSet::new();
            for _ in 0..CONNECTIONS / 2 {
                let each = open(client.clone(), SESSIONS / CONNECTIONS);
                opening.spawn_on(each, runtime().handle());
            }
            opening
        })
        .map(|opening| {
            let opened = runtime().block_on(opening.join_all());
            opened.into_iter().flatten().collect()
        })
}

/// What calls at one front cost while the other one has as many.
struct CallCosts {
    median: Duration,
    longest: Duration,
    /// The processor time of the front for all calls.
    processor: Duration,
}

impl CallCosts {
    /// Calls at `front` in `session`, and at the other front in `elsewhere` until that is done.
    fn measure(front: &Server, session: &Session, elsewhere: &Session) -> Self {
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut over = elsewhere.client.connection();
                while !is_done.load(Ordering::Relaxed) {
                    call(elsewhere, &mut over);
                }
            });
            let mut over = session.client.connection();
            let before = processor(front);
            let mut times: Vec<Duration> = (0..CALLS).map(|_| call(session, &mut over)).collect();
            let processor = processor(front).saturating_sub(before);
            is_done.store(true, Ordering::Relaxed);
            times.sort();
            Self {
                median: times[CALLS / 2],
                longest: times[CALLS - 1],
                processor,
            }
        })
    }
}

/// Calls, and returns the time that it took.
fn call(session: &Session, over: &mut Connection) -> Duration {
    let began = Instant::now();
    let call = session.call("whoami", json!({}));
    assert_eq!(runtime().block_on(call.sent_over(over)).status, 200);
    began.elapsed()
}

#[test]
#[ignore = "long: ten thousand sessions"]
fn ten_thousand_sessions_are_found_at_both_fronts_and_cost_little() {
    let _core = core();
    let home = Directory::new();
    let builder = server().policy("operate").directory(&home.join("state"));
    let a = builder.settings(LIMITS).start();
    let b = a.front("b");
    let (at_a, at_b) = (a.client(), b.client());
    let (of_a, of_b) = (at_a.session("2025-11-25"), at_b.session("2025-11-25"));
    CallCosts::measure(&b, &of_b, &of_a);
    let few = CallCosts::measure(&b, &of_b, &of_a);
    let before = [resident(&a), resident(&b)];

    let began = Instant::now();
    let [all_of_a, all_of_b] = open_all([&at_a, &at_b]);
    println!("{SESSIONS} sessions in {:?}", began.elapsed());
    let found = Instant::now();
    for (theirs, elsewhere) in [(&all_of_a, &at_b), (&all_of_b, &at_a)] {
        for session in theirs.iter().step_by(SAMPLED) {
            let session = session.carried_on_by(elsewhere);
            assert_eq!(session.request("ping").send().result(), json!({}));
        }
    }
    println!("a sample was found elsewhere in {:?}", found.elapsed());

    // Each call of the other front is a change of the vault.
    let many = CallCosts::measure(&b, &of_b, &of_a);
    for (sessions, costs) in [("few", &few), ("all", &many)] {
        let CallCosts {
            median,
            longest,
            processor,
        } = costs;
        println!(
            "{CALLS} calls with {sessions} sessions: {processor:?} of CPU, {median:?} in the median, {longest:?} at most"
        );
    }
    let (least, most) = (few.processor, many.processor);
    assert!(most < 2 * least, "{most:?} instead of {least:?}");
    let grown = [(&a, before[0]), (&b, before[1])]
        .map(|(front, before)| resident(front).saturating_sub(before));
    println!("the fronts have grown by {grown:?} KiB");
    assert!(grown.iter().all(|kib| *kib < GROWTH_KIB), "{grown:?} KiB");

    for (theirs, elsewhere) in [(&all_of_a, &at_b), (&all_of_b, &at_a)] {
        let deleted: Vec<&Session> = theirs.iter().skip(1).step_by(SAMPLED).collect();
        for session in &deleted {
            let elsewhere = session.carried_on_by(elsewhere);
            assert_eq!(elsewhere.delete().status, 204);
        }
        for session in deleted {
            wait_until("it has ended at its own front", IN_TIME, || {
                session.request("ping").send().status == 404
            });
        }
        assert_eq!(theirs[2].request("ping").send().status, 200);
    }
}
