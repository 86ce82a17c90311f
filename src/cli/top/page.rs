//! The page: a header and the running, pending and ended calls, as lines that fit a terminal or as JSON.

use serde_json::{Value, json};

use super::super::console::style::Style;
use super::view::{TopState, is_success};
use gatewren_base::sys::{rfc3339, shorten};
use gatewren_gate::owner_actions::sanitize;
use gatewren_store::vault::PolledRow;

/// The widths of all columns but the last, which takes the rest of the line.
const WIDTHS: [usize; 4] = [9, 12, 20, 15];

/// The most that the column of targets becomes wider on a wide terminal: `docker:` and a long name fit.
const MORE_TARGET: usize = 25;

/// The width of a terminal on which the column of targets is not wider.
const USUAL_WIDTH: usize = 80;

/// The minimum width of a line; a narrower one would be unreadable.
const LEAST_WIDTH: usize = 40;

/// The minimum number of lines for ended calls, however many calls run.
const LEAST_ENDED: usize = 5;

/// The maximum number of ended calls if no terminal limits the page, and in JSON.
const MOST_ENDED: usize = 20;

/// A line of the page.
pub struct PageLine {
    /// The text; it contains no control characters for the terminal.
    text: String,
    style: Option<Style>,
}

impl PageLine {
    fn plain(text: String) -> Self {
        Self { text, style: None }
    }

    /// The line with its color, if standard output shows colors.
    pub fn painted(&self) -> String {
        match self.style {
            Some(style) => style.paint(&self.text),
            None => self.text.clone(),
        }
    }
}

/// The lines of a page of this many rows and columns.
pub fn page(view: &TopState, now: u64, rows: usize, columns: usize) -> Vec<PageLine> {
    let widths = widths(columns);
    let mut lines = vec![
        PageLine::plain(head(view, now)),
        PageLine::plain(String::new()),
    ];
    let room = rows.saturating_sub(lines.len() + 3 + LEAST_ENDED);
    let (waiting, _) = view.waiting();
    let open: Vec<PageLine> = view
        .open()
        .map(|step| row(view, &age(now, step.at_ms), step, "", widths))
        .map(PageLine::plain)
        .collect();
    let waits = waiting.iter().map(|change| {
        let cells = [
            &age(now, change.since_ms),
            view.name(&change.agent),
            &change.tool,
            change.target.as_deref().unwrap_or("-"),
        ];
        PageLine {
            text: line(cells, &change.id, widths),
            style: Some(Style::Warning),
        }
    });
    section(&mut lines, "RUNNING", open, room / 2);
    section(
        &mut lines,
        "WAITING FOR THE OWNER",
        waits.collect(),
        room / 2,
    );
    let left = if rows == usize::MAX {
        MOST_ENDED
    } else {
        rows.saturating_sub(lines.len() + 2)
    };
    let ended = view.ended_calls().take(left).map(|(begun, end)| {
        let (outcome, took) = end.ended.clone().unwrap_or_default();
        let outcome = format!("{outcome}, {}", span(u64::try_from(took).unwrap_or(0)));
        PageLine {
            text: row(view, &clock(end.at_ms), begun, &outcome, widths),
            style: (!is_success(end)).then_some(Style::Problem),
        }
    });
    section(&mut lines, "ENDED", ended.collect(), left);
    let width = columns.max(LEAST_WIDTH);
    lines.truncate(rows);
    for line in &mut lines {
        line.text = shorten(&line.text, width);
    }
    lines
}

fn head(view: &TopState, now: u64) -> String {
    let rate = view.rate(now);
    format!(
        "gatewren top {}: {} running, {} waiting; last minute: {} calls, {} failed, median {}",
        clock(i64::try_from(now).unwrap_or(0)),
        view.open().len(),
        view.waiting().1,
        rate.calls,
        rate.failed,
        span(u64::try_from(rate.median_ms).unwrap_or(0)),
    )
}

/// A section of the page; rows that do not fit are counted.
fn section(lines: &mut Vec<PageLine>, title: &str, mut rows: Vec<PageLine>, most: usize) {
    if rows.is_empty() {
        return;
    }
    let more = rows.len().saturating_sub(most.max(1));
    rows.truncate(most.max(1));
    let more = if more > 0 {
        format!(" (and {more} more)")
    } else {
        String::new()
    };
    lines.push(PageLine::plain(format!("{title}{more}")));
    lines.extend(rows);
    lines.push(PageLine::plain(String::new()));
}

/// The widths of the columns on a terminal of this width.
fn widths(columns: usize) -> [usize; 4] {
    let more = columns.saturating_sub(USUAL_WIDTH).min(MORE_TARGET);
    let [when, agent, tool, target] = WIDTHS;
    [when, agent, tool, target + more]
}

fn row(view: &TopState, when: &str, step: &PolledRow, last: &str, widths: [usize; 4]) -> String {
    let target = step.target.as_deref().unwrap_or("-");
    line(
        [when, view.name(&step.agent), &step.tool, target],
        last,
        widths,
    )
}

