//! Tables for a terminal: a header and a line for each row, or a line for each field.

use serde_json::Value;

use gatewren_gate::owner_actions::sanitize;

/// Formats rows; each column is as wide as its widest cell.
pub fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths);
        let padded: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Formats an object, one field a line. Its values may be the text of agents, which may not move the cursor.
pub fn field_lines(object: &Value) -> String {
    let lines = object.as_object().into_iter().flatten();
    let lines = lines.map(|(key, value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        format!("{key}: {}", sanitize(&text))
    });
    lines.collect::<Vec<_>>().join("\n")
}
