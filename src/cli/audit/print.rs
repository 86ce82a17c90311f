//! Prints calls for a person: a table, which a terminal shows with fixed widths, and one call in full.

use serde_json::Value;

use super::super::console::table;
use gatewren_base::sys::{rfc3339, sanitize_lines, shorten, terminal_size};
use gatewren_gate::owner_actions::{CallStatus, sanitize};
use gatewren_store::vault::{AuditCall, ExactArguments};

/// The columns of the table and their widths on a terminal; 80 characters with the spaces between them.
const COLUMNS: [(&str, usize); 6] = [
    ("call", 7),
    ("when (UTC)", 19),
    ("agent", 11),
    ("tool", 17),
    ("target", 11),
    ("outcome", 10),
];

/// One line for each call below a header, or a sentence if there are no calls. In a pipe or a file, no cell is cut.
pub fn table<'a>(calls: impl Iterator<Item = (&'a AuditCall, CallStatus)>) -> String {
    let mut rows = vec![COLUMNS.map(|(name, _)| name.to_owned())];
    rows.extend(calls.map(|(call, status)| {
        let text = |text: &Option<String>| sanitize(text.as_deref().unwrap_or("-"));
        let when = moment(call.at_ms).replace('T', " ");
        [
            call.seq.to_string(),
            when.get(..19).unwrap_or(&when).to_owned(),
            text(if call.agent_name.is_some() {
                &call.agent_name
            } else {
                &call.agent
            }),
            text(&call.tool),
            text(&call.target),
            sanitize(status.word()),
        ]
    }));
    if rows.len() == 1 {
        return "no matching calls".to_owned();
    }
    if terminal_size().is_none() {
        return table::table(&rows);
    }
    rows.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

fn line(cells: [String; 6]) -> String {
    let cells = cells.into_iter().zip(COLUMNS);
    let cells = cells.map(|(cell, (_, width))| format!("{:<width$}", shorten(&cell, width)));
    cells.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// Everything that is known about one call, one field a line.
pub fn whole(call: &AuditCall, status: &CallStatus) -> String {
    let text = |text: &Option<String>| text.clone();
    let end = call.ended.as_ref();
    let agent = match (&call.agent_name, &call.agent) {
        (Some(name), Some(id)) => Some(format!("{name} ({id})")),
        (_, id) => id.clone(),
    };
    let rows = end.map_or_else(
        || call.seq.to_string(),
        |end| format!("{} and {}", call.seq, end.seq),
    );
    let number = |number: Option<i64>| number.map(|number| number.to_string());
    let lines = [
        ("rows", Some(rows)),
        ("id", Some(call.call.clone())),
        ("request", text(&call.request)),
        ("began", Some(moment(call.at_ms))),
        ("ended", end.map(|end| moment(end.at_ms))),
        (
            "took",
            end.and_then(|end| Some(format!("{} ms", end.duration_ms?))),
        ),
        ("agent", agent),
        ("token", text(&call.token)),
        ("space", text(&call.space)),
        ("session", text(&call.session)),
        ("address", text(&call.address)),
        ("tool", text(&call.tool)),
        ("risk", text(&call.risk)),
        ("target", text(&call.target)),
        ("reason", text(&call.reason)),
        ("arguments", text(&call.arguments)),
        ("sha256", text(&call.arguments_sha256)),
        ("exact", Some(exact_words(call))),
        ("mode", text(&call.mode)),
        ("decision", text(&call.decision)),
        ("change", text(&call.change)),
        ("outcome", Some(status.words().to_owned())),
        ("error", end.and_then(|end| end.error.clone())),
        ("from", number(end.and_then(|end| end.revision_before))),
        ("revision", number(end.and_then(|end| end.revision))),
    ];
    let lines = lines
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let lines = lines.map(|(name, value)| format!("{name:<11}{}", sanitize(&value)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the exact arguments are stored, and how to show them.
fn exact_words(call: &AuditCall) -> String {
    match call.exact {
        ExactArguments::Sealed(_) => format!(
            "sealed; to open it, run: gatewren audit show {} --exact",
            call.seq
        ),
        _ => call.exact.to_string(),
    }
}

/// The same, with the exact arguments pretty-printed below.
pub fn with_exact(whole: &str, arguments: &str) -> String {
    let value: Option<Value> = serde_json::from_str(arguments).ok();
    let text = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    let text = text.unwrap_or_else(|| arguments.to_owned());
    format!("{whole}\nexact arguments:\n{}", sanitize_lines(&text))
}

/// A time in RFC 3339.
pub fn moment(ms: i64) -> String {
    rfc3339(u64::try_from(ms).unwrap_or(0))
}
