//! Tests one property of every place where a person decides: two different values of an argument never look the
//! same.

use serde_json::{Map, Value, json};

use super::context::InboxContext;
use super::print;
use gatewren_base::config::Preset;
use gatewren_base::sys::{Scratch, random_bytes};
use gatewren_gate::auth::Principal;
use gatewren_gate::owner_actions::Staleness;
use gatewren_gate::policy::question;
use gatewren_owner::argument_list;
use gatewren_server::app::tables;
use gatewren_store::vault::{Change, Vault};
use gatewren_wire::registry::Tool;

/// Values that a rendering could confuse: by masking, cutting, trimming, hiding characters, or mixing up types.
fn pairs() -> Vec<(Value, Value)> {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj0lSdKlYVp6ZNLlGWhQoWWaHGMYSH7+k4ZlTmN3izj";
    let long = |end: char| json!(format!("{}{end}", "x".repeat(3_000)));
    vec![
        (json!(format!("{key} me")), json!(format!("{key} you"))),
        (json!("hunter2"), json!("hunter3")),
        (json!("x --token abc"), json!("x --token abd")),
        (
            json!({ "DB_PASSWORD": "id" }),
            json!({ "DB_PASSWORD": "rm" }),
        ),
        (long('a'), long('b')),
        (json!("a"), json!("a ")),
        (json!("a"), json!("a\n")),
        (json!(""), json!("\n")),
        (json!("a\n\nb"), json!("a\n\n\nb")),
        (json!("a b"), json!("a  b")),
        (json!("a\tb"), json!("a b")),
        (json!("a"), json!("a\u{200b}")),
        (json!("a"), json!("\u{430}")),
        (json!("\u{e9}"), json!("e\u{301}")),
        (json!("\u{202e}ab"), json!("ba")),
        (json!("\u{200b}"), json!("\\u{200b}")),
        (json!("5"), json!(5)),
        (json!("null"), json!(null)),
        (json!("[\n  1\n]"), json!([1])),
        (json!(["a", "b"]), json!(["a\",\n  \"b"])),
        (json!(1), json!(1.0)),
        (json!(true), json!("true")),
    ]
}

/// A random text of pieces that are often confused.
fn random_value() -> Value {
    const PIECES: [&str; 12] = [
        "a",
        " ",
        "\n",
        "\t",
        "\u{200b}",
        "\\",
        "u{",
        "\\u{200b}",
        "\u{43e}",
        "\"",
        "}",
        "\u{e0041}",
    ];
    let bytes: [u8; 6] = random_bytes().unwrap();
    let piece = |byte: &u8| PIECES[usize::from(*byte) % PIECES.len()];
    json!(bytes.iter().map(piece).collect::<String>())
}

/// A change that proposes this call.
fn change(tool: &Tool, arguments: &Map<String, Value>) -> Change {
    // The digest is the same for all changes, so it cannot make them look different.
    let arguments = Value::Object(arguments.clone()).to_string();
    Change::waiting("chg_0000000000000001", tool.name(), arguments)
}

/// What a person sees of a call: the question, the owner's page, and `inbox show`.
fn render_call(inbox: &InboxContext, tool: &Tool, arguments: &Map<String, Value>) -> [String; 3] {
    let who = Principal::without_token("claude", Preset::Admin);
    let change = change(tool, arguments);
    let asked = question(&who, tool, arguments, None).unwrap().message;
    let page = argument_list(&change, &Value::Null).into_string();
    let printed = print::page(inbox, &change, &Staleness::RestsOnNothing);
    [asked, page, printed]
}

#[test]
fn two_different_values_of_any_argument_of_any_tool_are_shown_differently() {
    let scratch = Scratch::new();
    let inbox = InboxContext::new(Vault::open(&scratch.join("vault.db")).unwrap()).unwrap();
    let mut pairs = pairs();
    pairs.extend((0..20).map(|_| (random_value(), random_value())));
    pairs.retain(|(one, other)| one != other);
    let mut checked = 0;
    for tool in tables().unwrap().tools() {
        let schema = serde_json::to_value(&tool.definition().input_schema).unwrap();
        let names = schema["properties"].as_object();
        for name in names.into_iter().flat_map(Map::keys) {
            for (one, other) in &pairs {
                let with = |value: &Value| Map::from_iter([(name.clone(), value.clone())]);
                let (first, second) = (with(one), with(other));
                let seen = render_call(&inbox, tool, &first)
                    .into_iter()
                    .zip(render_call(&inbox, tool, &second));
                for (first, second) in seen {
                    assert_ne!(first, second, "{} {name}: {one} and {other}", tool.name());
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 5_000, "only {checked}");
}

#[test]
fn a_line_of_the_list_has_all_of_the_arguments_or_none() {
    let scratch = Scratch::new();
    let inbox = InboxContext::new(Vault::open(&scratch.join("vault.db")).unwrap()).unwrap();
    let catalog = tables().unwrap();
    let tool = catalog.tool("system_shell").unwrap();
    let line = |command: &str| {
        let arguments = json!({ "command": command });
        let change = change(tool, arguments.as_object().unwrap());
        print::cells(&inbox, &change)[6].clone()
    };
    assert_eq!(
        line("mysql --password=x"),
        r#"{"command":"mysql --password=x"}"#
    );
    let long = line(&format!("echo ok{}; id", " # harmless".repeat(20)));
    assert!(
        !long.contains("echo") && long.contains("gatewren inbox show chg_"),
        "{long}"
    );
}
