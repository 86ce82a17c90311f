//! Small parts of pages: times, untrusted names, notices.

use std::iter;

use maud::{Markup, PreEscaped, html};

use super::texts;
use gatewren_base::sys::{exact_line, now_ms, rfc3339};
use gatewren_gate::guard::{OwnerSession, PROOF};

/// Renders a time in words, such as "5 min ago"; the exact one is its title.
pub fn time(ms: u64) -> Markup {
    html! { time datetime=(rfc3339(ms)) title=(utc(ms)) { (relative(ms, now_ms())) } }
}

/// Renders an exact time; the script converts it to the reader's time zone.
pub fn exact_time(ms: u64) -> Markup {
    html! { time datetime=(rfc3339(ms)) { (utc(ms)) } }
}

fn utc(ms: u64) -> String {
    let text = rfc3339(ms);
    format!("{} UTC", text.get(..16).unwrap_or(&text).replace('T', " "))
}

/// The distance of a time from now, in words. The script counts in the same way.
fn relative(ms: u64, now: u64) -> String {
    let minutes = now.abs_diff(ms) / 60_000;
    let distance = match minutes {
        0 if ms > now => return texts::IN_A_MOMENT.to_owned(),
        0 => return texts::JUST_NOW.to_owned(),
        1..60 => format!("{minutes} {}", texts::MINUTES),
        60..1440 => format!("{} {}", minutes / 60, texts::HOURS),
        1440..2880 => texts::ONE_DAY.to_owned(),
        _ => format!("{} {}", minutes / 1440, texts::DAYS),
    };
    if ms > now {
        format!("{} {distance}", texts::IN_FUTURE)
    } else {
        format!("{distance} {}", texts::AGO)
    }
}

/// Renders a time that may be absent.
pub fn time_or(ms: Option<u64>, otherwise: &str) -> Markup {
    ms.map_or_else(|| html! { (otherwise) }, time)
}

/// Renders a name that another person or program chose. It cannot look like another name, and it does not affect
/// the text next to it.
pub fn name(text: &str) -> Markup {
    html! { bdi { (exact_line(text)) } }
}

/// Renders remarks on a text, a line each.
pub fn notes(lines: &[String]) -> Markup {
    html! { @for line in lines { p class="warn" { bdi { (line) } } } }
}

/// The most columns of a table whose rows are cards on a phone.
const CARD_COLUMNS: usize = 6;

/// Renders a table. On a phone each row is a card, with the heads beside the cells. One with more columns than a card
/// has lines scrolls separately, also by keyboard.
pub fn table(label: &str, heads: &[&str], rows: &Markup) -> Markup {
    let has_cards = heads.len() <= CARD_COLUMNS;
    html! {
        div class="scroll" role="region" aria-label=(label) tabindex="0" {
            table class=[has_cards.then_some("cards")] {
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody {
                    @if has_cards { (PreEscaped(with_heads(&rows.0, heads))) } @else { (rows) }
                }
            }
        }
    }
}

/// Adds the head of its column to each cell, for phones, where a row is a card. In rendered rows only a cell has this
/// text: what is shown in one is escaped.
fn with_heads(rows: &str, heads: &[&str]) -> String {
    const CELL: &str = "<td";
    let attribute = |head: &&str| {
        let element = html! { i data-head=(head) {} }.0;
        let attribute = element.trim_start_matches("<i").trim_end_matches("></i>");
        attribute.to_owned()
    };
    let attributes: Vec<String> = heads.iter().map(attribute).collect();
    let none = attribute(&"");
    let mut named = String::with_capacity(rows.len() * 2);
    for row in rows.split_inclusive("</tr>") {
        let mut cells = row.split(CELL);
        named.push_str(cells.next().unwrap_or_default());
        let attributes = attributes.iter().chain(iter::repeat(&none));
        for (cell, attribute) in cells.zip(attributes) {
            named.push_str(CELL);
            named.push_str(attribute);
            named.push_str(cell);
        }
    }
    named
}

/// Renders a notice at the top of a page.
pub fn notice(words: &str, is_bad: bool) -> Markup {
    let class = if is_bad {
        "card notice bad"
    } else {
        "card notice"
    };
    html! { p class=(class) role="status" { (words) } }
}

/// Renders the session's CSRF token, so that no other site can send the form.
pub fn proof(session: &OwnerSession) -> Markup {
    html! { input type="hidden" name=(PROOF) value=(session.proof); }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_has_the_head_of_its_column_whatever_is_in_it() {
        let hostile = "</td><td data-head=\"x\">";
        let rows = html! {
            tr class="run" { th colspan="2" { "2 calls" } }
            tr { td { (hostile) } td class="soft" {} td { "more" } }
        };
        let table = table("t", &["Name", "A \"B\""], &rows).into_string();
        let expected = "<tr class=\"run\"><th colspan=\"2\">2 calls</th></tr>\
            <tr><td data-head=\"Name\">&lt;/td&gt;&lt;td data-head=&quot;x&quot;&gt;</td>\
            <td data-head=\"A &quot;B&quot;\" class=\"soft\"></td><td data-head=\"\">more</td></tr>";
        assert!(table.contains(expected), "{table}");
    }

    #[test]
    fn a_time_is_in_words_and_exact_in_its_title() {
        let now = 40 * 86_400_000;
        let minute = 60_000;
        for (ms, words) in [
            (now, "just now"),
            (now - 59_999, "just now"),
            (now + 1, "in a moment"),
            (now - minute, "1 min ago"),
            (now - 59 * minute, "59 min ago"),
            (now + 61 * minute, "in 1 h"),
            (now - 24 * 60 * minute, "1 day ago"),
            (now + 72 * 60 * minute, "in 3 days"),
        ] {
            assert_eq!(relative(ms, now), words);
        }
        let text = time(0).into_string();
        assert!(text.contains("title=\"1970-01-01 00:00 UTC\""), "{text}");
    }
}
