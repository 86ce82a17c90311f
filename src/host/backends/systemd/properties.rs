//! Reads values of a unit's properties; an absent or unknown value is `None`.

use gatewren_base::sys::rfc3339;

use super::super::bus::{BusValue, Properties};

/// Returns a text; `None` if it is empty.
pub fn text(properties: &Properties, name: &str) -> Option<String> {
    word(properties.get(name)?)
}

/// Returns a value as text; `None` if it is empty.
pub fn word(value: &BusValue) -> Option<String> {
    match value {
        BusValue::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

/// Returns a value as a whole number.
pub fn number(value: &BusValue) -> Option<u64> {
    match value {
        BusValue::Unsigned(number) => Some(*number),
        BusValue::Signed(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// Returns a quantity; the highest number means that it is not measured.
pub fn quantity(properties: &Properties, name: &str) -> Option<u64> {
    number(properties.get(name)?).filter(|quantity| *quantity != u64::MAX)
}

/// Returns a time in microseconds since 1970 as RFC 3339; 0 means never.
pub fn moment(properties: &Properties, name: &str) -> Option<String> {
    let us = quantity(properties, name).filter(|us| *us != 0)?;
    Some(rfc3339(us / 1000))
}

/// Whether a flag is set.
pub fn flag(properties: &Properties, name: &str) -> bool {
    matches!(properties.get(name), Some(BusValue::Bool(true)))
}

/// Returns a list of texts, in order.
pub fn texts(properties: &Properties, name: &str) -> Vec<String> {
    let Some(BusValue::Items(list)) = properties.get(name) else {
        return Vec::new();
    };
    let texts = list.iter().cloned();
    texts.filter_map(BusValue::into_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties() -> Properties {
        let word = |text: &str| BusValue::Text(text.to_owned());
        let values = [
            ("Id", word("a.service")),
            ("Following", word("")),
            ("MainPID", BusValue::Unsigned(7)),
            ("ExecMainStatus", BusValue::Signed(-1)),
            ("MemoryCurrent", BusValue::Unsigned(u64::MAX)),
            (
                "ActiveEnterTimestamp",
                BusValue::Unsigned(1_785_231_000_125_000),
            ),
            ("InactiveEnterTimestamp", BusValue::Unsigned(0)),
            ("NeedDaemonReload", BusValue::Bool(true)),
            (
                "Triggers",
                BusValue::Items(vec![word("b.service"), word("c.service")]),
            ),
        ];
        values
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
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
