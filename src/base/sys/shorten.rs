//! Shortens texts for display.

/// Returns a text of at most `most` characters; a longer one is cut, and ends with `…`.
pub fn shorten(text: &str, most: usize) -> String {
    let mut places = text.char_indices().skip(most.saturating_sub(1));
    match (places.next(), places.next()) {
        (Some((cut, _)), Some(_)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_longer_text_is_cut() {
        assert_eq!(shorten("", 3), "");
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("äöüß", 3), "äö…");
        assert_eq!(shorten("äö", 1), "…");
    }
}
