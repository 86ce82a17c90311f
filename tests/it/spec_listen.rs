//! `subscriptions/listen`: an acknowledgement, then only the requested notifications, then a result.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::request::Request;
use crate::support::server::{Directory, has_sqlite3, server, shared};
use crate::support::stream::{Next, Stream};

/// Time enough for a notification to arrive.
const QUIET: Duration = Duration::from_millis(1500);

fn listen(client: &Client, uris: &[&str]) -> Request {
    let filter = json!({ "resourceSubscriptions": uris });
    client
        .modern("subscriptions/listen")
        .param("notifications", filter)
}

fn open(client: &Client, uris: &[&str]) -> Stream {
    let mut stream = listen(client, uris).open();
    let first = stream.message();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        first["params"]["notifications"]["resourceSubscriptions"],
        json!(uris)
    );
    stream
}

/// Returns whether the state has this key.
fn is_there(client: &Client, key: &str) -> bool {
    let uri = format!("gatewren:///public/{key}");
    let read = client.modern("resources/read").uri(&uri).send().verdict();
    assert!([(200, 0), (200, -32_602)].contains(&read), "{read:?}");
    read == (200, 0)
}

fn subscription_id(message: &Value) -> &Value {
    let part = if message.get("result").is_some() {
        "result"
    } else {
        "params"
    };
    &message[part]["_meta"]["io.modelcontextprotocol/subscriptionId"]
}

#[test]
fn l1_l4_the_acknowledgement_comes_first_with_what_is_honoured() {
    let server = shared("operate");
    for (way, client) in server.clients() {
        for id in [json!(5), json!("5")] {
            let filter = json!({
                "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
                "resourceSubscriptions": ["gatewren:///public/a", "file:///etc/passwd", "gatewren:///private"],
                "unknown": true,
            });
            let request = client
                .modern("subscriptions/listen")
                .param("notifications", filter);
            let mut stream = request.id(id.clone()).open();
            assert_eq!(stream.status(), 200, "{way}");
            let first = stream.message();
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
            assert_eq!(subscription_id(&first), &id, "{way}");
            let honoured = json!({
                "resourceSubscriptions": ["gatewren:///public/a"], "toolsListChanged": true,
            });
            assert_eq!(first["params"]["notifications"], honoured, "{way}");
        }
    }
}

#[test]
fn l4_an_empty_filter_is_acknowledged_and_a_wrong_one_refused() {
    let server = shared("operate");
    let client = server.client();
    let request = client
        .modern("subscriptions/listen")
        .param("notifications", json!({}));
    let first = request.open().message();
    assert_eq!(first["params"]["notifications"], json!({}));
    for wrong in [
        json!(1),
        json!({ "resourceSubscriptions": "x" }),
        json!({ "resourceSubscriptions": [1] }),
    ] {
        let request = client
            .modern("subscriptions/listen")
            .param("notifications", wrong);
        assert_eq!(request.send().rpc()["error"]["code"], -32_602);
    }
    let many: Vec<String> = (0..1001)
        .map(|n| format!("gatewren:///public/{n}"))
        .collect();
    let filter = json!({ "resourceSubscriptions": many });
    let request = client
        .modern("subscriptions/listen")
        .param("notifications", filter);
    assert_eq!(request.send().rpc()["error"]["code"], -32_602);
}

#[test]
fn l2_l3_a_change_is_told_to_who_asked_for_it_and_nothing_else_is() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    for (n, (way, client)) in server.clients().into_iter().enumerate() {
        let (key, beside) = (format!("heard-{n}"), format!("heard-{n}x"));
        let uri = format!("gatewren:///public/{key}");
        let mut stream = listen(&client, &[&uri]).id(json!("mine")).open();
        stream.message();
        server.put(&beside, &json!(1));
        server.put(&key, &json!({ "inside": 1 }));
        let message = stream.message();
        assert_eq!(
            message["method"], "notifications/resources/updated",
            "{way}"
        );
        assert_eq!(message["params"]["uri"], json!(uri));
        assert_eq!(subscription_id(&message), "mine");
        assert!(message.get("id").is_none());
        server.put(&beside, &json!(2));
        stream.stays_quiet(if n == 0 { QUIET } else { Duration::ZERO });
    }
}

#[test]
fn l5_a_change_below_is_told_above_and_a_value_that_stays_is_not_told() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    server.put("same", &json!({ "value": 1, "other": 1 }));
    let client = server.client();
    let (parent, value) = ("gatewren:///public/same", "gatewren:///public/same/value");
    wait_until("the server has seen it", IN_TIME, || {
        is_there(&client, "same")
    });
    let (mut above, mut at) = (open(&client, &[parent]), open(&client, &[value]));
    server.put("same", &json!({ "value": 1, "other": 1 }));
    server.put("same/value", &json!(1));
    above.stays_quiet(QUIET);
    at.stays_quiet(Duration::ZERO);
    server.put("same/other", &json!(2));
    assert_eq!(above.updated(), parent);
    at.stays_quiet(QUIET);
    server.put("same/value", &json!(2));
    assert_eq!(above.updated(), parent);
    assert_eq!(at.updated(), value);
}

