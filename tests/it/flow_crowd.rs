//! Many subscribers, and some that do not read: each gets its notifications, and the server's memory does not grow.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::client::{Client, Connection, runtime};
use crate::support::cores::core;
use crate::support::history::{connect, insert};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Server, server};
use crate::support::session::Session;
use crate::support::stream::{Next, Stream};

/// The number of subscribers to one resource, and also of those to one resource each, in both eras.
const CROWD: usize = 1_000;

/// The number of streams over one connection; the server allows a few more.
const PER_CONNECTION: usize = 100;

/// The way a client subscribes.
#[derive(Debug, Clone, Copy)]
enum Era {
    Stateless,
    Session,
}

/// A subscriber.
struct Listener {
    uri: String,
    stream: Stream,
}

impl Listener {
    async fn open(client: &Client, era: Era, uris: &[String], over: &mut Connection) -> Self {
        let mut stream = match era {
            Era::Stateless => {
                let filter = json!({ "resourceSubscriptions": uris });
                let listen = client.modern("subscriptions/listen");
                let listen = listen.param("notifications", filter);
                listen.opened_over(over).await
            }
            Era::Session => {
                let begun = client.initialize("2025-11-25").sent_over(over).await;
                let session = Session::as_answered(client, begun);
                for uri in uris {
                    let subscribe = session.request("resources/subscribe").uri(uri);
                    assert_eq!(subscribe.sent_over(over).await.result(), json!({}));
                }
                session.get().opened_over(over).await
            }
        };
        assert_eq!(stream.status(), 200);
        let first = next(&mut stream).await;
        assert!(
            first.is_none_or(|first| first["params"].get("uri").is_none()),
            "the stream is primed, or the subscription acknowledged"
        );
        let uri = uris[0].clone();
        Self { uri, stream }
    }

    /// Returns the revision of the next update.
    async fn told(&mut self) -> u64 {
        let message = next(&mut self.stream).await.expect("an update");
        assert_eq!(message["params"]["uri"], self.uri);
        revision(&message)
    }
}

/// Returns the next message; `None` for an event without one.
async fn next(stream: &mut Stream) -> Option<Value> {
    match stream.hear(IN_TIME).await {
        Next::Event(event) if event.data.is_empty() => None,
        Next::Event(event) => Some(event.json()),
        other => panic!("an event was due: {other:?}"),
    }
}

fn revision(message: &Value) -> u64 {
    message["params"]["_meta"]["gatewren/revision"]
        .as_u64()
        .unwrap()
}

/// Opens a stream for each of these URIs, many over one connection.
fn gather(client: &Client, era: Era, uris: &[String]) -> (Vec<Listener>, Vec<Connection>) {
    let mut opening = JoinSet::new();
    for uris in uris.chunks(PER_CONNECTION) {
        let (client, uris) = (client.clone(), uris.to_owned());
        let open = async move {
            let mut connection = client.connect().await;
            let mut listeners = Vec::new();
            for uri in uris {
                listeners.push(Listener::open(&client, era, &[uri], &mut connection).await);
            }
            (listeners, connection)
        };
        opening.spawn_on(open, runtime().handle());
    }
    let opened = runtime().block_on(opening.join_all());
    let (listeners, connections): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
    (listeners.into_iter().flatten().collect(), connections)
}

/// Returns the server's memory, in KiB.
fn resident(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let words = line.unwrap().split_whitespace().nth(1);
    words.unwrap().parse().unwrap()
}

/// Returns the processor time of the server, in hundredths of a second.
fn ticks(server: &Server) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1;
    let fields = fields.split_whitespace().skip(11).take(2);
    fields.map(|field| field.parse::<u64>().unwrap()).sum()
}

fn write(server: &Server, operations: &Value) -> u64 {
    let connection = connect(server.text("state_db").as_ref());
    insert(&connection, operations);
    u64::try_from(connection.last_insert_rowid()).unwrap()
}

/// Returns the newest revision that the server has read from the log.
fn newest_read(server: &Server) -> u64 {
    let read = server.client().call("state_get", json!({}));
    read.send().data()["revision"].as_u64().unwrap()
}

fn add(key: &str, value: impl Into<Value>) -> Value {
    json!({ "op": "add", "path": format!("/public/{key}"), "value": value.into() })
}

