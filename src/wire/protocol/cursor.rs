//! Pagination of lists: opaque cursors that are validated, never guessed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::error::RpcError;

/// A page of a list.
pub struct CursorPage<'a, T> {
    /// Its items.
    pub items: &'a [T],
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// Entries on one page.
const PAGE: usize = 200;

/// Returns the page of a list that a cursor names; the first page without a cursor. `list` is the list's method.
///
/// Only a cursor from an earlier page of the same list is accepted; any other gets -32602, because it was meant for
/// something else.
pub fn page<'a, T>(
    list: &str,
    all: &'a [T],
    cursor: Option<&str>,
) -> Result<CursorPage<'a, T>, RpcError> {
    let start = match cursor {
        None => 0,
        Some(text) => (PAGE..all.len())
            .step_by(PAGE)
            .find(|start| cursor_at(list, *start) == text)
            .ok_or_else(|| {
                RpcError::invalid_params("unknown cursor for this list; call again without it")
            })?,
    };
    let end = all.len().min(start + PAGE);
    let next = (end < all.len()).then(|| cursor_at(list, end));
    Ok(CursorPage {
        items: all.get(start..end).unwrap_or_default(),
        next,
    })
}

fn cursor_at(list: &str, start: usize) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}:{start}"))
}

#[cfg(test)]
mod tests {
    use super::super::error::code;
    use super::*;

    #[test]
    fn g1_g2_pages_follow_each_other_and_a_bogus_cursor_is_refused() {
        let all: Vec<usize> = (0..450).collect();
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let page = page("tools/list", &all, cursor.as_deref()).unwrap();
            seen.extend_from_slice(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all);
        let bogus = ["", "x", "at:200", "tools/list:200"].map(str::to_owned);
        let elsewhere = [0, 7, 450, 999_999].map(|start| cursor_at("tools/list", start));
        let padded = format!("{}=", cursor_at("tools/list", 200));
        let other_list = cursor_at("prompts/list", 200);
        let refused = bogus
            .into_iter()
            .chain(elsewhere)
            .chain([padded, other_list]);
        for cursor in refused {
            let error = page("tools/list", &all, Some(&cursor)).err();
            assert_eq!(error.unwrap().code, code::INVALID_PARAMS, "{cursor}");
        }
    }
}
