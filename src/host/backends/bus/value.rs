//! Values in received D-Bus messages, and arguments of calls.

/// A received value. D-Bus has more number sizes and text types than readers need; a variant is
/// represented by the value in it.
#[derive(Debug, Clone, PartialEq)]
pub enum BusValue {
    /// `b`
    Bool(bool),
    /// `n`, `i` and `x`
    Signed(i64),
    /// `y`, `q`, `u` and `t`, and the index of a file descriptor
    Unsigned(u64),
    /// `d`
    Fraction(f64),
    /// `s`, object paths and signatures
    Text(String),
    /// The items of an array, or the fields of a struct. A dictionary entry is a struct of two
    /// fields.
    Items(Vec<Self>),
}

impl BusValue {
    /// Returns the text, if it is one.
    pub fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the items, if it is an array or a struct.
    pub fn into_items(self) -> Option<Vec<Self>> {
        match self {
            Self::Items(items) => Some(items),
            _ => None,
        }
    }
}

/// An argument of a call; only the types that this client sends.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// `s`
    Text(&'a str),
    /// `as`
    Texts(&'a [String]),
}
