//! The rule of `--keep`, as words such as `daily=7`.

use std::collections::BTreeMap;

use gatewren_host::backends::BackupKeep;

/// A part of the rule: a period and how many backups of it to keep.
#[derive(Debug, Clone)]
pub struct KeepPart {
    period: String,
    count: u32,
}

/// Parses a part, such as `daily=7`.
pub fn parse(word: &str) -> Result<KeepPart, String> {
    let wanted = "give PERIOD=NUMBER, such as daily=7; periods are last, daily, weekly and monthly";
    let (period, count) = word.split_once('=').ok_or(wanted)?;
    Ok(KeepPart {
        period: period.to_owned(),
        count: count.parse().map_err(|_| wanted)?,
    })
}

/// Returns the rule of all parts; `None` without any.
///
/// # Errors
/// For an unknown period, one that is given twice, and a number out of range.
pub fn rule(parts: &[KeepPart]) -> Result<Option<BackupKeep>, String> {
    let mut periods = BTreeMap::new();
    for KeepPart { period, count } in parts {
        if periods.insert(period.clone(), *count).is_some() {
            return Err(format!("--keep has {period} twice"));
        }
    }
    if periods.is_empty() {
        return Ok(None);
    }
    let rule = serde_json::to_value(periods).and_then(serde_json::from_value);
    rule.map(Some).map_err(|e| format!("--keep: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_one_rule() {
        let of = |words: &[&str]| {
            let parts: Result<Vec<_>, _> = words.iter().map(|word| parse(word)).collect();
            parts.and_then(|parts| rule(&parts))
        };
        assert_eq!(of(&[]), Ok(None));
        let both = of(&["daily=7", "weekly=4"]).unwrap().unwrap();
        assert_eq!(
            (both.daily, both.weekly, both.last),
            (Some(7), Some(4), None)
        );
        for bad in [
            &["daily"][..],
            &["daily=x"],
            &["daily=0"],
            &["yearly=1"],
            &["last=1", "last=2"],
        ] {
            assert!(of(bad).is_err(), "{bad:?}");
        }
    }
}
