//! "Did you mean": finds the known word that is most similar to a mistyped one.

/// The maximum length of a word to compare. A longer one has no similar word.
const MAX_CHARS: usize = 64;

/// The maximum distance. Long words with more in common than this are seldom meant.
const MAX_CHANGES: usize = 3;

/// Returns the most similar known word, if its distance is at most a third of its length and [`MAX_CHANGES`].
pub fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if typed.chars().count() > MAX_CHARS {
        return None;
    }
    known
        .map(|word| (distance(typed, word), word))
        .filter(|(away, word)| *away <= word.chars().count().div_ceil(3).min(MAX_CHANGES))
        .min_by_key(|(away, _)| *away)
        .map(|(_, word)| word)
}

/// Returns the Levenshtein distance: the number of characters to add, remove or change.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for ((to, above), beside) in b.iter().zip(&row).zip(row.iter().skip(1)) {
            let left = next.last().copied().unwrap_or(0);
            let changed = above + usize::from(from != *to);
            next.push(changed.min(left + 1).min(beside + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, away) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("ab", "ba", 2),
        ] {
            assert_eq!(distance(a, b), away, "{a} {b}");
            assert_eq!(distance(b, a), away, "{b} {a}");
        }
    }

    #[test]
    fn near_words_are_offered_and_far_ones_are_not() {
        let known = ["listen", "names", "state_dir"];
        assert_eq!(nearest("lisen", known.into_iter()), Some("listen"));
        assert_eq!(nearest("statedir", known.into_iter()), Some("state_dir"));
        assert_eq!(nearest("password", known.into_iter()), None);
        assert_eq!(nearest(&"x".repeat(100_000), known.into_iter()), None);
    }
}
