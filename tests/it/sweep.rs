//! Calls every existing tool with good and with bad arguments, made from its schema.
//!
//! A new tool is therefore tested from its first day. Values for names that must exist are in a table in `spaces.rs`.
//! No call changes the host: they come from an agent that may only read, so all other calls become proposals.
//! Arguments are parsed before a proposal, as before a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use crate::spaces::value;
use crate::support::client::{Client, Connection};
use crate::support::command::tell_by;
use crate::support::container::Containers;
use crate::support::cores::core;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server};

/// An existing container, which runs where containers can.
pub const CONTAINER: &str = "sweep-x7q";

/// Pairs of arguments that exclude each other; the second is left out when all are given.
const EITHER: &[(&str, &str)] = &[("command", "argv"), ("value", "json")];

/// Arguments that are always given, because a call takes long without them.
const ALSO: &[(&str, &str)] = &[
    ("disk_usage", "path"),
    ("dns_query", "server"),
    ("job_wait", "timeout_s"),
];

/// Arguments with arbitrary text: it is always data. For each, the reason states why it reaches no shell, path or
/// option against the caller's intent.
const FREE: &[(&str, &str)] = &[
    (
        "command",
        "a line for the shell, which is what these tools are for",
    ),
    (
        "argv",
        "a program and its arguments, which is what these tools are for",
    ),
    ("env", "variables of such a program"),
    (
        "user",
        "a name, looked up among the users when the command is run",
    ),
    ("cwd", "a directory, entered when the command is run"),
    ("reason", "words for a person, shown as data"),
    ("title", "words for the owner, sent as data"),
    ("message", "words for the owner, sent as data"),
    ("channel", "compared with the names of the channels"),
    ("pretty_name", "a name for people, checked when it is set"),
    (
        "text",
        "what a file holds then, or words that are looked for",
    ),
    (
        "base64",
        "what a file holds then, decoded before anything is written",
    ),
    ("comment", "words for a person, kept with a snapshot"),
    ("grep", "a pattern, which is one argument and only compared"),
    ("query", "words that are looked for"),
    ("id", "a URI, which names a resource or nothing"),
    (
        "arguments",
        "another tool's, which are read when it is called",
    ),
    ("database", "compared with the name of the database"),
    ("change", "the id of a change, which is one's own or none"),
    (
        "pointer",
        "a JSON Pointer, which leads into a document and nowhere else",
    ),
    (
        "account",
        "compared with the accounts that the owner's file names",
    ),
    (
        "table",
        "compared with the names of the tables that there are",
    ),
    ("tool", "the name of a tool, which is there or not"),
    (
        "schedule",
        "the id or name of a schedule, which is one's own or none",
    ),
];

/// A host with a container, and an agent on it.
struct Box {
    containers: Option<Containers>,
    server: Server,
    client: Client,
    connection: Connection,
    /// A directory that no hostile text may change.
    canary: Directory,
}

impl Box {
    fn new() -> Self {
        let mut containers = Containers::new();
        // No server listens at this address.
        let channel =
            "[notify.nobody]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\non = []\n";
        let mut settings = format!("[inbox]\nper_agent = 4096\n{channel}");
        if let Some(containers) = &mut containers {
            containers.make(CONTAINER);
            containers.tool("lxc-start", CONTAINER, &["-d"]);
            containers.until_ready(CONTAINER);
            let path = containers.lxcpath().display();
            settings = format!("{settings}[lxc]\nlxcpath = \"{path}\"\n");
        }
        let server = server().policy("admin").settings(&settings).start();
        // With toolsets, a list is in full: with limits, and schemas of answers.
        let toolsets = toolsets();
        let toolsets = toolsets
            .iter()
            .flat_map(|name| ["--toolset", name.as_str()]);
        let mut edit = vec!["agent", "edit", "try"];
        edit.extend(toolsets.clone());
        tell_by(&server.settings_file(), &edit);
        let mut args = vec![
            "agent", "add", "sweeper", "--policy", "admin", "--space", "*",
        ];
        args.extend(toolsets);
        for mode in [
            "read=allow",
            "scan=allow",
            "reveal=allow",
            "write=propose",
            "disrupt=propose",
            "execute=propose",
            "persist=propose",
        ] {
            args.extend(["--mode", mode]);
        }
        let said = tell_by(&server.settings_file(), &args);
        let client = server.client().with_token(said["token"].as_str().unwrap());
        for list in [&client, &server.client()].map(|client| client.modern("tools/list")) {
            wait_until("its list is in full", IN_TIME, || {
                list.send().body.contains("outputSchema")
            });
        }
        Self {
            containers,
            connection: client.connection(),
            client,
            server,
            canary: Directory::new(),
        }
    }

