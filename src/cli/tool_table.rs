//! The table of all tools: class, size of a typical answer, time of a call, and what undoes it.

use std::fmt::Write as _;

use super::tool_figures::{NOT_MEASURED, conditions, figures_of};
use gatewren_tools::tool_texts::undo_of;
use gatewren_wire::registry::{Catalog, Tool};

/// The names of the columns.
pub const COLUMNS: [&str; 5] = ["tool", "class", "bytes", "p95 ms", "undo"];

/// The undo of a tool that changes nothing.
const NOTHING_TO_UNDO: &str = "-";

/// What the columns mean; the first sentence is of the measurement itself.
pub fn legend() -> Vec<String> {
    let words = [
        conditions(),
        "Bytes are those of a typical result as it is sent (median), p95 ms is the time of a call at the 95th \
         percentile; \"-\" was not measured.",
        "Undo is the tool that undoes a call: the same tool means a second call with the earlier values. A planned \
         restart can be cancelled only until it begins, and update_run saves containers only, not the host. \"none\" \
         means that no tool does; \"-\" means that nothing was changed.",
    ];
    words.map(str::to_owned).into()
}

/// The rows, by name, each with the values of the columns.
pub fn rows(catalog: &Catalog) -> Vec<[String; 5]> {
    catalog.tools().map(|tool| row(tool)).collect()
}

fn row(tool: &Tool) -> [String; 5] {
    let figures = figures_of(tool.name());
    [
        tool.name().to_owned(),
        tool.risk().to_string(),
        figures.answer_bytes.to_owned(),
        figures.p95_ms.to_owned(),
        undo_of(tool.name()).unwrap_or(NOTHING_TO_UNDO).to_owned(),
    ]
}

/// The table as text, with lines of the names of the columns and of each tool.
pub fn text(catalog: &Catalog) -> String {
    let mut lines = vec![COLUMNS.map(str::to_owned)];
    lines.extend(rows(catalog));
    let mut text = String::new();
    for [name, class, bytes, p95, undo] in &lines {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{name:<26} {class:<7} {bytes:>6} {p95:>6} {undo}");
    }
    text
}

/// The members of a tool in JSON: `answer_bytes` and `p95_ms` are null if they were not measured, `undo` is null if
/// the tool changes nothing.
pub fn json_members(tool: &Tool) -> [(&'static str, serde_json::Value); 3] {
    let figures = figures_of(tool.name());
    let number = |figure: &str| match figure {
        NOT_MEASURED => serde_json::Value::Null,
        figure => serde_json::from_str(figure).unwrap_or_default(),
    };
    [
        ("answer_bytes", number(figures.answer_bytes)),
        ("p95_ms", number(figures.p95_ms)),
        ("undo", undo_of(tool.name()).into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_server::app::tables;

    #[test]
    fn the_table_has_a_line_for_each_tool_that_fits_a_terminal() {
        let catalog = tables().unwrap();
        let text = text(&catalog);
        assert_eq!(text.lines().count(), catalog.tools().count() + 1);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let stop = text
            .lines()
            .find(|line| line.starts_with("container_stop "));
        let columns: Vec<&str> = stop.unwrap().split_whitespace().collect();
        assert_eq!(columns[..2], ["container_stop", "disrupt"]);
        assert_eq!(columns[4..], ["container_start"]);
        let reading = text.lines().find(|line| line.starts_with("whoami "));
        assert!(reading.unwrap().ends_with(" -"), "{reading:?}");
    }

    #[test]
    fn json_has_numbers_and_null_for_what_is_not() {
        let catalog = tables().unwrap();
        let members = json_members(catalog.tool("whoami").unwrap());
        assert!(
            members[0].1.is_u64() && members[1].1.is_number(),
            "{members:?}"
        );
        assert!(members[2].1.is_null());
        let members = json_members(catalog.tool("disk_repair").unwrap());
        assert_eq!(members[2].1, "none");
        assert!(members[0].1.is_null(), "it is not measured: {members:?}");
    }
}
