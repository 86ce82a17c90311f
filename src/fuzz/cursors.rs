//! Cursors: each continues its list behind one entry, and what is no cursor of the list is rejected.

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
    let all: Vec<String> = (0..length % 2_000).map(|n| n.to_string()).collect();
    let given = walk(&all);
    for other in ["prompts/list", "tools/list:2", ""] {
        for ours in &given {
            assert!(
                page(other, &all, String::as_str, Some(ours)).is_err(),
                "{ours} is of another list"
            );
        }
    }
    match page(LIST, &all, String::as_str, Some(cursor)) {
        Ok(page) => assert!(
            !all.is_empty() && all.get(1..).is_some_and(|rest| follows(rest, page.items)),
            "{cursor:?} does not continue the list"
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

/// Whether the items are the rest of the list from one of its entries on, or the beginning of that rest.
fn follows(list: &[String], items: &[String]) -> bool {
    (0..=list.len()).any(|at| list.get(at..).is_some_and(|rest| rest.starts_with(items)))
}

/// Every cursor of a list, in order; asserts that each entry appears once, in order.
fn walk(all: &[String]) -> Vec<String> {
    let mut given: Vec<String> = Vec::new();
    let mut seen = Vec::new();
    loop {
        let Ok(page) = page(LIST, all, String::as_str, given.last().map(String::as_str)) else {
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
