//! "Did you mean": the known word nearest to a mistyped one.

/// The longest word that is compared; a longer one has no nearest.
const MAX_CHARS: usize = 64;

/// The known word that is at most a third of its length away, if any.
pub fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if typed.chars().count() > MAX_CHARS {
        return None;
    }
    known
        .map(|word| (distance(typed, word), word))
        .filter(|(away, word)| *away <= word.chars().count().div_ceil(3))
        .min_by_key(|(away, _)| *away)
        .map(|(_, word)| word)
}

/// How many letters must be added, left out or changed (Levenshtein).
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
