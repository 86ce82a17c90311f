//! Small parts of pages: times, untrusted names, notices.

use maud::{Markup, html};

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

/// Renders a table that may be wider than a phone: it scrolls separately, also by keyboard.
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
