//! The question to the person at a client before a call runs.

use serde_json::{Map, Value, json};

use super::disclosure::{deletion_note, key_notes};
use crate::auth::Principal;
use gatewren_base::config::RuntimeKind;
use gatewren_base::sys::{exact_line, text_notes};
use gatewren_wire::registry::{Scope, Tool};

/// The name of the box that must be ticked.
pub const CHECKBOX: &str = "run";

/// The limits for display: bytes of arguments, levels of nesting, and entries on each level. Arguments beyond a
/// limit cannot be shown completely, so the call cannot be confirmed.
const MAX_BYTES: usize = 4 << 10;
const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 128;

/// A question for a person: our text, followed by the agent's arguments as data. The arguments are exactly those of
/// the call, never redacted, because a redacted part could be what the agent wants to run.
#[derive(Debug)]
pub struct ConfirmationQuestion {
    /// The text to show.
    pub message: String,
    /// The form below it: one box.
    pub schema: Value,
}

/// Makes the question about a call, for which the agent may have given a reason. `None` if its arguments are too long
/// to show completely.
pub fn question(
    who: &Principal,
    tool: &Tool,
    arguments: &Map<String, Value>,
    reason: Option<&str>,
) -> Option<ConfirmationQuestion> {
    let arguments = Value::Object(arguments.clone());
    let text = arguments.to_string();
    if text.len() > MAX_BYTES || !is_flat_enough(&arguments, MAX_DEPTH) {
        return None;
    }
    let (name, effect) = (tool.name(), tool.risk().effect());
    let title = tool.definition().title.as_deref().unwrap_or(name);
    let message = format!(
        "The agent \"{}\" asks to run {name} ({title}) on this server.\n\
         It is of the class {}, which {effect}. It is about {}.\n\
         Nothing has been done yet. Tick the box and accept to let it run once, with exactly the arguments below; \
         any other answer refuses it.\n\
         {}\
         The text below was written by the agent, not by this server. Its arguments, as JSON:\n\n    {}{}",
        exact_line(who.name()),
        tool.risk(),
        target(tool, &arguments),
        notes(&arguments, &text),
        exact_line(&text),
        reason.map(reason_line).unwrap_or_default(),
    );
    let tick = json!({
        "type": "boolean",
        "title": "Let it run once",
        "description": "If the box is not ticked, the call is refused.",
        "default": false,
    });
    Some(ConfirmationQuestion {
        message,
        schema: json!({ "type": "object", "properties": { CHECKBOX: tick }, "required": [CHECKBOX] }),
    })
}

/// The reason stands last and on one line, so that it cannot look like the server's own words or an argument.
fn reason_line(reason: &str) -> String {
    format!(
        "\n\nThe reason, in the agent's own words:\n\n    {}",
        exact_line(reason)
    )
}

/// Returns the notes on the arguments, one a line.
fn notes(arguments: &Value, text: &str) -> String {
    let notes = text_notes(text)
        .into_iter()
        .chain(key_notes(arguments))
        .chain(deletion_note("", arguments));
    let lines = notes.map(|note| format!("Note on the arguments: {note}.\n"));
    lines.collect()
}

fn is_flat_enough(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if depth == 0 => false,
        Value::Array(list) => {
            list.len() <= MAX_ENTRIES && list.iter().all(|entry| is_flat_enough(entry, depth - 1))
        }
        Value::Object(fields) => {
            let mut values = fields.values();
            fields.len() <= MAX_ENTRIES && values.all(|entry| is_flat_enough(entry, depth - 1))
        }
        _ => true,
    }
}

/// Returns the target of the call. A name appears in our text only if it cannot be anything but a name.
fn target(tool: &Tool, arguments: &Value) -> String {
    let argument = match tool.scope() {
        Scope::HostOr(argument) if arguments.get(argument).is_none() => {
            return "the host".to_owned();
        }
        Scope::Container(argument) | Scope::HostOr(argument) => argument,
        Scope::Stack(argument) => return stack(arguments.get(argument).and_then(Value::as_str)),
        Scope::Host => return "the host".to_owned(),
        Scope::Server | Scope::Within => return "the whole server".to_owned(),
    };
    match arguments.get(argument).and_then(Value::as_str) {
        Some(name) if is_name(name) => format!("the container {name}"),
        Some(_) => "the container that its arguments name".to_owned(),
        None => {
            "the host, or every container that the agent reaches: its arguments name no container"
                .to_owned()
        }
    }
}

/// Returns the target of a call about a stack.
fn stack(name: Option<&str>) -> String {
    match name {
        Some(name) if is_name(name) => format!("all containers of the stack {name}"),
        _ => "all containers of the stack that its arguments name".to_owned(),
    }
}

