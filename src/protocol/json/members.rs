//! Parses the outermost members of a body directly into fields: every request has them, and no others are used.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{
    params::{Params, ReadParams},
    strict::{ByShape, ShapeVisitor, StrictJson, ValidateOnly, duplicate_key, strict_object},
};

/// A method's name; the most frequent ones are not copied.
pub type MethodName = Cow<'static, str>;

/// The members of a message.
#[derive(Default)]
pub struct MessageMembers {
    /// Whether it has `"jsonrpc": "2.0"`.
    pub is_2_0: bool,
    /// Its id, unvalidated, like the result and the error.
    pub id: Option<Value>,
    /// The method.
    pub method: Member<MethodName>,
    /// The parameters.
    pub params: Member<Params>,
    /// The result of a response.
    pub result: Option<Value>,
    /// The error of a response.
    pub error: Option<Value>,
}

/// A member that must have one kind of value.
#[derive(Default)]
pub enum Member<T> {
    /// It is missing.
    #[default]
    Absent,
    /// It has another kind of value.
    Other,
    /// Its value.
    Right(T),
}

impl<T> Member<T> {
    /// Stores the value that was read; a second value is an error.
    fn put<E: serde::de::Error>(&mut self, name: &'static str, read: Option<T>) -> Result<(), E> {
        if !matches!(self, Self::Absent) {
            return Err(duplicate_key(name));
        }
        *self = read.map_or(Self::Other, Self::Right);
        Ok(())
    }
}

/// A parsed body; a value that is not an object has no members.
pub enum ParsedBody {
    /// Anything but an array.
    One(Option<MessageMembers>),
    /// An array.
    Several(Vec<Option<MessageMembers>>),
}

/// Reads a body, or one message of a batch within it.
///
/// Fast path: the figures are at `ToolResult::answer`.
#[derive(Clone, Copy)]
pub struct BodySeed {
    within: bool,
}

impl BodySeed {
    /// A whole body.
    pub const BODY: ByShape<Self> = ByShape(Self { within: false });
}

/// Converts a string; any other value is validated and becomes `None`.
struct OfText<T>(StrictJson, fn(&str) -> T);

fn of_text<T>(depth: StrictJson, convert: fn(&str) -> T) -> ByShape<OfText<T>> {
    ByShape(OfText(depth, convert))
}

/// A member's name.
enum Name {
    JsonRpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    /// A name without meaning; it must not be repeated either.
    Other(String),
}

impl MessageMembers {
    fn read<'de, A: MapAccess<'de>>(mut entries: A, outside: StrictJson) -> Result<Self, A::Error> {
        let mut members = Self::default();
        let (mut version, mut others) = (None, Vec::new());
        while let Some(name) = entries.next_key_seed(NameSeed)? {
            let inside = outside.deeper()?;
            let place = match name {
                Name::JsonRpc => {
                    let is_2_0 = entries.next_value_seed(of_text(inside, |text| text == "2.0"))?;
                    if version.replace(is_2_0).is_some() {
                        return Err(duplicate_key("jsonrpc"));
                    }
                    continue;
                }
                Name::Id => ("id", &mut members.id),
                Name::Method => {
                    let method = entries.next_value_seed(of_text(inside, known_method))?;
                    members.method.put("method", method)?;
                    continue;
                }
                Name::Params => {
                    let params = entries.next_value_seed(strict_object(inside, ReadParams))?;
                    members.params.put("params", params)?;
                    continue;
                }
                Name::Result => ("result", &mut members.result),
                Name::Error => ("error", &mut members.error),
                Name::Other(name) => {
                    entries.next_value_seed(strict_object(inside, ValidateOnly))?;
                    if others.contains(&name) {
                        return Err(duplicate_key(&name));
                    }
                    if others.len() == MOST_OTHERS {
                        return Err(A::Error::custom(format_args!(
                            "a message has too many members: at most {MOST_OTHERS} unknown ones are allowed"
                        )));
                    }
                    others.push(name);
                    continue;
                }
            };
            let (name, place) = place;
            if place.replace(entries.next_value_seed(inside)?).is_some() {
                return Err(duplicate_key(name));
            }
        }
        members.is_2_0 = version.flatten().unwrap_or_default();
        Ok(members)
    }
}

/// The methods that clients call most.
const OFTEN: [&str; 6] = [
    "tools/call",
    "resources/read",
    "tools/list",
    "tasks/get",
    "resources/list",
    "ping",
];

fn known_method(name: &str) -> MethodName {
    let known = OFTEN.iter().find(|known| **known == name);
    known.map_or_else(
        || Cow::Owned(name.to_owned()),
        |known| Cow::Borrowed(*known),
    )
}

/// The most unknown members of a message, in addition to its six own; a message with more is rejected.
const MOST_OTHERS: usize = 64;

impl<'de> ShapeVisitor<'de> for BodySeed {
    type Value = ParsedBody;

    fn other(self) -> ParsedBody {
        ParsedBody::One(None)
    }

    fn array<A: SeqAccess<'de>>(self, mut items: A) -> Result<ParsedBody, A::Error> {
        if self.within {
            StrictJson::at_depth(1).visit_seq(items)?;
            return Ok(ParsedBody::One(None));
        }
        let mut several = Vec::new();
        while let Some(item) = items.next_element_seed(ByShape(Self { within: true }))? {
            several.push(match item {
                ParsedBody::One(one) => one,
                ParsedBody::Several(_) => None,
            });
        }
        Ok(ParsedBody::Several(several))
    }

    fn object<A: MapAccess<'de>>(self, entries: A) -> Result<ParsedBody, A::Error> {
        let outside = StrictJson::at_depth(u8::from(self.within));
        let members = MessageMembers::read(entries, outside)?;
        Ok(ParsedBody::One(Some(members)))
    }
}

impl<'de, T> ShapeVisitor<'de> for OfText<T> {
    type Value = Option<T>;

    fn other(self) -> Self::Value {
        None
    }

    fn text(self, text: &str) -> Self::Value {
        Some(self.1(text))
    }

    fn array<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        let validated = strict_object(self.0, ValidateOnly).visit_seq(items);
        validated.map(|_| None)
    }

    fn object<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        let validated = strict_object(self.0, ValidateOnly).visit_map(entries);
        validated.map(|_| None)
    }
}

struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Name, E> {
        Ok(match name {
            "jsonrpc" => Name::JsonRpc,
            "id" => Name::Id,
            "method" => Name::Method,
            "params" => Name::Params,
            "result" => Name::Result,
            "error" => Name::Error,
            other => Name::Other(other.to_owned()),
        })
    }
}
