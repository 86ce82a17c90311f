//! Strict JSON parsing: one value, no duplicate keys, bounded nesting.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The deepest nesting of objects and arrays; deeper input is rejected while it is parsed.
const MAX_DEPTH: u8 = 64;

/// Why bytes are not acceptable JSON.
#[derive(Debug)]
pub struct JsonError(serde_json::Error);

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for JsonError {}

/// Parses exactly one JSON value with a seed.
pub fn parse_as<'de, S: DeserializeSeed<'de>>(
    bytes: &'de [u8],
    seed: S,
) -> Result<S::Value, JsonError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = seed.deserialize(&mut reader).map_err(JsonError)?;
    reader.end().map_err(JsonError)?;
    Ok(value)
}

/// A seed that rejects duplicate keys: two parsers that pick different ones would see different requests.
#[derive(Clone, Copy)]
pub struct StrictJson {
    depth: u8,
}

impl StrictJson {
    /// Returns the seed at this depth.
    pub fn at_depth(depth: u8) -> Self {
        Self { depth }
    }

    /// Returns the seed for the members and elements, one level deeper.
    pub fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(E::custom(format_args!(
                "nested deeper than {MAX_DEPTH} levels"
            )));
        }
        Ok(Self {
            depth: self.depth + 1,
        })
    }
}

impl<'de> DeserializeSeed<'de> for StrictJson {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictJson {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self.deeper()?)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self.deeper()?)?;
            if object.contains_key(&name) {
                return Err(duplicate_key(&name));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

/// Returns the error for a duplicate key.
pub fn duplicate_key<E: serde::de::Error>(name: &str) -> E {
    let short: String = name.chars().take(64).collect();
    E::custom(format_args!("duplicate key {short:?} in an object"))
}

/// Builds a value from an object's members.
pub trait ObjectVisitor<'de> {
    /// The result.
    type Value;

    /// Reads the members, whose values are nested one level deeper than `here`.
    fn read<A: MapAccess<'de>>(self, entries: A, here: StrictJson)
    -> Result<Self::Value, A::Error>;
}

/// What becomes of a value of each shape. Where only some shapes matter, all others become the same.
pub trait ShapeVisitor<'de>: Sized {
    /// The result.
    type Value;

    /// Returns the result for null, a boolean or a number, and by default for a string.
    fn other(self) -> Self::Value;

    /// Reads a string.
    fn text(self, text: &str) -> Self::Value {
        let _ = text;
        self.other()
    }

    /// Reads an array.
    fn array<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error>;

    /// Reads an object.
    fn object<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error>;
}

/// A seed that reads a value by its shape.
pub struct ByShape<T>(pub T);

impl<'de, T: ShapeVisitor<'de>> DeserializeSeed<'de> for ByShape<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: ShapeVisitor<'de>> Visitor<'de> for ByShape<T> {
    type Value = T::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.0.other())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(self.0.other())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(self.0.other())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(self.0.other())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(self.0.other())
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        self.0.array(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        self.0.object(entries)
    }
}

/// Returns the seed that reads an object at some depth. Any other value is validated as strictly, and becomes `None`.
pub fn strict_object<T>(depth: StrictJson, members: T) -> ByShape<StrictObject<T>> {
    ByShape(StrictObject { depth, members })
}

/// The object and its depth, of [`strict_object`].
pub struct StrictObject<T> {
    depth: StrictJson,
    members: T,
}

impl<'de, T: ObjectVisitor<'de>> ShapeVisitor<'de> for StrictObject<T> {
    type Value = Option<T::Value>;

    fn other(self) -> Self::Value {
        None
    }

    fn array<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items
            .next_element_seed(strict_object(self.depth.deeper()?, ValidateOnly))?
            .is_some()
        {}
        Ok(None)
    }

    fn object<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        self.members.read(entries, self.depth).map(Some)
    }
}

/// The number of names of an object that are remembered without allocating.
const FIRST: usize = 4;

/// Validates an object and discards it.
pub struct ValidateOnly;

impl<'de> ObjectVisitor<'de> for ValidateOnly {
    type Value = ();

    fn read<A: MapAccess<'de>>(self, mut entries: A, here: StrictJson) -> Result<(), A::Error> {
        let mut first: [Cow<'de, str>; FIRST] = [const { Cow::Borrowed("") }; FIRST];
        let (mut seen, mut others) = (0, BTreeSet::new());
        while let Some(name) = entries.next_key_seed(NameHere)? {
            entries.next_value_seed(strict_object(here.deeper()?, Self))?;
            let known = first.get(..seen).unwrap_or_default();
            if known.contains(&name) || others.contains(&name) {
                return Err(duplicate_key(&name));
            }
            match first.get_mut(seen) {
                Some(place) => {
                    *place = name;
                    seen += 1;
                }
                None => drop(others.insert(name)),
            }
        }
        Ok(())
    }
}

/// A name, borrowed from the input if it contains no escapes.
struct NameHere;

impl<'de> DeserializeSeed<'de> for NameHere {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for NameHere {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Value, JsonError> {
        parse_as(bytes, StrictJson::at_depth(0))
    }

    #[test]
    fn ordinary_json_is_read_as_serde_json_reads_it() {
        let text = r#"{"a":[1,-2,3.5,"x\u00e9",true,null],"b":{"c":18446744073709551615}}"#;
        assert_eq!(
            parse(text.as_bytes()).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
    }

    #[test]
    fn two_equal_keys_are_refused_at_any_depth() {
        assert!(
            parse(br#"{"a":1,"a":2}"#)
                .unwrap_err()
                .to_string()
                .contains("duplicate key")
        );
        assert!(parse(br#"{"x":[{"a":1,"b":0,"a":1}]}"#).is_err());
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(deep(64).as_bytes()).is_ok());
        assert!(
            parse(deep(66).as_bytes())
                .unwrap_err()
                .to_string()
                .contains("64 levels")
        );
        assert!(parse(deep(100_000).as_bytes()).is_err());
    }

    #[test]
    fn one_value_and_nothing_after_it() {
        assert!(parse(b"{} {}").is_err());
        assert!(parse(b"").is_err());
        assert!(parse(b"\xff").is_err());
    }
}