#[test]
#[ignore = "long: a thousand subscribers"]
fn a_thousand_hear_of_one_resource_and_a_thousand_of_one_each_in_both_eras() {
    let _core = core();
    let limits = "[limits]\nmax_streams_per_agent = 4096\nmax_sessions_per_agent = 4096\n";
    let server = server().settings(limits).start();
    let first = write(&server, &json!([add("own", json!({})), add("one", 0)]));
    // Otherwise early subscribers would be notified of this revision.
    wait_until("the server has read it", IN_TIME, || {
        newest_read(&server) >= first
    });
    let one = vec!["gatewren:///public/one".to_owned(); CROWD];
    let own: Vec<String> = (0..CROWD)
        .map(|n| format!("gatewren:///public/own/{n}"))
        .collect();
    let (mut listeners, mut connections) = (Vec::new(), Vec::new());
    let before = resident(&server);
    for era in [Era::Stateless, Era::Session] {
        for uris in [&one, &own] {
            let (more, over) = gather(&server.client().http2(), era, uris);
            listeners.extend(more);
            connections.extend(over);
        }
    }
    let many = u64::try_from(listeners.len()).unwrap();
    let each = (resident(&server) - before) / many;

    // A change that no client watches notifies no client: the next update of each is its own.
    let (began, ran) = (Instant::now(), ticks(&server));
    for n in 0..200 {
        write(&server, &json!([add("beside", n)]));
    }
    let all: Vec<Value> = (0..CROWD).map(|n| add(&format!("own/{n}"), 1)).collect();
    let mut expected = BTreeMap::from([("one", write(&server, &json!([add("one", 1)])))]);
    expected.insert("own", write(&server, &json!(all)));
    runtime().block_on(async {
        for listener in &mut listeners {
            let whose = if listener.uri.ends_with("one") {
                "one"
            } else {
                "own"
            };
            assert_eq!(listener.told().await, expected[whose], "{}", listener.uri);
        }
    });
    let (took, ran) = (began.elapsed(), ticks(&server) - ran);
    println!(
        "{many} streams of {each} KiB each; 202 revisions and {many} updates: {took:?}, {ran} ticks of the server"
    );
    // A change of one of the thousand notifies only its subscriber.
    let last = write(&server, &json!([add("own/7", 2), add("beside", 0)]));
    runtime().block_on(async {
        for listener in listeners.iter_mut().filter(|l| l.uri.ends_with("/7")) {
            assert_eq!(listener.told().await, last);
        }
        for listener in listeners
            .iter_mut()
            .filter(|l| !l.uri.ends_with("/7"))
            .step_by(97)
        {
            let next = listener.stream.hear(Duration::ZERO).await;
            assert!(matches!(next, Next::Quiet), "{}: {next:?}", listener.uri);
        }
    });
    drop(connections);
}

/// The number of keys below `/public/wide`, with names so long that an update of each is large.
const WIDE: usize = 200;

fn wide(value: usize) -> Value {
    let keys = (0..WIDE).map(|n| (format!("{n:0100}"), json!(value)));
    json!([add("wide", keys.collect::<serde_json::Map<_, _>>())])
}

#[test]
#[ignore = "long: a thousand subscribers"]
fn who_does_not_read_costs_little_and_hears_the_newest_in_the_end() {
    const REVISIONS: usize = 150;
    let _core = core();
    let settings = "[limits]\nupdate_interval = \"0s\"\n";
    let server = server().settings(settings).start();
    let uris: Vec<String> = (0..WIDE)
        .map(|n| format!("gatewren:///public/wide/{n:0100}"))
        .collect();
    for n in 0..REVISIONS {
        write(&server, &wide(n));
    }
    let mut stopped = Vec::new();
    let mut connections = Vec::new();
    runtime().block_on(async {
        for n in 0..12 {
            let client = server.client().narrow();
            let client = if n % 2 == 0 { client.http2() } else { client };
            let era = if n % 4 < 2 {
                Era::Stateless
            } else {
                Era::Session
            };
            let mut connection = client.connect().await;
            let listener = Listener::open(&client, era, &uris, &mut connection).await;
            stopped.push(listener);
            connections.push(connection);
        }
    });
    let before = resident(&server);
    let mut newest = 0;
    for n in 0..REVISIONS {
        newest = write(&server, &wide(1_000 + n));
        // Time to send each revision.
        std::thread::sleep(Duration::from_millis(10));
    }
    let grown = resident(&server).saturating_sub(before);
    let mut heard = Vec::new();
    runtime().block_on(async {
        for listener in &mut stopped {
            let mut known = BTreeMap::new();
            let mut count = 0;
            while known.len() < WIDE || known.values().any(|known| *known < newest) {
                let message = next(&mut listener.stream).await.expect("an update");
                let uri = message["params"]["uri"].as_str().unwrap().to_owned();
                known.insert(uri, revision(&message));
                count += 1;
            }
            heard.push(count);
        }
    });
    let all = WIDE * REVISIONS;
    println!("the server has grown by {grown} KiB; {heard:?} updates of {all}");
    // If every update were kept for every client, this would take more than 150 MiB.
    assert!(grown < 48 * 1024, "it keeps what nobody reads: {grown} KiB");
    assert!(
        heard.iter().all(|count| *count < all / 2),
        "somebody was told every revision: {heard:?}"
    );
}
