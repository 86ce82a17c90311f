//! Pages of a list: opaque cursors that are checked, never guessed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::error::RpcError;

/// A page of a list.
pub struct Page<'a, T> {
    /// Its items.
    pub items: &'a [T],
    /// Where the next one begins.
    pub next: Option<String>,
}

/// Entries on one page.
const PAGE: usize = 200;

/// The page that a cursor names; the first one without a cursor.
pub fn page<'a, T>(all: &'a [T], cursor: Option<&str>) -> Result<Page<'a, T>, RpcError> {
    let start = match cursor {
        None => 0,
        Some(text) => position(text)
            .filter(|start| *start < all.len() && *start > 0)
            .ok_or_else(|| {
                RpcError::invalid_params(
                    "the cursor is not one that this server gave; list again without it",
                )
            })?,
    };
    let end = all.len().min(start + PAGE);
    let next = (end < all.len()).then(|| URL_SAFE_NO_PAD.encode(format!("at:{end}")));
    Ok(Page {
        items: all.get(start..end).unwrap_or_default(),
        next,
    })
}

fn position(cursor: &str) -> Option<usize> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    std::str::from_utf8(&bytes)
        .ok()?
        .strip_prefix("at:")?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g1_g2_pages_follow_each_other_and_a_bogus_cursor_is_refused() {
        let all: Vec<usize> = (0..450).collect();
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let page = page(&all, cursor.as_deref()).unwrap();
            seen.extend_from_slice(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all);
        for bogus in ["", "x", "YXQ6MA", "YXQ6OTk5OTk5"] {
            assert!(page(&all, Some(bogus)).is_err(), "{bogus}");
        }
    }
}