fn line(cells: [&str; 4], last: &str, widths: [usize; 4]) -> String {
    let cells = cells.into_iter().zip(widths);
    let cells = cells.map(|(cell, width)| format!("{:<width$}", shorten(&sanitize(cell), width)));
    let cells: Vec<String> = cells.collect();
    format!("{} {}", cells.join(" "), sanitize(last))
        .trim_end()
        .to_owned()
}

fn age(now: u64, since_ms: i64) -> String {
    span(now.saturating_sub(u64::try_from(since_ms).unwrap_or(0)))
}

/// A time span in at most two units.
fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        1..60 => format!("{seconds}.{} s", ms % 1000 / 100),
        60..3600 => format!("{} m {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The time of day, in UTC.
fn clock(ms: i64) -> String {
    let text = rfc3339(u64::try_from(ms).unwrap_or(0));
    text.get(11..19).unwrap_or(&text).to_owned()
}

/// The page as a JSON object.
pub fn as_json(view: &TopState, now: u64) -> Value {
    let moment = |ms: i64| rfc3339(u64::try_from(ms).unwrap_or(0));
    let step = |step: &PolledRow| {
        json!({
            "call": step.call, "agent": step.agent, "agent_name": view.name(&step.agent), "tool": step.tool,
            "target": step.target, "since": moment(step.at_ms),
        })
    };
    let open = view.open().map(step);
    let ended = view.ended_calls().take(MOST_ENDED).map(|(begun, end)| {
        let mut fields = step(begun);
        let (outcome, took) = end.ended.clone().unwrap_or_default();
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("outcome".to_owned(), outcome.into());
            fields.insert("duration_ms".to_owned(), took.into());
        }
        fields
    });
    let (waiting, count) = view.waiting();
    let waiting = waiting.iter().map(|change| {
        json!({
            "change": change.id, "agent": change.agent, "agent_name": view.name(&change.agent),
            "tool": change.tool, "target": change.target, "since": moment(change.since_ms),
        })
    });
    let rate = view.rate(now);
    json!({
        "at": rfc3339(now), "running": open.collect::<Vec<_>>(), "waiting": waiting.collect::<Vec<_>>(),
        "waiting_count": count, "ended": ended.collect::<Vec<_>>(),
        "last_minute": { "calls": rate.calls, "failed": rate.failed, "median_ms": rate.median_ms },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(view: &TopState, now: u64, rows: usize, columns: usize) -> Vec<String> {
        let lines = super::page(view, now, rows, columns);
        lines.into_iter().map(|line| line.text).collect()
    }

    fn step(seq: i64, tool: &str, ended: Option<(&str, i64)>) -> PolledRow {
        PolledRow {
            seq,
            at_ms: 1_000,
            call: (seq % 100).to_string(),
            begins: ended.is_none(),
            ended: ended.map(|(word, took)| (word.to_owned(), took)),
            agent: "agent_1".to_owned(),
            tool: tool.to_owned(),
            target: Some("x\u{1b}[2J\n\u{202e}y".to_owned()),
        }
    }

    #[test]
    fn a_wide_terminal_shows_long_names_of_containers_whole() {
        let mut view = TopState::default();
        let name = "docker:media-jellyfin-server-1";
        view.take(PolledRow {
            target: Some(name.to_owned()),
            ..step(1, "container_shell", None)
        });
        assert!(page(&view, 1_000, 24, 120).join("\n").contains(name));
        assert!(!page(&view, 1_000, 24, 80).join("\n").contains(name));
    }

    #[test]
    fn a_page_fits_its_terminal_and_commands_it_nothing() {
        let mut view = TopState::default();
        for seq in 1..=30 {
            view.take(step(seq, "container_start", None));
        }
        for seq in 1..=9 {
            view.take(step(
                100 + seq,
                "container_start",
                Some(("ok\u{1b}c", 70_000)),
            ));
        }
        for (rows, columns) in [(24, 80), (10, 50), (50, 200), (usize::MAX, 80)] {
            let lines = page(&view, 62_000, rows, columns);
            assert!(lines.len() <= rows, "{rows}: {lines:?}");
            for line in &lines {
                assert!(line.chars().count() <= columns, "{line}");
                assert!(
                    !line.contains(|c: char| c.is_control() || c == '\u{202e}'),
                    "{line:?}"
                );
            }
            assert!(
                lines.iter().any(|line| line.starts_with("RUNNING")),
                "{lines:?}"
            );
        }
        let all = page(&view, 62_000, usize::MAX, 200).join("\n");
        for part in ["21 running, 0 waiting", "1 m 1 s", "1 m 10 s", "ENDED"] {
            assert!(all.contains(part), "{part}: {all}");
        }
        let fields = as_json(&view, 62_000);
        assert_eq!(fields["running"].as_array().unwrap().len(), 21);
        assert_eq!(fields["ended"][0]["duration_ms"], 70_000);
    }
}
