//! What the owner is told alike in a terminal, in a browser and in a file.

use serde_json::{Value, json};

use crate::vault::{AuditBeginning, Change, hex};

/// A change's arguments as they are, laid out.
pub fn exact_arguments(change: &Change) -> String {
    let value: Option<Value> = serde_json::from_str(&change.arguments).ok();
    let text = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    text.unwrap_or_else(|| change.arguments.clone())
}

/// The text of a result's content.
pub fn result_text(result: &str) -> String {
    let result: Value = serde_json::from_str(result).unwrap_or(Value::Null);
    let blocks = result.get("content").and_then(Value::as_array);
    let texts = blocks.into_iter().flatten();
    let texts: Vec<&str> = texts
        .filter_map(|block| block.get("text")?.as_str())
        .collect();
    texts.join("\n")
}

/// What an export of the audit says before its rows: without what was trimmed nobody could verify them.
pub fn export_header(beginning: &AuditBeginning) -> Value {
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
