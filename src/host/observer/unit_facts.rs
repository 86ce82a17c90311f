//! The state document's entry for a unit: only facts, no counters and nothing that changes with every use.

use serde_json::{Map, Value, json};

use crate::backends::{Unit, UnitFileState, UnitName};

/// Kinds whose substate changes with every use, such as a timer's between `waiting` and `running`.
const BUSY: [&str; 4] = ["timer", "socket", "path", "automount"];

/// `/public/units/<name>` of a loaded unit.
pub fn loaded_unit(unit: &Unit) -> Value {
    let line = &unit.line;
    let mut facts = Map::new();
    let mut add = |key: &str, value: Value| facts.insert(key.to_owned(), value);
    add("name", json!(line.name));
    add("description", json!(line.description));
    add("load", json!(line.load));
    add("active", json!(line.active));
    if !BUSY.contains(&line.name.kind()) {
        add("sub", json!(line.sub));
    }
    if let Some(enabled) = &unit.enabled {
        add("enabled", json!(enabled));
    }
    if let Some(since) = &unit.since {
        add("since", json!(since));
    }
    if let Some(pid) = unit.main_pid {
        add("main_pid", json!(pid));
    }
    if let Some(result) = &unit.result {
        add("result", json!(result));
    }
    if !unit.triggers.is_empty() {
        add("triggers", json!(unit.triggers));
    }
    Value::Object(facts)
}

/// `/public/units/<name>` of a unit that has a file and is not loaded: it has not run since boot, or it has ended
/// and nothing references it any more.
pub fn unloaded_unit(name: &UnitName, file: &UnitFileState) -> Value {
    json!({ "name": name, "active": "inactive", "enabled": file })
}

/// `/public/observer/units`.
pub fn availability(why_not: Option<&str>, left_out: usize) -> Value {
    match (why_not, left_out) {
        (Some(why), _) => json!({ "available": false, "why": why }),
        (None, 0) => json!({ "available": true }),
        (None, left_out) => json!({ "available": true, "left_out": left_out }),
    }
}

#[cfg(test)]
mod tests {
    use crate::backends::UnitLine;

    use super::*;

    fn unit(name: &str) -> Unit {
        Unit {
            line: UnitLine {
                name: name.parse().unwrap(),
                description: "A unit".to_owned(),
                load: "loaded".to_owned(),
                active: "active".to_owned(),
                sub: "running".to_owned(),
            },
            enabled: Some("enabled".to_owned().into()),
            since: None,
            main_pid: Some(7),
            result: Some("success".to_owned()),
            triggers: Vec::new(),
        }
    }

    #[test]
    fn a_service_is_told_without_counters() {
        let expected = json!({
            "name": "a.service", "description": "A unit", "load": "loaded", "active": "active",
            "sub": "running", "enabled": "enabled", "main_pid": 7, "result": "success"
        });
        assert_eq!(loaded_unit(&unit("a.service")), expected);
    }

    #[test]
    fn what_moves_with_every_use_is_left_out() {
        for busy in ["a.timer", "a.socket", "a.path", "a.automount"] {
            assert_eq!(loaded_unit(&unit(busy)).get("sub"), None, "{busy}");
        }
    }

    #[test]
    fn what_is_not_there_says_why() {
        assert_eq!(availability(None, 0), json!({ "available": true }));
        let why = json!({ "available": false, "why": "no bus" });
        assert_eq!(availability(Some("no bus"), 3), why);
        let some = json!({ "available": true, "left_out": 3 });
        assert_eq!(availability(None, 3), some);
    }
}
