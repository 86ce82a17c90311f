//! Shows a change's arguments next to the current values in the state.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::chart::bytes;
use super::parts::{name, notes};
use super::texts;
use gatewren_base::sys::sanitize_lines;
use gatewren_base::telemetry::redact;
use gatewren_gate::owner_actions::{ShownArgument, change_arguments, takes_command};
use gatewren_store::vault::Change;

/// Renders each argument with what the state has now. The arguments are complete and never redacted: a hidden part
/// could be the command that the agent wants to run.
pub fn diff(change: &Change, state: &Value) -> Markup {
    html! { (call_arguments(change, state, false)) (current_values(change, state)) }
}

/// Renders each argument, next to the current value if the state has a member of that name at one of the paths that
/// the change depends on. A command has a block for itself. Without the target if the sentence above has it.
pub fn call_arguments(change: &Change, state: &Value, has_target_above: bool) -> Markup {
    let arguments: Map<String, Value> = serde_json::from_str(&change.arguments).unwrap_or_default();
    let shown = change_arguments(change);
    let there = observed(change, state);
    let stands: Vec<&Value> = there.iter().map(|(_, value)| *value).collect();
    // Only a text: the block says nothing of a value's kind, and a number would look the same.
    let is_command = |key: &str, value: &Value| {
        key == COMMAND && value.is_string() && takes_command(&change.tool)
    };
    let target = change.target.as_deref().filter(|_| has_target_above);
    let is_above = |value: &Value| target.is_some() && value.as_str() == target;
    // Both are sorted by name.
    let all = || shown.iter().zip(&arguments);
    let others = || all().filter(|(_, (key, value))| !is_command(key, value) && !is_above(value));
    html! {
        @if shown.is_empty() { p class="soft" { (texts::NO_ARGUMENTS) } }
        @for (argument, _) in all().filter(|(_, (key, value))| is_command(key, value)) {
            pre class="command" { bdi { (argument.text) } }
            (notes(&argument.notes))
        }
        @if others().next().is_some() {
            dl {
                @for (argument, (key, wanted)) in others() {
                    dt { (argument.name) " " span class="soft" { (kind(argument, wanted)) } }
                    @let now = current_value(&stands, &change.tool, key);
                    dd { (render_value(now, argument, wanted)) (size(key, wanted)) (notes(&argument.notes)) }
                }
            }
        }
    }
}

/// The argument that has the command of a shell.
const COMMAND: &str = "command";

/// Renders the current values of what the change depends on.
pub fn current_values(change: &Change, state: &Value) -> Markup {
    html! {
        @for (index, (pointer, value)) in observed(change, state).iter().enumerate() {
            details id=(format!("now-{}-{index}", change.id)) {
                summary { (texts::AS_IT_IS) " " (name(pointer)) }
                pre { bdi { (sanitize_lines(&pretty(&redact(value)))) } }
            }
        }
    }
}

/// The paths that a change depends on, and their values.
fn observed<'a>(change: &'a Change, state: &'a Value) -> Vec<(&'a String, &'a Value)> {
    // A tool that writes into the state has the path as its target.
    let place = change
        .target
        .iter()
        .filter(|target| target.starts_with('/'));
    let places = change.rests_on.iter().chain(place);
    let there = places.filter_map(|pointer| Some((pointer, state.pointer(pointer)?)));
    there.collect()
}

/// The type of an argument: the text "5" and the number 5 are different arguments.
fn kind(argument: &ShownArgument, value: &Value) -> &'static str {
    match value {
        _ if argument.is_text => texts::AS_TEXT,
        Value::Number(_) => texts::AS_NUMBER,
        _ => texts::AS_JSON,
    }
}

/// Renders a number of bytes in a larger unit.
fn size(key: &str, value: &Value) -> Markup {
    let count = value.as_f64().filter(|_| key.ends_with("_bytes"));
    html! { @if let Some(count) = count { " " span class="soft" { "= " (bytes(count)) } } }
}

