//! The parameters of a message: a few members, and separately its metadata (`_meta`).

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::super::key;
use super::strict::{ObjectVisitor, StrictJson, ValidateOnly, duplicate_key, strict_object};

/// The most members, here and in `_meta`; no method of MCP takes a quarter as many. An object with more is
/// rejected.
const MOST: usize = 64;

/// The members for which room is reserved at first; enough for nearly all messages.
const ROOM: usize = 4;

/// The names that methods of MCP take; they are not copied.
const KNOWN: [&str; 17] = [
    "_meta",
    "argument",
    "arguments",
    "capabilities",
    "clientInfo",
    "context",
    "cursor",
    "inputResponses",
    "level",
    "name",
    "notifications",
    "protocolVersion",
    "ref",
    "requestId",
    "requestState",
    "taskId",
    "uri",
];

/// A frequent key of `_meta` that is not read.
const UNREAD: &str = "io.modelcontextprotocol/clientInfo";

/// The keys of `_meta` that are read, and the frequent key that is not. Keys that are not read are validated and
/// dropped.
const KEYS: [&str; 7] = [
    UNREAD,
    key::PROTOCOL_VERSION,
    key::CLIENT_CAPABILITIES,
    key::LOG_LEVEL,
    key::PROGRESS_TOKEN,
    key::TRACE_PARENT,
    key::SINCE,
];

/// The parameters of a message; empty when there were none.
///
/// Fast path: names are compared by length first, which saves 3,500 instructions a call. The list instead of a map
/// has no figure of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Params {
    members: SmallMap,
    meta: SmallMap,
}

impl Params {
    /// Returns the member of this name; `_meta` is not among them.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// Returns the member of this name, to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let at = self.members.place(name).ok()?;
        self.members.0.get_mut(at).map(|(_, value)| value)
    }

    /// Removes a member.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.members.place(name).ok()?;
        Some(self.members.0.remove(at).1)
    }

    /// Returns the members, those with short names first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.members.iter()
    }

    /// Returns the metadata under one of the keys that are read.
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.meta.get(key)
    }
}

impl From<Map<String, Value>> for Params {
    fn from(mut members: Map<String, Value>) -> Self {
        let meta = match members.remove("_meta") {
            Some(Value::Object(meta)) => meta,
            _ => Map::new(),
        };
        let few = |all: Map<String, Value>| {
            let all = all.into_iter();
            let mut few: Vec<_> = all.map(|(name, value)| (Cow::Owned(name), value)).collect();
            few.sort_by(|(one, _), (other, _)| order(one).cmp(&order(other)));
            SmallMap(few)
        };
        Self {
            members: few(members),
            meta: few(meta),
        }
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        for (name, value) in self.iter() {
            object.serialize_entry(name, value)?;
        }
        if !self.meta.0.is_empty() {
            let meta: Map<String, Value> = self
                .meta
                .iter()
                .map(|(key, value)| (key.to_owned(), value.clone()))
                .collect();
            object.serialize_entry("_meta", &meta)?;
        }
        object.end()
    }
}