    /// Returns every tool, as the server lists it.
    fn tools(&self) -> Vec<Value> {
        let admin = self.server.client().modern("tools/list").send().result();
        let own = self.client.modern("tools/list").send().result();
        for list in [&admin, &own] {
            assert!(list.get("nextCursor").is_none(), "read on");
        }
        let (admin, own) = (admin["tools"].clone(), own["tools"].clone());
        let mut tools = admin.as_array().unwrap().clone();
        let more = own.as_array().unwrap().iter();
        tools.extend(
            more.filter(|tool| tools.iter().all(|known| known["name"] != tool["name"]))
                .cloned()
                .collect::<Vec<_>>(),
        );
        tools
    }

    /// Returns the response to a call: a result, or an error of the protocol.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let request = self.client.call(tool, arguments.clone());
        let answer = request.send_over(&mut self.connection);
        assert_eq!(answer.status, 200, "{tool}: {}", answer.body);
        answer.rpc()
    }

    /// Returns texts that would have an effect in a shell, a path, an option or a terminal.
    fn hostile(&self) -> Vec<String> {
        let file = self.canary.join("touched");
        let file = file.display();
        vec![
            "-rf".to_owned(),
            "--help".to_owned(),
            format!("--output={file}"),
            "../../../../etc/shadow".to_owned(),
            "/public/../../etc/shadow".to_owned(),
            "..".to_owned(),
            format!("a; touch {file}"),
            format!("$(touch {file})"),
            format!("`touch {file}`"),
            format!("a\ntouch {file}\n"),
            "a\0b".to_owned(),
            "\u{1b}[2J\u{1b}]0;owned\u{7}".to_owned(),
            "\u{202e}gnp.exe".to_owned(),
            String::new(),
            " ".to_owned(),
            "%s%n%x".to_owned(),
            "x".repeat(1_000_000),
        ]
    }

    /// Returns every file of the containers' definitions, and whether the container runs.
    fn state_of_things(&self) -> BTreeMap<String, (u64, Option<SystemTime>)> {
        let mut found = BTreeMap::new();
        if let Some(containers) = &self.containers {
            walk(containers.lxcpath(), &mut found);
            found.insert(containers.state(CONTAINER), (0, None));
        }
        walk(&self.canary.0, &mut found);
        found
    }
}

/// Returns all toolsets but that of the policy `suggest`, which has tools of its own.
pub fn toolsets() -> Vec<String> {
    let golden = fs::read_dir("tests/golden").unwrap();
    let names = golden.map(|file| file.unwrap().file_name().into_string().unwrap());
    let toolset = |name: &String| {
        Some(
            name.strip_prefix("tools-")?
                .strip_suffix(".json")?
                .to_owned(),
        )
    };
    let names: Vec<String> = names.collect();
    let toolsets = names.iter().filter_map(toolset);
    toolsets.filter(|name| name != "suggest").collect()
}

/// Collects the files below a directory, except those that a running container writes.
fn walk(folder: &Path, found: &mut BTreeMap<String, (u64, Option<SystemTime>)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, facts) = (entry.path(), entry.metadata().unwrap());
        if facts.is_dir() {
            if entry.file_name() != "rootfs" {
                walk(&path, found);
            }
        } else {
            let what = (facts.len(), facts.modified().ok());
            found.insert(path.display().to_string(), what);
        }
    }
}