fn render_value(now: Option<&Value>, argument: &ShownArgument, wanted: &Value) -> Markup {
    let text = &argument.text;
    html! {
        @match now {
            Some(now) if now == wanted => div { span class="diff" { bdi { (text) } } " " span class="soft" { (texts::IS_SO) } },
            Some(now) => {
                div { del class="diff was" { (as_it_is(&redact(now))) } }
                div { ins class="diff will" { bdi { (text) } } }
            },
            None => div { span class="diff will" { bdi { (text) } } },
        }
    }
}

fn as_it_is(value: &Value) -> Markup {
    let text = match value {
        Value::String(text) => text.clone(),
        other => pretty(other),
    };
    html! { bdi { (sanitize_lines(&text)) } }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns the current value for an argument's name, or for the name as the state spells it. A switch is named after its
/// tool, and `value` is the whole value.
fn current_value<'a>(stands: &[&'a Value], tool: &str, argument: &str) -> Option<&'a Value> {
    let named = match argument {
        "value" => return stands.first().copied(),
        "enabled" | "on" => tool.split_once('_').map_or(tool, |(_, what)| what),
        _ => argument,
    };
    let written = camel(named);
    let member = |value: &&'a Value| value.get(named).or_else(|| value.get(&written));
    stands.iter().find_map(member)
}

/// Converts `memory_limit` to `memoryLimit`.
fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_stands_now_is_found_by_either_name() {
        let container = json!({ "memoryLimit": 5, "name": "web", "autostart": true });
        let stands = [&container];
        let now = |tool, argument| current_value(&stands, tool, argument);
        assert_eq!(now("t", "memory_limit"), Some(&json!(5)));
        assert_eq!(now("t", "name"), Some(&json!("web")));
        assert_eq!(now("t", "other"), None);
        assert_eq!(now("container_autostart", "enabled"), Some(&json!(true)));
        assert_eq!(now("container_autostart", "on"), Some(&json!(true)));
        assert_eq!(now("state_put", "value"), Some(&container));
    }

    #[test]
    fn only_a_target_that_the_sentence_has_is_left_out_of_the_arguments() {
        let arguments = json!({ "container": "web", "force": true, "ids": [1] }).to_string();
        let mut change = Change::waiting("chg_1", "container_stop", arguments);
        let shown = |change: &Change| call_arguments(change, &json!({}), true).into_string();
        let names = |page: &str| page.matches("<dt>").count();
        assert_eq!(names(&shown(&change)), 3, "it has no target");
        change.target = Some("web".to_owned());
        assert_eq!(names(&shown(&change)), 2);
        assert_eq!(
            names(&call_arguments(&change, &json!({}), false).into_string()),
            3
        );
    }

    #[test]
    fn a_number_is_named_so_and_bytes_are_read_at_a_glance() {
        let arguments = json!({ "memory_limit_bytes": 4_294_967_296_u64, "cpus": "2", "on": true });
        let change = Change::waiting("chg_1", "container_config_set", arguments.to_string());
        let page = call_arguments(&change, &json!({}), false).into_string();
        for part in ["4294967296", "= 4.0 GiB", ">number<", ">text<", ">JSON<"] {
            assert_eq!(page.matches(part).count(), 1, "{part}: {page}");
        }
    }

    #[test]
    fn what_others_wrote_is_letters_alone() {
        let wanted = json!("<img src=x onerror=alert(1)>\u{202e}gpj\u{7}");
        let shown = ShownArgument {
            name: "a".to_owned(),
            is_text: true,
            text: gatewren_base::sys::exact_lines(wanted.as_str().unwrap()),
            notes: Vec::new(),
        };
        let page = render_value(Some(&json!("a&b")), &shown, &wanted).into_string();
        assert!(page.contains("a&amp;b"), "{page}");
        assert!(
            page.contains("&lt;img src=x onerror=alert(1)&gt;\\u{202e}gpj\\u{7}"),
            "{page}"
        );
    }
}
