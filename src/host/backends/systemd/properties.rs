//! Reads values of a unit's properties; an absent or unknown value is `None`.

use zbus::wire::Variant;

use gatewren_base::sys::rfc3339;

use super::super::bus::Properties;

/// Returns a text; `None` if it is empty.
pub fn text(properties: &Properties, name: &str) -> Option<String> {
    as_text(properties.get(name)?).filter(|text| !text.is_empty())
}

fn as_text(value: &Variant<'_>) -> Option<String> {
    match value {
        Variant::Str(text) => Some(text.to_string()),
        _ => None,
    }
}

/// Returns a quantity; the highest number means that it is not measured.
pub fn quantity(properties: &Properties, name: &str) -> Option<u64> {
    let quantity = match **properties.get(name)? {
        Variant::U32(number) => number.into(),
        Variant::U64(number) => number,
        Variant::I32(number) => number.try_into().ok()?,
        Variant::I64(number) => number.try_into().ok()?,
        _ => return None,
    };
    (quantity != u64::MAX).then_some(quantity)
}

/// Returns a time in microseconds since 1970 as RFC 3339; 0 means never.
pub fn moment(properties: &Properties, name: &str) -> Option<String> {
    let us = quantity(properties, name).filter(|us| *us != 0)?;
    Some(rfc3339(us / 1000))
}

/// Whether a flag is set.
pub fn flag(properties: &Properties, name: &str) -> bool {
    properties
        .get(name)
        .is_some_and(|value| **value == Variant::Bool(true))
}

/// Returns a list of texts, in order.
pub fn texts(properties: &Properties, name: &str) -> Vec<String> {
    match properties.get(name).map(|value| &**value) {
        Some(Variant::Array(list)) => list.inner().iter().filter_map(as_text).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties() -> Properties {
        let values: [(&str, Variant<'static>); 9] = [
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
            .map(|(name, value)| (name.to_owned(), value.try_into_owned().unwrap()))
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
