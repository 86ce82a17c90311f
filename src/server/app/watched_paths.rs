//! Finds changes at the paths of the state that a channel watches.

use serde_json::{Map, Value};

use gatewren_base::config::WatchedPath;
use gatewren_base::sys::shorten;

/// The maximum number of changes of one rule in one check; those beyond are counted.
pub const MOST: usize = 20;

/// The maximum number of characters of a value.
const SHOWN: usize = 200;

/// A path with a changed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath {
    /// The path, as a JSON Pointer.
    pub place: String,
    /// The new and the old value.
    pub words: String,
}

/// The first paths of a rule that differ, and how many more there are.
pub fn changed_paths(
    rule: &WatchedPath,
    before: &Value,
    after: &Value,
) -> (Vec<ChangedPath>, usize) {
    let segments: Vec<String> = rule.segments().collect();
    let mut all = Vec::new();
    let mut place = String::new();
    collect_changes(&segments, &mut place, Some(before), Some(after), &mut all);
    let more = all.len().saturating_sub(MOST);
    all.truncate(MOST);
    (all, more)
}

fn collect_changes(
    rest: &[String],
    place: &mut String,
    before: Option<&Value>,
    after: Option<&Value>,
    all: &mut Vec<ChangedPath>,
) {
    let Some((segment, rest)) = rest.split_first() else {
        if before != after {
            let words = format!("now {}; it was {}", value_text(after), value_text(before));
            all.push(ChangedPath {
                place: place.clone(),
                words,
            });
        }
        return;
    };
    let inside = |value: Option<&Value>, key: &str| -> Option<Value> { value?.get(key).cloned() };
    let mut step = |key: &str| {
        let length = place.len();
        place.push('/');
        place.push_str(&key.replace('~', "~0").replace('/', "~1"));
        let (old, new) = (inside(before, key), inside(after, key));
        collect_changes(rest, place, old.as_ref(), new.as_ref(), all);
        place.truncate(length);
    };
    if segment == "*" {
        for key in keys(before, after) {
            step(&key);
        }
    } else {
        step(segment);
    }
}

/// The keys of both, each once.
fn keys(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let none = Map::new();
    let members = |value: Option<&Value>| {
        let object = value.and_then(Value::as_object).unwrap_or(&none);
        object.keys().cloned().collect::<Vec<_>>()
    };
    let mut keys = [members(before), members(after)].concat();
    keys.sort();
    keys.dedup();
    keys
}

fn value_text(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "absent".to_owned();
    };
    shorten(&value.to_string(), SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_star_stands_for_each_member_that_is_or_was_there() {
        let rule: WatchedPath = "/public/packageData/*/status".parse().unwrap();
        let document = |all: Value| json!({ "public": { "packageData": all } });
        let before = document(
            json!({ "web": { "status": "running", "cpu": 1 }, "old": { "status": "stopped" } }),
        );
        let after = document(
            json!({ "web": { "status": "stopped", "cpu": 2 }, "a/b": { "status": "running" } }),
        );
        let (found, more) = changed_paths(&rule, &before, &after);
        let paths: Vec<String> = found
            .iter()
            .map(|one| format!("{} {}", one.place, one.words))
            .collect();
        assert_eq!(
            paths,
            [
                "/public/packageData/a~1b/status now \"running\"; it was absent",
                "/public/packageData/old/status now absent; it was \"stopped\"",
                "/public/packageData/web/status now \"stopped\"; it was \"running\"",
            ]
        );
        assert_eq!(more, 0);
        assert_eq!(changed_paths(&rule, &after, &after).0, []);
    }

    #[test]
    fn many_changes_are_counted_and_long_values_cut() {
        let rule: WatchedPath = "/public/*".parse().unwrap();
        let many: Map<String, Value> = (0..30)
            .map(|n| (n.to_string(), json!("x".repeat(300))))
            .collect();
        let (found, more) =
            changed_paths(&rule, &json!({ "public": {} }), &json!({ "public": many }));
        assert_eq!((found.len(), more), (MOST, 10));
        assert!(found.iter().all(|one| one.words.len() < 300));
    }
}
