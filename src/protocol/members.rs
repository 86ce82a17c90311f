//! The outermost members of a body, read straight into their places: each request has them, and nobody looks for
//! others.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{
    json::{Object, Strict, Through, twice},
    params::{Params, ReadParams},
};

/// What a message says outside of its parameters.
#[derive(Default)]
pub struct Members {
    /// It has `"jsonrpc": "2.0"`.
    pub is_2_0: bool,
    /// Its id, whatever stands there; as in the rest.
    pub id: Option<Value>,
    /// The method.
    pub method: Option<Value>,
    /// The parameters; they may be no object.
    pub params: Option<Option<Params>>,
    /// The result of a response.
    pub result: Option<Value>,
    /// The error of one.
    pub error: Option<Value>,
}

/// A body: what is not an object has no members.
pub enum Parsed {
    /// No array.
    One(Option<Members>),
    /// An array.
    Several(Vec<Option<Members>>),
}

/// Reads a body; within it, one of a batch.
#[derive(Clone, Copy)]
pub struct Top {
    within: bool,
}

impl Top {
    /// A whole body.
    pub const BODY: Self = Self { within: false };
}

/// Reads a version of JSON-RPC: whether it is the one that there is.
struct Is2_0(Strict);

/// A member's name.
enum Name {
    JsonRpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    /// One that means nothing to anybody; it stands once all the same.
    Other(String),
}

impl Members {
    fn read<'de, A: MapAccess<'de>>(mut entries: A, outside: Strict) -> Result<Self, A::Error> {
        let mut members = Self::default();
        let (mut version, mut others) = (None, Vec::new());
        while let Some(name) = entries.next_key_seed(NameSeed)? {
            let inside = outside.deeper()?;
            let place = match name {
                Name::JsonRpc => {
                    let is_2_0 = entries.next_value_seed(Is2_0(inside))?;
                    if version.replace(is_2_0).is_some() {
                        return Err(twice("jsonrpc"));
                    }
                    continue;
                }
                Name::Id => ("id", &mut members.id),
                Name::Method => ("method", &mut members.method),
                Name::Params => {
                    let params = entries.next_value_seed(Object(inside, ReadParams))?;
                    if members.params.replace(params).is_some() {
                        return Err(twice("params"));
                    }
                    continue;
                }
                Name::Result => ("result", &mut members.result),
                Name::Error => ("error", &mut members.error),
                Name::Other(name) => {
                    entries.next_value_seed(Object(inside, Through))?;
                    if others.contains(&name) {
                        return Err(twice(&name));
                    }
                    if others.len() == MOST_OTHERS {
                        return Err(A::Error::custom("a message has too many members"));
                    }
                    others.push(name);
                    continue;
                }
            };
            let (name, place) = place;
            if place.replace(entries.next_value_seed(inside)?).is_some() {
                return Err(twice(name));
            }
        }
        members.is_2_0 = version.unwrap_or_default();
        Ok(members)
    }
}

/// A message has six members that mean something; with so many others it is none.
const MOST_OTHERS: usize = 64;

impl<'de> DeserializeSeed<'de> for Top {
    type Value = Parsed;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parsed, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Top {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Parsed, E> {
        Ok(Parsed::One(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Parsed, E> {
        Ok(Parsed::One(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Parsed, E> {
        Ok(Parsed::One(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Parsed, E> {
        Ok(Parsed::One(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Parsed, E> {
        Ok(Parsed::One(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Parsed, E> {
        Ok(Parsed::One(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Parsed, A::Error> {
        if self.within {
            Strict::within(1).visit_seq(items)?;
            return Ok(Parsed::One(None));
        }
        let mut several = Vec::new();
        while let Some(item) = items.next_element_seed(Self { within: true })? {
            several.push(match item {
                Parsed::One(one) => one,
                Parsed::Several(_) => None,
            });
        }
        Ok(Parsed::Several(several))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Parsed, A::Error> {
        let outside = Strict::within(u8::from(self.within));
        let members = Members::read(entries, outside)?;
        Ok(Parsed::One(Some(members)))
    }
}

impl<'de> DeserializeSeed<'de> for Is2_0 {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Is2_0 {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E>(self, version: &str) -> Result<bool, E> {
        Ok(version == "2.0")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<bool, A::Error> {
        self.0.visit_seq(items).map(|_| false)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<bool, A::Error> {
        self.0.visit_map(entries).map(|_| false)
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
