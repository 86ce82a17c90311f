//! Small parts of pages: times, untrusted names, notices.

use maud::{Markup, html};

use gatewren_base::sys::{exact_line, rfc3339};
use gatewren_gate::guard::{OwnerSession, PROOF};

/// Renders a time; the script converts it to the reader's time zone.
pub fn time(ms: u64) -> Markup {
    let text = rfc3339(ms);
    html! { time datetime=(text) { (text.get(..16).unwrap_or(&text).replace('T', " ")) " UTC" } }
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
