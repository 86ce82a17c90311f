//! Decodes values by their signature (D-Bus specification, "Marshaling").

use super::error::BusError;
use super::value::BusValue;

/// The maximum nesting depth; the specification allows no more.
const MAX_DEPTH: u32 = 64;

/// The maximum number of values in a message; a message with more is rejected. `ListUnits` has
/// eleven a unit.
const MAX_VALUES: u32 = 1 << 20;

/// The bytes of a message or of its body, which starts at the same alignment.
pub(super) struct BusReader<'a> {
    bytes: &'a [u8],
    at: usize,
    values: u32,
}

impl<'a> BusReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            values: 0,
        }
    }

    /// Reads one value for each complete type of the signature.
    pub(super) fn values(&mut self, signature: &str) -> Result<Vec<BusValue>, BusError> {
        self.sequence(signature.as_bytes(), 0)
    }

    /// Skips to the next multiple of `size`.
    pub(super) fn align(&mut self, size: usize) -> Result<(), BusError> {
        let gap = self.at.next_multiple_of(size) - self.at;
        self.take(gap).map(drop)
    }

    /// Returns the next bytes.
    pub(super) fn take(&mut self, size: usize) -> Result<&'a [u8], BusError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..size).ok_or(SHORT)?;
        self.at += size;
        Ok(taken)
    }

    /// Reads the next number, aligned to its size. Only messages in native byte order reach this.
    fn number<const SIZE: usize>(&mut self) -> Result<[u8; SIZE], BusError> {
        self.align(SIZE)?;
        self.take(SIZE)?.try_into().map_err(|_| SHORT)
    }

    pub(super) fn u32(&mut self) -> Result<u32, BusError> {
        self.number().map(u32::from_ne_bytes)
    }

    fn size(&mut self) -> Result<usize, BusError> {
        usize::try_from(self.u32()?).map_err(|_| SHORT)
    }

    /// Reads text of this size and the zero byte after it.
    fn text(&mut self, size: usize) -> Result<&'a str, BusError> {
        let text = self.take(size)?;
        self.take(1)?;
        std::str::from_utf8(text).map_err(|_| BusError::Malformed("text that is not UTF-8"))
    }

    fn signature(&mut self) -> Result<&'a str, BusError> {
        let [size] = self.number()?;
        self.text(size.into())
    }

    fn sequence(&mut self, mut types: &[u8], depth: u32) -> Result<Vec<BusValue>, BusError> {
        let mut values = Vec::new();
        while !types.is_empty() {
            let (first, rest) = first(types).ok_or(UNKNOWN)?;
            values.push(self.value(first, depth)?);
            types = rest;
        }
        Ok(values)
    }

    /// Reads a value of one complete type.
    fn value(&mut self, kind: &[u8], depth: u32) -> Result<BusValue, BusError> {
        self.values += 1;
        if depth > MAX_DEPTH || self.values > MAX_VALUES {
            return Err(BusError::Malformed("too many values"));
        }
        let (code, inner) = kind.split_first().ok_or(UNKNOWN)?;
        Ok(match code {
            b'b' => BusValue::Bool(self.u32()? != 0),
            b'y' => BusValue::Unsigned(u8::from_ne_bytes(self.number()?).into()),
            b'q' => BusValue::Unsigned(u16::from_ne_bytes(self.number()?).into()),
            b'u' | b'h' => BusValue::Unsigned(self.u32()?.into()),
            b't' => BusValue::Unsigned(u64::from_ne_bytes(self.number()?)),
            b'n' => BusValue::Signed(i16::from_ne_bytes(self.number()?).into()),
            b'i' => BusValue::Signed(i32::from_ne_bytes(self.number()?).into()),
            b'x' => BusValue::Signed(i64::from_ne_bytes(self.number()?)),
            b'd' => BusValue::Fraction(f64::from_ne_bytes(self.number()?)),
            b's' | b'o' => {
                let size = self.size()?;
                BusValue::Text(self.text(size)?.to_owned())
            }
            b'g' => BusValue::Text(self.signature()?.to_owned()),
            b'v' => self.variant(depth)?,
            b'a' => self.array(inner, depth)?,
            b'(' | b'{' => {
                self.align(8)?;
                let fields = inner.split_last().ok_or(UNKNOWN)?.1;
                BusValue::Items(self.sequence(fields, depth + 1)?)
            }
            _ => return Err(UNKNOWN),
        })
    }

    fn variant(&mut self, depth: u32) -> Result<BusValue, BusError> {
        let kind = self.signature()?.as_bytes();
        match first(kind) {
            Some((only, [])) => self.value(only, depth + 1),
            _ => Err(UNKNOWN),
        }
    }

    fn array(&mut self, kind: &[u8], depth: u32) -> Result<BusValue, BusError> {
        let size = self.size()?;
        // The padding before the first item exists even in an empty array, and is not part of the
        // size.
        self.align(alignment(kind))?;
        let end = self.at.saturating_add(size);
        let mut items = Vec::new();
        while self.at < end {
            items.push(self.value(kind, depth + 1)?);
        }
        if self.at != end {
            return Err(SHORT);
        }
        Ok(BusValue::Items(items))
    }
}