/// Returns a value that fits a schema: the smallest, or the largest.
fn made(name: &str, schema: &Value, full: bool) -> Value {
    if let Some(values) = schema["enum"].as_array() {
        return if full {
            values[values.len() - 1].clone()
        } else {
            values[0].clone()
        };
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => {
            let bound = schema[if full { "maximum" } else { "minimum" }].clone();
            if bound.is_number() {
                bound
            } else {
                value(name, CONTAINER)
            }
        }
        Some("boolean") => json!(full),
        Some("array") => {
            let item = &schema["items"];
            let is_plain = item["type"] != "object" && item["enum"].is_null();
            if is_plain {
                value(name, CONTAINER)
            } else {
                json!([made(name, item, full)])
            }
        }
        Some("object") if schema["properties"].is_object() => arguments(schema, full),
        // By its name: the value must exist, and the schema does not list what exists.
        _ => value(name, CONTAINER),
    }
}

/// Returns the smallest set of arguments that a tool accepts, or the largest.
pub fn arguments(schema: &Value, full: bool) -> Value {
    let required = required(schema);
    let properties = schema["properties"].as_object().unwrap();
    let given = properties
        .iter()
        .filter(|(name, _)| full || required.contains(&name.as_str()));
    let mut made: Map<String, Value> = given
        .map(|(name, inner)| (name.clone(), made(name, inner, full)))
        .collect();
    for (kept, left_out) in EITHER {
        if made.contains_key(*kept) {
            made.remove(*left_out);
        } else if properties.contains_key(*kept) {
            // One of the two must be given.
            made.insert((*kept).to_owned(), value(kept, CONTAINER));
        }
    }
    Value::Object(made)
}

/// Adds the arguments that are always given to a tool.
pub fn also(tool: &str, mut arguments: Value) -> Value {
    let is_name = ["update_check", "watch_delete", "watch_pause"].contains(&tool);
    if tool == "schedule_create" || is_name && !arguments["name"].is_null() {
        // A name and no pattern, which the same argument of other tools is.
        arguments["name"] = json!("nightly");
    }
    if tool == "watch_create" {
        arguments = json!({ "name": "web", "kind": "container", "container": CONTAINER });
    }
    for (_, argument) in ALSO.iter().filter(|(of, _)| *of == tool) {
        arguments[*argument] = value(argument, CONTAINER);
    }
    arguments
}

fn required(schema: &Value) -> Vec<&str> {
    let names = schema["required"].as_array();
    names
        .into_iter()
        .flatten()
        .map(|name| name.as_str().unwrap())
        .collect()
}

/// Returns values of every type other than the schema's.
fn of_other_types(schema: &Value) -> Vec<Value> {
    let all = [
        ("string", json!("x")),
        ("integer", json!(1)),
        ("number", json!(1.5)),
        ("boolean", json!(true)),
        ("array", json!([])),
        ("object", json!({})),
    ];
    let own = schema["type"].as_str().unwrap_or_default();
    let fits = |kind: &str| kind == own || own == "number" && kind == "integer";
    all.into_iter()
        .filter(|(kind, _)| !fits(kind))
        .map(|(_, value)| value)
        .collect()
}

/// Returns the error of a rejected call, and asserts that it is clear, short, and has no terminal control characters.
fn refusal(tool: &str, what: &str, rpc: &Value) -> String {
    let failed = rpc["result"]["isError"] == true;
    let words = rpc["result"]["content"][0]["text"].as_str();
    let words = words
        .filter(|_| failed)
        .or_else(|| rpc["error"]["message"].as_str());
    let words = words.unwrap_or_else(|| panic!("{tool} takes {what}: {}", short(rpc)));
    assert!(
        (10..2000).contains(&words.len()),
        "{tool}, {what}: {} letters: {words:.200}",
        words.len()
    );
    assert!(
        !words.contains(['\0', '\u{1b}', '\u{202e}', '\u{7}']),
        "{tool}, {what}: {words:?}"
    );
    assert_ne!(rpc["error"]["code"], -32_603, "{tool}, {what}: {words}");
    assert_eq!(repeated(words), None, "{tool}, {what}: {words}");
    words.to_owned()
}

