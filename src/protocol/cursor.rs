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

/// Returns the page of a list that a cursor names; the first page without a cursor. `list` is the list's method, and
/// `key` what tells its entries apart.
///
/// A cursor names the last entry of the page before, so that a list which changes meanwhile repeats no entry and leaves
/// out none that stays. -32602 for a cursor of another list, or if its entry is gone: the list must be read again.
pub fn page<'a, T>(
    list: &str,
    all: &'a [T],
    key: impl Fn(&T) -> &str,
    cursor: Option<&str>,
) -> Result<CursorPage<'a, T>, RpcError> {
    let start = match cursor {
        None => 0,
        Some(text) => {
            let found = all
                .iter()
                .position(|entry| cursor_behind(list, key(entry)) == text);
            found.ok_or_else(unknown_cursor)? + 1
        }
    };
    let end = all.len().min(start + PAGE);
    let items = all.get(start..end).unwrap_or_default();
    let next = items.last().filter(|_| end < all.len());
    Ok(CursorPage {
        items,
        next: next.map(|last| cursor_behind(list, key(last))),
    })
}

fn unknown_cursor() -> RpcError {
    RpcError::invalid_params(
        "unknown cursor: it is of another list, or this list has changed; call again without it",
    )
}

/// Returns the cursor of the page behind an entry.
fn cursor_behind(list: &str, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}:{key}"))
}

#[cfg(test)]
mod tests {
    use super::super::error::code;
    use super::*;

    #[test]
    fn g1_g2_pages_follow_each_other_and_a_bogus_cursor_is_refused() {
        let all: Vec<String> = (0..450).map(|number| number.to_string()).collect();
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let page = page("tools/list", &all, String::as_str, cursor.as_deref()).unwrap();
            seen.extend_from_slice(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all);
        let bogus = ["", "x", "at:200", "tools/list:200"].map(str::to_owned);
        let elsewhere = ["450", "-1", ""].map(|key| cursor_behind("tools/list", key));
        let padded = format!("{}=", cursor_behind("tools/list", "199"));
        let other_list = cursor_behind("prompts/list", "199");
        let refused = bogus
            .into_iter()
            .chain(elsewhere)
            .chain([padded, other_list]);
        for cursor in refused {
            let error = page("tools/list", &all, String::as_str, Some(&cursor)).err();
            assert_eq!(error.unwrap().code, code::INVALID_PARAMS, "{cursor}");
        }
    }

    #[test]
    fn g3_a_list_that_changes_between_its_pages_repeats_nothing_and_leaves_nothing_out() {
        let mut all: Vec<String> = (0..450).map(|number| number.to_string()).collect();
        let first = page("tools/list", &all, String::as_str, None).unwrap();
        let (last, next) = (first.items.last().cloned(), first.next.unwrap());
        assert_eq!(last.as_deref(), Some("199"));
        all.insert(0, "new".to_owned());
        all.retain(|key| key != "7" && key != "8");
        let second = page("tools/list", &all, String::as_str, Some(&next)).unwrap();
        assert_eq!(second.items.first().map(String::as_str), Some("200"));
        all.retain(|key| key != "199");
        let error = page("tools/list", &all, String::as_str, Some(&next)).err();
        assert_eq!(error.unwrap().code, code::INVALID_PARAMS);
    }
}
