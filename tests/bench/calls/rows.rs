//! The rows of the table: the measured calls.

use crate::common::wire::{Question, Wire};

/// A row: its name, and the call of gatewren.
pub struct Row {
    /// Its name in the table.
    pub name: &'static str,
    /// The question; `None` for the row with the cost of TLS itself, hyper over TLS by plain hyper.
    pub question: Option<Question<'static>>,
}

/// All rows.
pub const ROWS: &[Row] = &[
    Row {
        name: "hyper over TLS, by plain hyper",
        question: None,
    },
    Row {
        name: "whoami, 2026-07-28",
        question: Some(Question {
            wire: Wire::Stateless,
            method: "tools/call",
            name: Some("whoami"),
            params: r#""name":"whoami","arguments":{}"#,
        }),
    },
    Row {
        name: "whoami, 2025-11-25",
        question: Some(Question {
            wire: Wire::Stateful,
            method: "tools/call",
            name: None,
            params: r#""name":"whoami","arguments":{}"#,
        }),
    },
    Row {
        name: "resources/read serverInfo, 2026-07-28",
        question: Some(Question {
            wire: Wire::Stateless,
            method: "resources/read",
            name: Some("gatewren:///public/serverInfo"),
            params: r#""uri":"gatewren:///public/serverInfo""#,
        }),
    },
    Row {
        name: "tools/list, 2026-07-28",
        question: Some(Question {
            wire: Wire::Stateless,
            method: "tools/list",
            name: None,
            params: "",
        }),
    },
];
