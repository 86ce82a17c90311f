//! Command output beyond the response: cut in the middle, linked, readable only by the agent that ran the command.

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::{add_agent, tell_by};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};

/// The most output that a response shows, head and tail together, with the note of how much is missing.
const SHOWN: usize = 41 << 10;

/// Returns lines of nine bytes, each with its number.
fn lines(first: usize, last: usize) -> String {
    let mut all: Vec<String> = (first..=last).map(|n| format!("{n:08}")).collect();
    all.push(String::new());
    all.join("\n")
}

fn numbers(last: usize) -> Value {
    json!({ "command": format!("seq -f %08.0f 1 {last}") })
}

/// Returns the response to a shell call, and the URIs that it links to.
fn shell(client: &Client, arguments: Value) -> (Value, Vec<String>) {
    let result = client.call("system_shell", arguments).send().result();
    let blocks = result["content"].as_array().unwrap();
    let links = blocks.iter().filter(|b| b["type"] == "resource_link");
    let links = links.map(|b| b["uri"].as_str().unwrap().to_owned());
    (result.clone(), links.collect())
}

fn read(client: &Client, uri: &str) -> Value {
    client.modern("resources/read").uri(uri).send().rpc()
}

fn house() -> Server {
    server().policy("admin").start()
}

#[test]
fn a_long_output_is_cut_and_the_rest_is_behind_its_link() {
    let server = house();
    let client = server.client();
    let (result, links) = shell(&client, numbers(20_000));
    let shown = result["content"][0]["text"].as_str().unwrap();
    let (_, shown) = shown.split_once("--- stdout\n").unwrap();
    assert!(shown.len() <= SHOWN, "{}", shown.len());
    assert!(shown.starts_with(&lines(1, 100)) && shown.trim_end().ends_with("00020000"));
    assert!(shown.contains("left out"), "the gap is named");
    assert_eq!(links.len(), 1, "{links:?}");
    let read = read(&client, &links[0]);
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text == lines(1, 20_000), "{} bytes", text.len());
}

#[test]
fn a_long_output_is_sent_once_unless_the_list_has_the_schema_of_answers() {
    let server = server().policy("admin").settings("").start();
    let client = server.client();
    let command = json!({ "command": "seq 1 60000" });
    let run = || client.call("system_shell", command.clone()).send();
    let once = run();
    assert!(once.body.len() < 50_000, "{}", once.body.len());
    // Only the output is left out of the data.
    let data = once.data();
    assert!(data["stdout"].is_null(), "{data}");
    assert_eq!(
        (&data["exit_code"], &data["truncated"]),
        (&json!(0), &json!(true))
    );
    let short = client.call("system_shell", json!({ "command": "seq 1 600" }));
    assert_eq!(short.send().data()["exit_code"], 0);
    let edit = ["agent", "edit", "try", "--toolset", "all"];
    tell_by(&server.settings_file(), &edit);
    let list = client.modern("tools/list");
    wait_until("the list is in full", IN_TIME, || {
        list.send().body.contains("outputSchema")
    });
    let data = run().data();
    assert!(data["stdout"].as_str().unwrap().starts_with("1\n2\n"));
    assert_eq!(data["truncated"], true);
}

#[test]
fn what_fits_has_no_link() {
    let server = house();
    let (result, links) = shell(&server.client(), numbers(100));
    assert_eq!(result["structuredContent"]["stdout"], lines(1, 100));
    assert_eq!(links, [""; 0]);
}

#[test]
fn nobody_else_reads_it_and_it_is_in_no_list() {
    let home = Directory::new();
    let server = server().policy("admin").directory(&home.0).start();
    let client = server.client();
    let (_, links) = shell(&client, numbers(20_000));
    let made = add_agent(&home.0, "other", &["--policy", "admin"]);
    let other = server.client().with_token(made["token"].as_str().unwrap());
    let list = other.modern("tools/list");
    wait_until("it comes in", IN_TIME, || list.send().status == 200);
    let denied = read(&other, &links[0]);
    let absent = read(&other, "gatewren:///outputs/out_0000000000000000");
    assert_eq!(denied["error"]["code"], absent["error"]["code"], "{denied}");
    let words = |answer: &Value| answer["error"]["message"].as_str().unwrap().to_owned();
    assert!(!words(&denied).contains("other") && !denied.to_string().contains("00000001"));
    let listed = client.modern("resources/list").send().result().to_string();
    assert!(!listed.contains("outputs/out_"), "{listed}");
    assert!(
        read(&client, &links[0])["result"].is_object(),
        "still its own"
    );
}

#[test]
fn binary_output_is_bytes_and_beyond_what_is_kept_only_its_beginning() {
    let server = house();
    let client = server.client();
    let (_, links) = shell(&client, json!({ "command": "head -c 100000 /dev/zero" }));
    let content = read(&client, &links[0])["result"]["contents"][0].clone();
    assert_eq!(content["mimeType"], "application/octet-stream", "{content}");
    assert!(content["blob"].as_str().unwrap().len() > 130_000);
    // A megabyte: head and tail are kept, and the text states what is missing.
    let (_, links) = shell(&client, numbers(120_000));
    let content = read(&client, &links[0])["result"]["contents"][0].clone();
    let text = content["text"].as_str().unwrap();
    assert!(text.len() < 260 << 10 && text.starts_with(&lines(1, 10_000)));
    assert!(text.ends_with(&lines(119_000, 120_000)) && text.contains("left out"));
}

#[test]
fn the_oldest_gives_way_to_the_seventeenth() {
    let server = house();
    let client = server.client();
    let mut all = Vec::new();
    for _ in 0..17 {
        let (_, mut links) = shell(&client, numbers(6_000));
        all.append(&mut links);
    }
    assert_eq!(all.len(), 17);
    assert!(read(&client, &all[0])["error"].is_object());
    assert!(
        all.iter()
            .skip(1)
            .all(|uri| read(&client, uri)["result"].is_object())
    );
}

#[test]
fn a_command_of_a_container_runtime_is_answered_with_a_note() {
    let server = house();
    let client = server.client();
    // The note is about the command, whether the program is installed or not.
    let absent = json!({ "command": "docker exec no-such-container true" });
    let (result, _) = shell(&client, absent);
    let note = result["structuredContent"]["note"].as_str().unwrap();
    assert!(note.contains("not killed with the call"), "{result}");
    let (result, _) = shell(&client, json!({ "command": "echo docker" }));
    assert!(
        result["structuredContent"].get("note").is_none(),
        "{result}"
    );
}
