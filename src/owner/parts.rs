//! Small parts of pages: times, names that others chose, notices.

use maud::{Markup, html};

use crate::deeds::plain;
use crate::sys::{exact_line, rfc3339};

/// A moment; the script shows it in the reader's own time.
pub fn time(ms: u64) -> Markup {
    let text = rfc3339(ms);
    html! { time datetime=(text) { (text.get(..16).unwrap_or(&text).replace('T', " ")) " UTC" } }
}

/// A moment that may not have come.
pub fn time_or(ms: Option<u64>, otherwise: &str) -> Markup {
    ms.map_or_else(|| html! { (otherwise) }, time)
}

/// A name that another person or program chose: it looks like no other name and does not affect the text beside it.
pub fn name(text: &str) -> Markup {
    html! { bdi { (exact_line(text)) } }
}

/// What to know of a text beside it, a line each.
pub fn notes(lines: &[String]) -> Markup {
    html! { @for line in lines { p class="warn" { bdi { (line) } } } }
}

/// A table that may be wider than a phone: it is scrolled by itself, also by the keyboard.
pub fn table(label: &str, heads: &[&str], rows: &Markup) -> Markup {
    html! {
        div class="scroll" role="region" aria-label=(label) tabindex="0" {
            table {
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// Something to read before anything else.
pub fn notice(words: &str, is_bad: bool) -> Markup {
    let class = if is_bad {
        "card notice bad"
    } else {
        "card notice"
    };
    html! { p class=(class) role="status" { (words) } }
}

/// A text that was cut where it is too long for a page.
pub fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Lines that a program or an agent wrote, to read and not to decide on: no control characters but line feeds.
pub fn inert(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(plain).collect();
    lines.join("\n")
}