const SHORT: BusError = BusError::Malformed("a truncated message");

const UNKNOWN: BusError = BusError::Malformed("values of an unknown type");

/// Splits a signature after its first complete type.
fn first(types: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut open = 0_u32;
    for (at, code) in types.iter().enumerate() {
        match code {
            b'a' => continue,
            b'(' | b'{' => open += 1,
            b')' | b'}' => open = open.checked_sub(1)?,
            _ => {}
        }
        if open == 0 {
            return types.split_at_checked(at + 1);
        }
    }
    None
}

fn alignment(kind: &[u8]) -> usize {
    match kind.first() {
        Some(b'y' | b'g' | b'v') => 1,
        Some(b'n' | b'q') => 2,
        Some(b'x' | b't' | b'd' | b'(' | b'{') => 8,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(signature: &str, bytes: &[u8]) -> Result<Vec<BusValue>, BusError> {
        BusReader::new(bytes).values(signature)
    }

    fn number(number: u32) -> [u8; 4] {
        number.to_ne_bytes()
    }

    #[test]
    fn values_stand_where_their_alignment_puts_them() {
        let mut bytes = vec![7, 0, 0, 0];
        bytes.extend(number(1));
        bytes.extend((-2_i64).to_ne_bytes());
        bytes.extend(number(2));
        bytes.extend(b"ab\0");
        bytes.extend(b"\x01g\0\x02as\0");
        assert_eq!(
            read("ybxsv", &bytes).unwrap(),
            [
                BusValue::Unsigned(7),
                BusValue::Bool(true),
                BusValue::Signed(-2),
                BusValue::Text("ab".to_owned()),
                BusValue::Text("as".to_owned()),
            ]
        );
    }

    #[test]
    fn a_dictionary_is_a_list_of_pairs() {
        // Entries start at a multiple of eight; these have sixteen bytes.
        let mut bytes = number(16).to_vec();
        bytes.extend([0; 4]);
        bytes.extend(number(1));
        bytes.extend(b"k\0\x01u\0\0\0\0");
        bytes.extend(number(9));
        let pair = BusValue::Items(vec![BusValue::Text("k".to_owned()), BusValue::Unsigned(9)]);
        assert_eq!(
            read("a{sv}", &bytes).unwrap(),
            [BusValue::Items(vec![pair])]
        );
        // Empty except for the padding.
        assert_eq!(
            read("a{sv}", &[0; 8]).unwrap(),
            [BusValue::Items(Vec::new())]
        );
    }

    #[test]
    fn nothing_is_read_beyond_the_end_or_without_bound() {
        let deep = format!("{}y", "a".repeat(80));
        let variants = b"\x01v\0".repeat(100);
        let mut array = number(u32::MAX).to_vec();
        array.push(0);
        #[rustfmt::skip]
        let cases: [(&str, &[u8]); 8] = [
            ("u", &[1, 0, 0]), ("s", &[9, 0, 0, 0, b'a', 0]), ("as", &[4, 0, 0, 0]), ("v", &variants),
            ("(u", &[0; 8]), ("u)", &[0; 8]), ("z", &[0; 8]), ("ay", &array),
        ];
        for (signature, bytes) in cases {
            assert!(read(signature, bytes).is_err(), "{signature}");
        }
        // Items of zero bytes would never reach the end of the array.
        let mut array = number(8).to_vec();
        array.extend([0; 12]);
        assert!(read("a()", &array).is_err());
        // Nested arrays are valid as long as they are empty.
        assert!(read(&deep, &[0; 8]).is_ok());
    }
}
