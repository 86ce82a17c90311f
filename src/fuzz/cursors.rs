//! Cursors: those that this server issued for a list continue it, and every other one is rejected.

use super::input::{parts, text};
use gatewren_wire::protocol::{code, page};

const LIST: &str = "tools/list";

/// First part: the length of the list; second part: a cursor.
pub fn are_our_own(data: &[u8]) {
    let [length, cursor] = parts(data);
    let length = text(length).and_then(|length| length.parse::<u16>().ok());
    let (Some(length), Some(cursor)) = (length, text(cursor)) else {
        return;
    };
    let all: Vec<u16> = (0..length % 2_000).collect();
    let given = walk(&all);
    for other in ["prompts/list", "tools/list:2", ""] {
        for ours in &given {
            assert!(
                page(other, &all, Some(ours)).is_err(),
                "{ours} is of another list"
            );
        }
    }
    match page(LIST, &all, Some(cursor)) {
        Ok(_) => assert!(
            given.iter().any(|ours| ours == cursor),
            "{cursor:?} is not ours"
        ),
        Err(error) => {
            assert_eq!(error.code, code::INVALID_PARAMS);
            assert!(
                !given.iter().any(|ours| ours == cursor),
                "{cursor:?} is ours"
            );
        }
    }
}

/// Every cursor of a list, in order; asserts that each entry appears once, in order.
fn walk(all: &[u16]) -> Vec<String> {
    let mut given: Vec<String> = Vec::new();
    let mut seen = Vec::new();
    loop {
        let Ok(page) = page(LIST, all, given.last().map(String::as_str)) else {
            panic!("{given:?} was refused");
        };
        seen.extend_from_slice(page.items);
        assert!(
            page.next.is_none() || !page.items.is_empty(),
            "a page without entries"
        );
        match page.next {
            Some(next) => given.push(next),
            None => break,
        }
    }
    assert_eq!(seen, all);
    given
}
