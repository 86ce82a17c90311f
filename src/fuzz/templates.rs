//! URI templates (RFC 6570, `{name}` and `{+name}`): the values of a match expand to the same URI.

use super::input::{parts, text};
use gatewren_wire::protocol::UriTemplate;

/// First part: a template; second part: a URI; third part: a value.
pub fn find_what_was_put_in(data: &[u8]) {
    let [template, uri, value] = parts(data);
    let (Some(template), Some(uri), Some(value)) = (text(template), text(uri), text(value)) else {
        return;
    };
    let Some(pieces) = pieces(template) else {
        return;
    };
    let parsed = UriTemplate::parse(template);
    if let Some(found) = parsed.matches(uri) {
        is_a_way_to_make(&pieces, uri, &found);
    }
    // A value without characters of the template must be found again, whatever surrounds it.
    let plain = !value.is_empty()
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() && !template.as_bytes().contains(&b));
    let apart = pieces
        .windows(2)
        .all(|pair| matches!(pair, [Piece::Text(_), _] | [_, Piece::Text(_)]));
    if plain && apart {
        let uri: String = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => *text,
                Piece::Variable { .. } => value,
            })
            .collect();
        let found = parsed.matches(&uri);
        let Some(found) = found else {
            panic!("{template:?} does not match {uri:?}");
        };
        assert!(found.iter().all(|(_, v)| *v == value), "{uri:?}: {found:?}");
        is_a_way_to_make(&pieces, &uri, &found);
    }
}

enum Piece<'t> {
    Text(&'t str),
    Variable { name: &'t str, slashes: bool },
}

/// The pieces of a template; `None` if RFC 6570 does not know it or we do not support it.
fn pieces(template: &str) -> Option<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(open) = rest.find(['{', '}']) {
        let (text, expression) = rest.split_at(open);
        let (inside, after) = expression.strip_prefix('{')?.split_once('}')?;
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        let slashes = inside.starts_with('+');
        let name = inside.strip_prefix('+').unwrap_or(inside);
        let named = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(named) {
            return None;
        }
        pieces.push(Piece::Variable { name, slashes });
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Some(pieces)
}

fn is_a_way_to_make(pieces: &[Piece<'_>], uri: &str, found: &[(&str, &str)]) {
    let mut values = found.iter();
    let mut made = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => made.push_str(text),
            Piece::Variable { name, slashes } => {
                let Some((found, value)) = values.next() else {
                    panic!("{name} was not found");
                };
                assert_eq!(found, name, "names are in their order");
                assert!(!value.is_empty() && (*slashes || !value.contains('/')));
                made.push_str(value);
            }
        }
    }
    assert!(
        values.next().is_none(),
        "more variables were found than requested"
    );
    assert_eq!(made, uri);
}
