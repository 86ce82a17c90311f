//! The kernel's messages, from the journal or, on a host without one, from the kernel itself.

use std::path::Path;

use serde_json::json;

use crate::support::agents::admit;
use crate::support::machine::{is_root, skip};
use crate::support::server::server;

#[test]
fn the_kernels_messages_are_shown_and_paged_with_and_without_a_journal() {
    if !is_root() || !Path::new("/dev/kmsg").exists() {
        return skip("the kernel's messages need root and /dev/kmsg");
    }
    let settings = "[spaces.meadow]\ncontainers = [\"web\"]\n";
    let server = server().policy("admin").settings(settings).start();
    let client = server.client();
    let page = |arguments| client.call("kernel_logs", arguments).send().data();
    let newest = page(json!({ "limit": 2 }));
    let lines = newest["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2, "{newest}");
    assert!(
        lines.iter().all(|line| line["identifier"] == "kernel"),
        "{newest}"
    );
    assert!(
        lines[0]["time"].as_str().unwrap().ends_with('Z'),
        "{newest}"
    );
    let older = json!({ "limit": 2, "cursor": newest["start_cursor"], "before": true });
    let older = page(older);
    assert_eq!(older["lines"].as_array().unwrap().len(), 2, "{older}");
    assert_ne!(older["end_cursor"], newest["start_cursor"]);
    let again = json!({ "limit": 2, "cursor": older["end_cursor"] });
    assert_eq!(page(again)["lines"], newest["lines"]);
    let boots = client.call("boot_list", json!({})).send().data();
    assert_eq!(boots["boots"][0]["boot"], 0, "{boots}");

    let narrow = admit(
        &server,
        "narrow",
        &["--policy", "admin", "--space", "meadow"],
    );
    let denied = narrow.call("kernel_logs", json!({})).send().rpc();
    let absent = narrow.call("no_such_tool", json!({})).send().rpc();
    let words =
        |answer: &serde_json::Value| answer["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(
        words(&denied).replace("kernel_logs", "X"),
        words(&absent).replace("no_such_tool", "X")
    );
}
