//! `unit_*`: systemd's units, looked at.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::failed;
use crate::backends::{
    BackendError, ErrorKind, Glob, InvalidGlob, Systemd, UnitLine, UnitName, UnitStatus,
};
use crate::registry::{Cx, Interruption, Result, Risk, Scope, Toolset};

/// The most units that one list shows: half of what an answer may be.
const MAX_LISTED: usize = 200;

/// The group, as a table.
pub fn tools(systemd: Arc<Systemd>) -> Toolset<Systemd> {
    Toolset::over(systemd)
        .named("units")
        .tool("unit_list", Risk::Read, list)
        .about(Scope::Host)
        .titled("List systemd units")
        .tool("unit_status", Risk::Read, status)
        .about(Scope::Host)
        .titled("About a systemd unit")
}

/// Lists systemd units of the host that are loaded, with their states, sorted by name; at most 200, the rest
/// is counted. `unit_status` tells more of one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Only units whose name fits this pattern, such as `*.timer` or `docker-*`; * stands for any run of
    /// characters, ? for one.
    name: Option<Pattern>,
    /// Only units in this state.
    state: Option<State>,
}

/// A state that all kinds of units have.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    Active,
    Reloading,
    Inactive,
    Failed,
    Activating,
    Deactivating,
    Maintenance,
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    /// Sorted by name.
    units: Vec<UnitLine>,
    /// How many fit in all.
    total: usize,
    /// Whether some that fit are not shown.
    truncated: bool,
}

async fn list(systemd: Arc<Systemd>, List { name, state }: List, cx: Cx) -> Result<Listed> {
    let systemd = systemd.seen_by(&cx.caller().reach);
    let mut units = systemd.list().await.map_err(failed)?;
    units.retain(|unit| {
        let fits = name
            .as_ref()
            .is_none_or(|name| name.0.matches(unit.name.as_str()));
        fits && state.is_none_or(|state| unit.active == state.word())
    });
    let total = units.len();
    units.truncate(MAX_LISTED);
    Ok(Listed {
        truncated: units.len() < total,
        units,
        total,
    })
}

/// Describes one systemd unit of the host: its states and since when, whether it is enabled, main process, result
/// of the last run, restarts, memory, CPU and tasks, and for timers when they are due. What a unit of its kind does
/// not have is left out. `unit_list` names the units.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Status {
    /// The unit's name with its kind, such as `nginx.service`.
    unit: UnitName,
}

async fn status(systemd: Arc<Systemd>, Status { unit }: Status, cx: Cx) -> Result<UnitStatus> {
    let systemd = systemd.seen_by(&cx.caller().reach);
    systemd.status(&unit).await.map_err(failed_unit)
}

fn failed_unit(mut error: BackendError) -> Interruption {
    if error.kind == ErrorKind::NotFound {
        error.hint = Some("unit_list names the units that are loaded.".to_owned());
    }
    failed(error)
}

impl State {
    /// systemd's word for it.
    fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Reloading => "reloading",
            Self::Inactive => "inactive",
            Self::Failed => "failed",
            Self::Activating => "activating",
            Self::Deactivating => "deactivating",
            Self::Maintenance => "maintenance",
        }
    }
}

/// A pattern for names of units.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
struct Pattern(Glob);

impl TryFrom<String> for Pattern {
    type Error = InvalidGlob;

    fn try_from(text: String) -> std::result::Result<Self, InvalidGlob> {
        text.parse().map(Self)
    }
}

impl JsonSchema for Pattern {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": 128 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked() {
        let list: List = serde_json::from_str("{}").unwrap();
        assert!(list.name.is_none() && list.state.is_none());
        let list: List = serde_json::from_str(r#"{"name":"*.timer","state":"failed"}"#).unwrap();
        assert!(list.name.unwrap().0.matches("a.timer"));
        let state = list.state.unwrap();
        assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        for bad in [
            r#"{"name":""}"#,
            r#"{"state":"odd"}"#,
            r#"{"unit":"a.service"}"#,
        ] {
            assert!(serde_json::from_str::<List>(bad).is_err(), "{bad}");
        }
        for bad in [r#"{"unit":"nginx"}"#, r#"{"unit":"../a.service"}"#, "{}"] {
            assert!(serde_json::from_str::<Status>(bad).is_err(), "{bad}");
        }
    }
}
