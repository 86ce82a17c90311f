//! What stands in a message of the bus: values that come, and arguments that go.

/// A value that somebody on the bus has sent. D-Bus knows more sizes of numbers and kinds of text than
/// matters to a reader; a variant is the value in it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
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
    /// The items of an array, or the fields of a struct. An entry of a dictionary is a struct of two.
    Items(Vec<Self>),
}

impl Value {
    /// The text of a text.
    pub fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items of an array or a struct.
    pub fn into_items(self) -> Option<Vec<Self>> {
        match self {
            Self::Items(items) => Some(items),
            _ => None,
        }
    }
}

/// An argument of a call, of the types that calls from here have.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    /// `s`
    Text(&'a str),
    /// `as`
    Texts(&'a [String]),
}
