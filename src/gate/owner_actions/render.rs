//! Text for the owner that is the same in the terminal, the browser and files.

use serde_json::{Map, Value, json};

use crate::policy::{ShownArgument, shown_arguments};
use gatewren_base::sys::exact_lines;
use gatewren_store::vault::{AuditExportHeader, Change, hex};

/// Returns a change's arguments one by one, formatted for the owner. Arguments that are not a JSON object become one
/// text.
pub fn change_arguments(change: &Change) -> Vec<ShownArgument> {
    let arguments = serde_json::from_str::<Map<String, Value>>(&change.arguments);
    let arguments = arguments.unwrap_or_else(|_| {
        let text = Value::String(change.arguments.clone());
        Map::from_iter([("arguments".to_owned(), text)])
    });
    shown_arguments(&arguments)
}

/// Returns everything that an agent wrote into a change, formatted for the owner.
pub fn shown_change(change: &Change) -> String {
    let mut parts = vec![change.tool.clone()];
    parts.extend(change_arguments(change).into_iter().map(|argument| {
        let kind = if argument.is_text { "text" } else { "JSON" };
        format!("{} ({kind}):\n{}", argument.name, argument.text)
    }));
    let reason = change.reason.as_deref().map(exact_lines);
    parts.extend(reason.map(|reason| format!("reason:\n{reason}")));
    parts.join("\n")
}

/// Returns a change's arguments as multi-line JSON: exactly what runs.
pub fn exact_arguments(change: &Change) -> String {
    let value: Option<Value> = serde_json::from_str(&change.arguments).ok();
    let text = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    exact_lines(&text.unwrap_or_else(|| change.arguments.clone()))
}

/// Returns the text of a result's content.
pub fn result_text(result: &str) -> String {
    let result: Value = serde_json::from_str(result).unwrap_or(Value::Null);
    let blocks = result.get("content").and_then(Value::as_array);
    let texts = blocks.into_iter().flatten();
    let texts: Vec<&str> = texts
        .filter_map(|block| block.get("text")?.as_str())
        .collect();
    texts.join("\n")
}

/// Returns the header of an audit export. It describes the trimmed rows; without that, the other rows could not be
/// verified.
pub fn export_header(beginning: &AuditExportHeader) -> Value {
    let trimmed = beginning.checkpoint.as_ref().map(|(checkpoint, sealed)| {
        json!({
            "through": checkpoint.through, "sha256": hex(&checkpoint.sha256), "rows": checkpoint.rows,
            "at_ms": checkpoint.at_ms, "call": checkpoint.call, "sealed": sealed,
        })
    });
    json!({
        "after": beginning.after, "sha256": hex(&beginning.sha256), "last": beginning.last,
        "trimmed": trimmed,
    })
}