#[test]
fn a_patch_that_does_not_apply_changes_and_tells_nothing() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    let client = server.client();
    let mut stream = open(&client, &["gatewren:///public"]);
    server.patch_from_outside(&json!([
        { "op": "add", "path": "/public/half", "value": 1 },
        { "op": "remove", "path": "/public/nothing-here" },
    ]));
    server.patch_from_outside(&json!({ "no": "patch" }));
    let until = Instant::now() + QUIET;
    while Instant::now() < until {
        // Other tests change the same state.
        if let Next::Event(_) = stream.next(Duration::from_millis(200)) {}
    }
    assert!(!is_there(&client, "half"));
    server.put("whole", &json!(1));
    wait_until("the log goes on after it", IN_TIME, || {
        is_there(&client, "whole")
    });
}

#[test]
fn many_quick_changes_are_few_notifications_and_the_last_one_counts() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    let uri = "gatewren:///public/quick";
    let mut stream = open(&server.client(), &[uri]);
    let began = Instant::now();
    let mut last = None;
    for n in 1..=40 {
        last = Some(server.put("quick", &json!(n)));
    }
    let mut told = 0;
    loop {
        let message = stream.message();
        assert_eq!(message["params"]["uri"], uri);
        told += 1;
        let revision = message["params"]["_meta"]["gatewren/revision"].as_u64();
        assert!(revision.is_some() && revision <= last, "{message}");
        if revision == last {
            break;
        }
    }
    // The first comes at once, further ones half a second apart.
    let most = 1 + began.elapsed().as_millis() / 500;
    assert!(told <= most, "{told} notifications, {most} at most");
    let read = server.client().modern("resources/read").uri(uri);
    let read = read.send().result();
    assert_eq!(read["contents"][0]["text"], "40");
    let revision = read["contents"][0]["_meta"]["gatewren/revision"].as_u64();
    assert!(revision >= last, "{read}");
}

#[test]
fn l5_many_listen_at_once_over_one_connection_and_over_many() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    let uri = "gatewren:///public/many";
    let client = server.client().http2();
    let mut connection = client.connection();
    let mut streams: Vec<Stream> = (0..20)
        .map(|n| {
            listen(&client, &[uri])
                .id(json!(n))
                .open_over(&mut connection)
        })
        .collect();
    streams.extend((20..30).map(|n| listen(&server.client(), &[uri]).id(json!(n)).open()));
    for (n, stream) in streams.iter_mut().enumerate() {
        assert_eq!(subscription_id(&stream.message()), n);
    }
    server.put("many", &json!(1));
    for (n, stream) in streams.iter_mut().enumerate() {
        let message = stream.message();
        assert_eq!(subscription_id(&message), n);
    }
    let answer = client.modern("tools/list").send_over(&mut connection);
    assert_eq!(answer.status, 200, "calls go on beside them");
}

#[test]
fn l9_more_streams_than_an_agent_may_have_are_503_until_one_closes() {
    let home = Directory::new();
    drop(server().directory(&home.0).start());
    let limit = "[limits]\nmax_streams_per_agent = 8\n";
    let server = server().directory(&home.0).settings(limit).start();
    let client = server.client().http2();
    let mut connection = client.connection();
    let request = listen(&client, &["gatewren:///public"]);
    let mut streams: Vec<Stream> = (0..8).map(|_| request.open_over(&mut connection)).collect();
    for stream in &mut streams {
        stream.message();
    }
    let refused = request.send_over(&mut connection);
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(
        server.client().session("2025-06-18").get().send().status,
        503
    );
    streams.pop();
    let begun = Instant::now();
    loop {
        let mut stream = request.open_over(&mut connection);
        if stream.status() == 200 {
            stream.message();
            break;
        }
        assert!(begun.elapsed() < IN_TIME, "its place never came free");
    }
}

#[test]
fn l6_l7_a_server_that_stops_ends_each_stream_with_its_result() {
    let mut server = server().start();
    let mut streams = Vec::new();
    for (n, (way, client)) in server.clients().into_iter().enumerate() {
        let mut stream = listen(&client, &["gatewren:///public/quiet"])
            .id(json!(n))
            .open();
        stream.message();
        streams.push((way, stream));
    }
    server.signal(Signal::SIGTERM);
    for (n, (way, stream)) in streams.iter_mut().enumerate() {
        let last = stream.message();
        assert_eq!(last["id"], n, "{way}: {last}");
        assert_eq!(last["result"]["resultType"], "complete");
        assert_eq!(subscription_id(&last), n);
        stream.ends();
    }
    assert_eq!(server.ended().code(), Some(0));
}

#[test]
fn h16_a_subscription_is_given_to_who_takes_anything() {
    let server = shared("operate");
    let request = listen(&server.client(), &["gatewren:///public"]);
    for taken in ["*/*", "text/event-stream", "application/json, */*;q=0.1"] {
        let mut stream = request.clone().accept(taken).open();
        assert_eq!(stream.status(), 200, "{taken}");
        stream.message();
    }
    assert_eq!(request.clone().without("accept").open().status(), 200);
    let answer = request.accept("application/json").send();
    assert_eq!(answer.verdict(), (406, -32_600));
}

#[test]
fn l4_a_flag_of_a_filter_is_true_or_false() {
    let server = shared("operate");
    for flag in [
        "toolsListChanged",
        "promptsListChanged",
        "resourcesListChanged",
    ] {
        let request = server.client().modern("subscriptions/listen");
        let request = request.param("notifications", json!({ flag: "yes" }));
        assert_eq!(request.send().verdict(), (200, -32_602), "{flag}");
    }
}
