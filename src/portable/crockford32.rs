//! Crockford's base 32: letters and digits that are hard to confuse, for codes that people type.

use super::random::{RandomError, random_bytes};
use super::secret::Zeroizing;

/// One character for each value of five bits.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Returns random characters, five bits each.
pub fn random_letters<const COUNT: usize>() -> Result<String, RandomError> {
    let random: Zeroizing<[u8; COUNT]> = Zeroizing::new(random_bytes()?);
    // A text that grows would leave copies behind.
    let mut letters = String::with_capacity(COUNT);
    letters.extend(random.iter().filter_map(|byte| encode_digit(*byte)));
    Ok(letters)
}

/// Encodes bytes, eight characters for each five bytes; the last group is padded with zero bits.
pub fn to_letters(bytes: &[u8]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(5) {
        let mut five = [0; 8];
        for (to, from) in five.iter_mut().skip(3).zip(group) {
            *to = *from;
        }
        let bits = u64::from_be_bytes(five);
        let count = (group.len() * 8).div_ceil(5);
        let shifts = (0..8).rev().map(|place| place * 5).take(count);
        text.extend(shifts.filter_map(|shift| encode_digit((bits >> shift).to_le_bytes()[0])));
    }
    text
}

/// Decodes characters to bytes; `None` if a character is invalid, or the length is not a multiple of eight.
pub fn from_letters(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for group in text.as_bytes().chunks(8) {
        let bits = group.iter().try_fold(0_u64, |bits, letter| {
            let value = ALPHABET.iter().position(|known| known == letter)?;
            Some((bits << 5) | u64::try_from(value).ok()?)
        })?;
        if group.len() != 8 {
            return None;
        }
        bytes.extend(bits.to_be_bytes().into_iter().skip(3));
    }
    Some(bytes)
}

/// Normalises typed input: ignores spaces and hyphens, and reads `o` as zero, `i` and `l` as one.
pub fn normalized_letters(typed: &str) -> impl Iterator<Item = char> {
    typed
        .chars()
        .filter_map(|typed| match typed.to_ascii_uppercase() {
            'O' => Some('0'),
            'I' | 'L' => Some('1'),
            '-' => None,
            letter if letter.is_whitespace() => None,
            letter => Some(letter),
        })
}

/// Returns the character of the five lowest bits.
fn encode_digit(bits: u8) -> Option<char> {
    ALPHABET
        .get(usize::from(bits % 32))
        .map(|byte| char::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_back_from_their_letters() {
        for bytes in [&[][..], &[0; 5], &[255; 10], b"12345", b"hello, you"] {
            let text = to_letters(bytes);
            assert_eq!(text.len(), bytes.len() / 5 * 8);
            assert_eq!(from_letters(&text).as_deref(), Some(bytes));
        }
        assert_eq!(to_letters(&[0xff, 0, 0, 0, 0x1f]), "ZW00000Z");
        for bad in ["A", "AAAAAAA", "AAAAAAAU", "aaaaaaaa", "AAAAAAA\u{e9}"] {
            assert_eq!(from_letters(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_typed_is_taken_as_it_was_meant() {
        let meant: String = normalized_letters(" abc-oO iIl\t1").collect();
        assert_eq!(meant, "ABC001111");
        let random = random_letters::<12>().unwrap();
        assert_eq!(
            normalized_letters(&random.to_lowercase()).collect::<String>(),
            random
        );
    }
}