/// Whether a text can be nothing but the name of a container or a stack, perhaps after its runtime
/// and before its place.
fn is_name(text: &str) -> bool {
    let (name, place) = match text.split_once(':') {
        Some((runtime, name)) if runtime.parse::<RuntimeKind>().is_ok() => {
            name.split_once('@').unwrap_or((name, ""))
        }
        _ => (text, ""),
    };
    let mut all = name.chars().chain(place.chars());
    all.all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use gatewren_base::config::Preset;
    use gatewren_wire::registry::{Answer, Cx, Result, Risk, Toolset};

    /// Stops something.
    #[derive(Deserialize, JsonSchema)]
    struct AnyArguments {}

    async fn nothing(
        _: std::sync::Arc<()>,
        AnyArguments {}: AnyArguments,
        _: Cx,
    ) -> Result<Answer> {
        Ok(Answer::text("done"))
    }

    fn stop_question(arguments: &Value) -> Option<ConfirmationQuestion> {
        let tools = Toolset::new(().into())
            .answering("stop", Risk::Disrupt, nothing)
            .titled("Stop a container")
            .about(Scope::Container("container"))
            .into_tools();
        let who = Principal::without_token("cla\u{202e}ude", Preset::Admin);
        question(&who, &tools[0], arguments.as_object().unwrap(), None)
    }

    /// Returns our part of the message, and the agent's arguments.
    fn parts(arguments: &Value) -> (String, String) {
        let message = stop_question(arguments).unwrap().message;
        let (ours, theirs) = message.split_once("\n\n    ").unwrap();
        assert!(!theirs.contains('\n') && message.is_ascii(), "{message}");
        (ours.to_owned(), theirs.to_owned())
    }

    #[test]
    fn a_person_sees_who_what_whereto_and_the_arguments() {
        let (ours, theirs) = parts(&json!({ "container": "jellyfin", "grace_s": 5 }));
        for words in [
            r#""cla\u{202e}ude""#,
            "run stop (Stop a container)",
            "class disrupt, which stops",
            "about the container jellyfin.",
            "Tick the box",
        ] {
            assert!(ours.contains(words), "{words}: {ours}");
        }
        assert_eq!(theirs, r#"{"container":"jellyfin","grace_s":5}"#);
    }

    #[test]
    fn the_runtime_of_a_container_is_part_of_its_name() {
        let (ours, _) = parts(&json!({ "container": "docker:jellyfin" }));
        assert!(
            ours.contains("about the container docker:jellyfin."),
            "{ours}"
        );
        for odd in ["other:jellyfin", "docker:a:b", "docker:a b"] {
            let (ours, _) = parts(&json!({ "container": odd }));
            assert!(
                ours.contains("the container that its arguments name"),
                "{ours}"
            );
        }
    }

    #[test]
    fn a_reason_is_one_line_below_the_arguments() {
        let tools = Toolset::new(().into())
            .answering("stop", Risk::Disrupt, nothing)
            .into_tools();
        let who = Principal::without_token("claude", Preset::Admin);
        let asked = question(
            &who,
            &tools[0],
            &Map::new(),
            Some("It hangs.\nTick the box."),
        );
        let message = asked.unwrap().message;
        let (above, reason) = message
            .split_once("in the agent's own words:\n\n    ")
            .unwrap();
        assert!(above.contains("    {}\n\nThe reason"), "{message}");
        assert!(
            reason.contains("It hangs.") && !reason.contains('\n'),
            "{message}"
        );
    }

    #[test]
    fn a_call_about_a_stack_names_it() {
        let tools = Toolset::new(().into())
            .answering("stop", Risk::Disrupt, nothing)
            .about(Scope::Stack("stack"))
            .into_tools();
        let who = Principal::without_token("claude", Preset::Admin);
        let ask = |arguments: Value| {
            let question = question(&who, &tools[0], arguments.as_object().unwrap(), None);
            question.unwrap().message
        };
        let asked = ask(json!({ "stack": "docker:media" }));
        assert!(
            asked.contains("all containers of the stack docker:media."),
            "{asked}"
        );
        let asked = ask(json!({ "stack": "x. It only reads" }));
        assert!(
            asked.contains("the stack that its arguments name"),
            "{asked}"
        );
    }

    #[test]
    fn arguments_cannot_imitate_our_words_or_hide() {
        let imitation = "x\"}\n\nIt is of the class read, which only reads.     Tick\u{2028}\u{200b}\u{202e}\u{feff}\u{430}\u{1b}[2J\u{e0041}";
        let given = json!({ "container": imitation });
        let (ours, theirs) = parts(&given);
        assert!(
            ours.ends_with("as JSON:") && ours.lines().count() == 5,
            "{ours}"
        );
        assert!(
            ours.contains("the container that its arguments name"),
            "{ours}"
        );
        assert!(!theirs.contains("    "), "{theirs}");
        assert!(
            theirs.contains(r"\u{2028}\u{200b}\u{202e}\u{feff}\u{430}"),
            "{theirs}"
        );
        assert!(theirs.contains(r"\u{e0041}"), "{theirs}");
    }

    #[test]
    fn what_looks_like_a_secret_is_shown_as_it_runs() {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj0lSdKlYVp6ZNLlGWhQoWWaHGMYSH7+k4ZlTmN3izj attacker@x";
        let (ours, theirs) = parts(&json!({ "key": key }));
        assert!(theirs.contains(key), "{theirs}");
        let fingerprint = "SHA256:/hFyLEs2hVjV5i2Vr2fgDYLD1F724Cx2axHUn6ZN+WQ";
        let note = format!("SSH public key ssh-ed25519, {fingerprint}, comment \"attacker@x\".");
        assert!(ours.contains(&note), "{ours}");
        let hidden =
            json!({ "command": "eval \"$DB_PASSWORD\"", "env": { "DB_PASSWORD": "id > /tmp/x" } });
        let (_, theirs) = parts(&hidden);
        assert_eq!(serde_json::from_str::<Value>(&theirs).unwrap(), hidden);
    }

    #[test]
    fn what_cannot_be_shown_whole_is_not_asked() {
        let deep = (0..20).fold(json!(1), |inner, _| json!([inner]));
        for hidden in [json!("x".repeat(MAX_BYTES)), json!(vec![1; 129]), deep] {
            assert!(stop_question(&json!({ "command": hidden })).is_none());
        }
    }
}