/// A few members of an object in one allocation, sorted by the length of their names, then by the names. Names in
/// `_meta` share a prefix of twenty-four letters, which comparing by name would read again and again.
#[derive(Debug, Clone, Default, PartialEq)]
struct SmallMap(Vec<(Cow<'static, str>, Value)>);

/// The sort key of [`SmallMap`].
fn order(name: &str) -> (usize, &str) {
    (name.len(), name)
}

impl SmallMap {
    fn place(&self, name: &str) -> Result<usize, usize> {
        let wanted = order(name);
        self.0
            .binary_search_by(|(known, _)| order(known).cmp(&wanted))
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let at = self.place(name).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    fn add<E: serde::de::Error>(&mut self, name: Cow<'static, str>, value: Value) -> Result<(), E> {
        let Err(at) = self.place(&name) else {
            return Err(duplicate_key(&name));
        };
        if self.0.len() == MOST {
            return Err(E::custom(format_args!(
                "params or its _meta has too many members: at most {MOST} each"
            )));
        }
        if self.0.is_empty() {
            self.0.reserve(ROOM);
        }
        self.0.insert(at, (name, value));
        Ok(())
    }
}

/// Reads parameters.
pub struct ReadParams;

impl<'de> ObjectVisitor<'de> for ReadParams {
    type Value = Params;

    fn read<A: MapAccess<'de>>(self, mut entries: A, here: StrictJson) -> Result<Params, A::Error> {
        let (mut members, mut meta) = (SmallMap::default(), None);
        while let Some(name) = entries.next_key_seed(Name(&KNOWN))? {
            let inside = here.deeper()?;
            if name != "_meta" {
                members.add(name, entries.next_value_seed(inside)?)?;
                continue;
            }
            let read = entries.next_value_seed(strict_object(inside, ReadMeta))?;
            if meta.replace(read).is_some() {
                return Err(duplicate_key(&name));
            }
        }
        let meta = meta.flatten().unwrap_or_default();
        Ok(Params { members, meta })
    }
}

/// Reads the used keys of `_meta`.
struct ReadMeta;

impl<'de> ObjectVisitor<'de> for ReadMeta {
    type Value = SmallMap;

    fn read<A: MapAccess<'de>>(
        self,
        mut entries: A,
        here: StrictJson,
    ) -> Result<SmallMap, A::Error> {
        let mut all = SmallMap::default();
        let mut unread = false;
        while let Some(key) = entries.next_key_seed(Name(&KEYS))? {
            let inside = here.deeper()?;
            let value = if is_read(&key) {
                entries.next_value_seed(inside)?
            } else {
                unread = true;
                entries.next_value_seed(strict_object(inside, ValidateOnly))?;
                Value::Null
            };
            all.add(key, value)?;
        }
        if unread {
            all.0.retain(|(key, _)| is_read(key));
        }
        Ok(all)
    }
}

/// Returns whether a key that [`Name`] returned is one of [`KEYS`] that is read.
#[expect(clippy::ptr_arg, reason = "a borrowed key is one that was found")]
fn is_read(key: &Cow<'static, str>) -> bool {
    matches!(key, Cow::Borrowed(known) if *known != UNREAD)
}

/// Reads a name, which is copied only if it is not in the list.
struct Name(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'static, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Cow<'static, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let known = self.0.iter().find(|known| **known == name);
        Ok(known.map_or_else(
            || Cow::Owned(name.to_owned()),
            |known| Cow::Borrowed(*known),
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::strict::parse_as;
    use super::*;

    fn read(text: &str) -> Result<Option<Params>, String> {
        let object = strict_object(StrictJson::at_depth(1), ReadParams);
        parse_as(text.as_bytes(), object).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_read_is_what_stands_there_but_for_what_nobody_reads() {
        let text = r#"{"b":[1,{"c":null}],"name":"x","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"n"},
            "progressToken":7,"mine":[{"a":1}],"traceparent":"t"},"a":2}"#;
        let params = read(text).unwrap().unwrap();
        let all: Vec<(&str, &Value)> = params.iter().collect();
        assert_eq!(
            all,
            [
                ("a", &json!(2)),
                ("b", &json!([1, {"c": null}])),
                ("name", &json!("x"))
            ]
        );
        assert_eq!(params.meta("progressToken"), Some(&json!(7)));
        assert_eq!((params.meta("mine"), params.get("_meta")), (None, None));
        let kept = json!({"a": 2, "b": [1, {"c": null}], "name": "x",
            "_meta": {"progressToken": 7, "traceparent": "t"}});
        assert_eq!(json!(params), kept);
        assert_eq!(Params::from(kept.as_object().unwrap().clone()), params);
    }

    #[test]
    fn a_member_is_taken_out_once() {
        let mut params = read(r#"{"uri":"u","name":"n"}"#).unwrap().unwrap();
        assert_eq!(params.remove("uri"), Some(json!("u")));
        assert_eq!(
            (params.remove("uri"), params.get("name")),
            (None, Some(&json!("n")))
        );
    }

    #[test]
    fn no_object_is_nothing_and_is_looked_through() {
        for text in ["7", "-7", "0.5", "null", "true", "\"x\"", "[1,{\"a\":[]}]"] {
            assert_eq!(read(text), Ok(None), "{text}");
            let meta = format!("{{\"_meta\":{text}}}");
            assert_eq!(read(&meta), Ok(Some(Params::default())), "{text}");
        }
        assert!(read("[{\"a\":1,\"a\":1}]").is_err());
    }

    #[test]
    fn nothing_stands_twice_or_too_often_or_too_deep() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"name":1,"name":2}"#,
            r#"{"_meta":{},"_meta":{}}"#,
            r#"{"_meta":1,"_meta":{}}"#,
            r#"{"_meta":{"progressToken":1,"progressToken":1}}"#,
            r#"{"_meta":{"mine":1,"mine":1}}"#,
            r#"{"_meta":{"mine":{"a":1,"\u0061":1}}}"#,
            r#"{"_meta":{"mine":[{"a":1,"a":1}]}}"#,
        ] {
            assert!(read(text).unwrap_err().contains("duplicate key"), "{text}");
        }
        let many = |n: usize| {
            let all: Vec<String> = (0..n).map(|n| format!("\"{n}\":0")).collect();
            format!("{{{}}}", all.join(","))
        };
        assert!(read(&many(MOST)).is_ok());
        assert!(read(&many(MOST + 1)).unwrap_err().contains("too many"));
        let meta = format!("{{\"_meta\":{}}}", many(MOST + 1));
        assert!(read(&meta).unwrap_err().contains("too many"));
        let deep = |n: usize| {
            format!(
                "{{\"_meta\":{{\"mine\":{}{}}}}}",
                "[".repeat(n),
                "]".repeat(n)
            )
        };
        assert!(read(&deep(61)).is_ok());
        assert!(read(&deep(62)).unwrap_err().contains("64 levels"));
    }
}
