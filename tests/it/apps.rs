//! MCP Apps: cards for the clients that declare them, and nothing of them for the others (N of the checklist).

use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::client::Client;
use crate::support::request::Request;
use crate::support::server::{server, shared, shared_fixtures};

const EXTENSION: &str = "io.modelcontextprotocol/ui";
const MEDIA_TYPE: &str = "text/html;profile=mcp-app";
const CHANGE: &str = "ui://gatewren/change";
const SERVER: &str = "ui://gatewren/server";

/// The capabilities of a client that shows cards.
fn showing() -> Value {
    json!({ "extensions": { EXTENSION: { "mimeTypes": [MEDIA_TYPE] } } })
}

/// The capabilities of clients that do not, the last of which know the extension with other types.
fn not_showing() -> [Value; 4] {
    [
        json!({}),
        json!({ "extensions": {} }),
        json!({ "extensions": { EXTENSION: {} } }),
        json!({ "extensions": { EXTENSION: { "mimeTypes": ["text/html"] } } }),
    ]
}

/// Returns a request of this method for each era, by a client that declares these capabilities.
fn in_every_era(client: &Client, method: &str, declared: &Value) -> Vec<(String, Request)> {
    let modern = client.modern(method);
    let modern = modern.mcp_meta("clientCapabilities", declared.clone());
    let mut requests = vec![("2026-07-28".to_owned(), modern)];
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = client.session_with(version, declared.clone());
        requests.push((version.to_owned(), session.request(method)));
    }
    requests
}

fn listed(request: &Request, list: &str) -> Vec<Value> {
    request.send().result()[list].as_array().unwrap().clone()
}

/// Returns the `_meta` of a tool in a list.
fn meta<'t>(tools: &'t [Value], name: &str) -> &'t Value {
    let tool = tools.iter().find(|tool| tool["name"] == name);
    &tool.unwrap_or_else(|| panic!("no {name}"))["_meta"]["ui"]
}

#[test]
fn n1_the_extension_is_declared_to_a_client_that_declares_it() {
    let server = shared("observe");
    let client = server.client();
    let opened = |version: &str, declared: Value| {
        let session = client.session_with(version, declared);
        session.opened.result()["capabilities"]["extensions"][EXTENSION].clone()
    };
    let found = |declared: Value| {
        let request = client.modern("server/discover");
        let answer = request.mcp_meta("clientCapabilities", declared).send();
        answer.result()["capabilities"]["extensions"][EXTENSION].clone()
    };
    assert_eq!(found(showing()), json!({}));
    for declared in not_showing() {
        assert_eq!(found(declared), Value::Null);
    }
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(opened(version, showing()), json!({}), "{version}");
        for declared in not_showing() {
            assert_eq!(opened(version, declared), Value::Null, "{version}");
        }
    }
}

#[test]
fn n2_other_clients_see_no_card_in_any_list() {
    let server = shared("operate");
    let client = server.client();
    for declared in not_showing() {
        for (method, list) in [("tools/list", "tools"), ("resources/list", "resources")] {
            for (era, request) in in_every_era(&client, method, &declared) {
                for entry in listed(&request, list) {
                    assert!(entry.get("_meta").is_none(), "{era}: {entry}");
                    assert!(!entry.to_string().contains("ui://"), "{era}: {entry}");
                }
            }
        }
        for (era, request) in in_every_era(&client, "resources/read", &declared) {
            let code = request.uri(CHANGE).send().verdict().1;
            assert!([-32_602, -32_002].contains(&code), "{era}: {code}");
        }
    }
    // The reference fixtures have no inbox and no host.
    let client = shared_fixtures().client();
    for (era, request) in in_every_era(&client, "resources/list", &showing()) {
        let entries = listed(&request, "resources");
        assert!(!json!(entries).to_string().contains("ui://"), "{era}");
    }
}

#[test]
fn n3_a_card_is_one_small_page_without_domains() {
    let server = shared("observe");
    let client = server.client();
    for (era, request) in in_every_era(&client, "resources/list", &showing()) {
        let resources = listed(&request, "resources");
        for uri in [CHANGE, SERVER] {
            let entry = resources.iter().find(|entry| entry["uri"] == uri);
            assert_eq!(entry.unwrap()["mimeType"], MEDIA_TYPE, "{era}");
        }
    }
    for uri in [CHANGE, SERVER] {
        for (era, request) in in_every_era(&client, "resources/read", &showing()) {
            let result = request.uri(uri).send().result();
            let contents = &result["contents"][0];
            assert_eq!(contents["uri"], uri, "{era}");
            assert_eq!(contents["mimeType"], MEDIA_TYPE, "{era}");
            let csp = contents["_meta"]["ui"]["csp"].as_object().unwrap();
            assert_eq!(csp.len(), 4, "{era}: {csp:?}");
            assert!(csp.values().all(|domains| *domains == json!([])), "{csp:?}");
            let text = contents["text"].as_str().unwrap();
            assert!(text.len() < 25_000, "{uri}: {}", text.len());
            assert!(text.starts_with("<!doctype html>"), "{uri}");
            let page = format!("data-page=\"https://{}\"", server.address());
            assert!(text.contains(&page), "{uri} opens another page than {page}");
        }
    }
    let unknown = client.modern("resources/read").uri("ui://gatewren/none");
    let unknown = unknown.mcp_meta("clientCapabilities", showing());
    assert_eq!(unknown.send().verdict().1, -32_602);
}

#[test]
fn n4_tools_are_linked_to_the_card_of_what_they_return() {
    let server = server().settings("").start();
    let all = ["--toolset", "all", "--mode", "write=propose"];
    let client = admit(
        &server,
        "all",
        &[&["--policy", "operate"][..], &all].concat(),
    );
    for (era, request) in in_every_era(&client, "tools/list", &showing()) {
        let tools = listed(&request, "tools");
        for name in ["container_list", "server_metrics", "changes_since"] {
            assert_eq!(
                meta(&tools, name),
                &json!({ "resourceUri": SERVER }),
                "{era}"
            );
        }
        assert_eq!(
            meta(&tools, "change_get"),
            &json!({ "resourceUri": CHANGE }),
            "{era}"
        );
        assert_eq!(meta(&tools, "whoami"), &Value::Null, "{era}");
        // Its calls wait for the owner, so each returns a change. No card may call it.
        let proposed = json!({ "resourceUri": CHANGE, "visibility": ["model"] });
        assert_eq!(meta(&tools, "container_start"), &proposed, "{era}");
        for tool in &tools {
            let reads =
                tool["annotations"]["readOnlyHint"] == true && tool["name"] != "propose_change";
            let visibility = &tool["_meta"]["ui"]["visibility"];
            assert_eq!(*visibility == json!(["model"]), !reads, "{era}: {tool}");
        }
    }
    let suggest = admit(&server, "suggest", &["--policy", "suggest"]);
    for (era, request) in in_every_era(&suggest, "tools/list", &showing()) {
        let tools = listed(&request, "tools");
        let proposing = json!({ "resourceUri": CHANGE, "visibility": ["model"] });
        assert_eq!(meta(&tools, "propose_change"), &proposing, "{era}");
    }
}

#[test]
fn n5_a_list_is_the_same_for_clients_that_take_turns() {
    let server = shared("observe");
    let client = server.client();
    for declared in [showing(), json!({}), showing(), json!({})] {
        let has_cards = declared == showing();
        for (era, request) in in_every_era(&client, "tools/list", &declared) {
            let text = json!(listed(&request, "tools")).to_string();
            assert_eq!(text.contains("ui://"), has_cards, "{era}");
        }
    }
}
