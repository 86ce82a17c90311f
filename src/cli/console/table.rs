//! Tables for a terminal: a header and a line for each row, or a line for each field.

use serde_json::Value;

use super::style::Style;
use gatewren_base::sys::{shorten, terminal_size};
use gatewren_gate::owner_actions::sanitize;

/// The narrowest that a column becomes on a narrow terminal.
const LEAST: usize = 6;

/// The spaces between two columns.
const BETWEEN: usize = 2;

/// The headings of columns that say how something is; their words have colors.
const STATES: [&str; 3] = ["state", "status", "phase"];

/// Formats rows, the first one as headings. Each column is as wide as its widest cell, unless the terminal is too
/// narrow; the first one, with what the owner types to name a row, is never cut.
pub fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let columns = terminal_size().map_or(usize::MAX, |(_, columns)| columns);
    lines(rows, columns).join("\n")
}

fn lines<const N: usize>(rows: &[[String; N]], columns: usize) -> Vec<String> {
    let widths = widths(rows, columns);
    let head = rows.first();
    let is_state = |at: usize| {
        let heading = head.and_then(|head| head.get(at));
        heading.is_some_and(|heading| STATES.contains(&heading.as_str()))
    };
    let line = |row: &[String; N]| {
        let cells = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(at, (cell, width))| {
                let padded = format!("{:<width$}", shorten(cell, width));
                match Style::of_word(cell).filter(|_| is_state(at)) {
                    Some(style) => style.paint(&padded),
                    None => padded,
                }
            });
        let cells: Vec<String> = cells.collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The widths of the columns: those of the widest cells, and the widest ones less until all fit.
fn widths<const N: usize>(rows: &[[String; N]], columns: usize) -> [usize; N] {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let room = columns.saturating_sub(BETWEEN * N.saturating_sub(1));
    let mut over = widths.iter().sum::<usize>().saturating_sub(room);
    while over > 0 {
        let widest = widths.iter_mut().skip(1).max();
        let Some(widest) = widest.filter(|width| **width > LEAST) else {
            break;
        };
        *widest -= 1;
        over -= 1;
    }
    widths
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_its_terminal_and_keeps_its_first_column() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        let rows = [
            row(["id", "name", "about"]),
            row([
                "job_0123456789abcdef",
                "claude",
                "docker:media-jellyfin-server-1",
            ]),
        ];
        let wide = lines(&rows, usize::MAX);
        assert!(
            wide[1].ends_with("docker:media-jellyfin-server-1"),
            "{wide:?}"
        );
        let narrow = lines(&rows, 40);
        assert_eq!(narrow[1], "job_0123456789abcdef  claude  docker:me…");
        let narrowest = lines(&rows, 10);
        assert!(
            narrowest[1].starts_with("job_0123456789abcdef  claude"),
            "{narrowest:?}"
        );
    }
}
