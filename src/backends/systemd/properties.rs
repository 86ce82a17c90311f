//! Reads values out of a unit's properties; one that is absent or says "unknown" is nothing.

use zbus::zvariant::{OwnedValue, Value};

use crate::sys::rfc3339;

use super::super::bus::Properties;

/// A text; an empty one is nothing.
pub fn text(properties: &Properties, name: &str) -> Option<String> {
    word(properties.get(name)?)
}

/// A value that is a text; an empty one is nothing.
pub fn word(value: &OwnedValue) -> Option<String> {
    match &**value {
        Value::Str(text) if !text.is_empty() => Some(text.to_string()),
        _ => None,
    }
}

/// A value that is a whole number.
pub fn number(value: &OwnedValue) -> Option<u64> {
    match &**value {
        Value::U32(number) => Some(u64::from(*number)),
        Value::U64(number) => Some(*number),
        Value::I32(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// A quantity; the highest number stands for one that is not measured.
pub fn quantity(properties: &Properties, name: &str) -> Option<u64> {
    number(properties.get(name)?).filter(|quantity| *quantity != u64::MAX)
}

/// A moment in microseconds since 1970, as RFC 3339; 0 stands for never.
pub fn moment(properties: &Properties, name: &str) -> Option<String> {
    let us = quantity(properties, name).filter(|us| *us != 0)?;
    Some(rfc3339(us / 1000))
}

/// Whether a flag is set.
pub fn flag(properties: &Properties, name: &str) -> bool {
    matches!(
        properties.get(name).map(|value| &**value),
        Some(Value::Bool(true))
    )
}

/// A list of texts, in the order given.
pub fn texts(properties: &Properties, name: &str) -> Vec<String> {
    let Some(Value::Array(list)) = properties.get(name).map(|value| &**value) else {
        return Vec::new();
    };
    let text = |value: &Value<'_>| match value {
        Value::Str(text) => Some(text.to_string()),
        _ => None,
    };
    list.iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties() -> Properties {
        let values: [(&str, Value<'_>); 9] = [
            ("Id", "a.service".into()),
            ("Following", "".into()),
            ("MainPID", 7_u32.into()),
            ("ExecMainStatus", (-1_i32).into()),
            ("MemoryCurrent", u64::MAX.into()),
            ("ActiveEnterTimestamp", 1_785_231_000_125_000_u64.into()),
            ("InactiveEnterTimestamp", 0_u64.into()),
            ("NeedDaemonReload", true.into()),
            ("Triggers", vec!["b.service", "c.service"].into()),
        ];
        values
            .into_iter()
            .map(|(name, value)| (name.to_owned(), OwnedValue::try_from(value).unwrap()))
            .collect()
    }

    #[test]
    fn what_is_not_known_is_nothing() {
        let all = properties();
        assert_eq!(text(&all, "Id").as_deref(), Some("a.service"));
        for name in ["Following", "MainPID", "None"] {
            assert_eq!(text(&all, name), None, "{name}");
        }
        assert_eq!(quantity(&all, "MainPID"), Some(7));
        for name in ["ExecMainStatus", "MemoryCurrent", "Id", "None"] {
            assert_eq!(quantity(&all, name), None, "{name}");
        }
        assert_eq!(
            moment(&all, "ActiveEnterTimestamp").as_deref(),
            Some("2026-07-28T09:30:00.125Z")
        );
        assert_eq!(moment(&all, "InactiveEnterTimestamp"), None);
        assert!(flag(&all, "NeedDaemonReload") && !flag(&all, "Id"));
        assert_eq!(texts(&all, "Triggers"), ["b.service", "c.service"]);
        assert!(texts(&all, "Id").is_empty());
    }
}