/// Returns what an error says twice: a sentence, or a tool's name in the error and in its hint.
fn repeated(words: &str) -> Option<&str> {
    // The error may quote a value of several lines.
    let (error, hint) = words.rsplit_once('\n')?;
    let is_of_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let names = hint.split(|c| !is_of_name(c));
    let sentences = hint.split_inclusive('.').map(str::trim);
    let mut parts = names
        .filter(|name| name.contains('_'))
        .chain(sentences.filter(|sentence| !sentence.is_empty()));
    parts.find(|part| error.contains(part) || hint.matches(part).count() > 1)
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(600).collect()
}

fn with(base: &Value, name: &str, value: Value) -> Value {
    let mut arguments = base.clone();
    arguments[name] = value;
    arguments
}

#[test]
fn arguments_that_a_schema_allows_are_taken_and_answered_as_it_says() {
    let _core = core();
    let mut place = Box::new();
    let mut checked = 0;
    for tool in place.tools() {
        let name = tool["name"].as_str().unwrap().to_owned();
        for full in [false, true] {
            let given = also(&name, arguments(&tool["inputSchema"], full));
            let rpc = place.call(&name, &given);
            let result = &rpc["result"];
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            assert!(
                !text.starts_with("invalid argument"),
                "{name} {given}: {text}"
            );
            assert!(result.is_object(), "{name} {given}: {}", short(&rpc));
            let answer = &result["structuredContent"];
            // The response to a proposal is a change.
            let is_change = answer["change"].is_string() && answer["applied"] == false;
            if result["isError"] == true {
                refusal(&name, "good arguments", &rpc);
            } else if !is_change {
                fits(answer, &tool["outputSchema"], &name);
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "only {checked} answers");
}

#[test]
fn what_changes_a_container_answers_as_its_schema_says() {
    let _core = core();
    let mut place = Box::new();
    if place.containers.is_none() {
        return;
    }
    for class in ["write", "disrupt", "execute", "persist"] {
        let mode = format!("{class}=allow");
        tell_by(
            &place.server.settings_file(),
            &["agent", "edit", "sweeper", "--mode", &mode],
        );
    }
    let listed = place.client.modern("tools/list");
    wait_until("it may do everything", IN_TIME, || {
        !listed.send().body.contains("Needs approval")
    });
    let tools = place.tools();
    for (name, more) in [
        ("container_stop", json!({ "grace_s": 0 })),
        ("container_start", json!({})),
        ("container_restart", json!({ "grace_s": 0 })),
        ("container_shell", json!({ "command": "echo hi" })),
    ] {
        let mut given = more;
        given["container"] = json!(CONTAINER);
        let rpc = place.call(name, &given);
        assert_eq!(rpc["result"]["isError"], false, "{}", short(&rpc));
        let mut listed = tools.iter().filter(|tool| tool["name"] == name);
        let schema = &listed.next().unwrap()["outputSchema"];
        assert!(schema.is_object(), "{name}");
        fits(&rpc["result"]["structuredContent"], schema, name);
    }
}

#[test]
fn arguments_that_no_schema_allows_are_refused_and_change_nothing() {
    let _core = core();
    let mut place = Box::new();
    let before = place.state_of_things();
    for tool in place.tools() {
        let name = tool["name"].as_str().unwrap().to_owned();
        let schema = &tool["inputSchema"];
        let least = also(&name, arguments(schema, false));
        let unknown = with(&least, "no_such_argument", json!(1));
        let words = refusal(&name, "an unknown argument", &place.call(&name, &unknown));
        assert!(words.contains("no_such_argument"), "{name}: {words}");
        for (argument, inner) in schema["properties"].as_object().unwrap() {
            if required(schema).contains(&argument.as_str()) {
                let mut without = least.clone();
                without.as_object_mut().unwrap().remove(argument);
                let words = refusal(&name, "nothing", &place.call(&name, &without));
                assert!(words.contains(argument), "{name}: {words}");
            }
            // A schema has one type, so that every client can hand it on; this argument takes all of JSON's.
            let takes_all = (name.as_str(), argument.as_str()) == ("state_put", "value");
            for wrong in of_other_types(inner).into_iter().filter(|_| !takes_all) {
                let rpc = place.call(&name, &with(&least, argument, wrong.clone()));
                let words = refusal(&name, &format!("{argument} = {wrong}"), &rpc);
                assert!(
                    words.contains(argument),
                    "{name}, {argument} = {wrong}: {words}"
                );
            }
        }
    }
    assert_eq!(place.state_of_things(), before);
}

/// Every how many hostile texts one is tried, if its type has already had all. It does not divide their number, so
/// that other tools get other texts.
const EACH: usize = 4;

#[test]
#[ignore = "long: hostile texts in each argument of each tool"]
fn hostile_text_is_data_or_is_refused() {
    let _core = core();
    let mut place = Box::new();
    let before = place.state_of_things();
    let (mut taken, mut kinds, mut turn) = (Vec::new(), BTreeSet::new(), 0_usize);
    for tool in place.tools() {
        let name = tool["name"].as_str().unwrap().to_owned();
        let schema = &tool["inputSchema"];
        let least = also(&name, arguments(schema, false));
        for (argument, inner) in schema["properties"].as_object().unwrap() {
            let in_list = inner["type"] == "array" && inner["items"]["type"] == "string";
            if inner["type"] != "string" && !in_list {
                continue;
            }
            let is_free = FREE.iter().any(|(free, _)| free == argument);
            // An empty text counts as absent where it can mean nothing else; wire::registry decides where.
            let is_optional = !required(schema).contains(&argument.as_str());
            // The same name and shape make one type: its first argument gets all texts, later ones some, in turn.
            let is_first = kinds.insert(format!("{argument} {inner}"));
            for text in place.hostile() {
                turn += 1;
                if !is_first && !turn.is_multiple_of(EACH) {
                    continue;
                }
                let what = format!(
                    "{argument} = {:?}",
                    text.chars().take(40).collect::<String>()
                );
                let value = if in_list { json!([text]) } else { json!(text) };
                let rpc = place.call(&name, &with(&least, argument, value));
                if rpc["error"].is_object() || rpc["result"]["isError"] == true {
                    refusal(&name, &what, &rpc);
                } else if !(is_free || text.is_empty() && is_optional) {
                    taken.push(format!("{name} takes {what}"));
                }
                let shown = rpc["result"]["content"][0]["text"]
                    .as_str()
                    .unwrap_or_default();
                assert!(
                    !shown.contains(['\u{1b}', '\u{202e}']),
                    "{name}, {what}: {shown:.300}"
                );
            }
        }
    }
    assert_eq!(
        taken, [""; 0],
        "an argument that names something is of a type that refuses what names nothing; one whose text is the \
         caller's own business stands in FREE, with the reason"
    );
    assert_eq!(place.state_of_things(), before);
}

/// Asserts that a value fits a schema, as far as gatewren's schemas go; absent values are left out and never null.
fn fits(value: &Value, schema: &Value, place: &str) {
    if let Some(values) = schema["enum"].as_array() {
        assert!(
            values.contains(value),
            "{place}: {value} is none of {values:?}"
        );
    }
    let kind = schema["type"].as_str();
    let is = match kind {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    assert!(is, "{place}: {} is no {kind:?}", short(value));
    for name in required(schema) {
        assert!(
            value.get(name).is_some(),
            "{place}: {name} is always there, says the schema: {}",
            short(value)
        );
    }
    if let (Some(members), Some(properties)) = (value.as_object(), schema["properties"].as_object())
    {
        for (name, inner) in members {
            let place = format!("{place}/{name}");
            let known = properties.get(name);
            // Tools that wait for the state add the revision.
            assert!(
                known.is_some() || name == "revision",
                "{place} is not in the schema"
            );
            let known = known.unwrap_or(&Value::Null);
            assert!(
                !inner.is_null() || known["type"].is_null(),
                "{place} is null"
            );
            fits(inner, known, &place);
        }
    }
    for (at, inner) in value.as_array().into_iter().flatten().enumerate() {
        fits(inner, &schema["items"], &format!("{place}/{at}"));
    }
}
