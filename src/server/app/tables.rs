//! The tables of all tools, resources and prompts, independent of the host: for the reference and its tests.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;

use super::{
    build_error::BuildError,
    catalog::{CatalogSources, ToolSelection, catalog_of},
    host_parts::{backends, watch_probes},
};
use crate::transport::Sessions;
use gatewren_base::config::{Dialect, LiveSettings, Settings};
use gatewren_base::sys::{files, random_bytes};
use gatewren_host::backends::{HelperCapabilities, Host, Lxc, SystemBus, Systemd};
use gatewren_host::helper_client::HelperClient;
use gatewren_host::observer::{ObservedUnits, Observer};
use gatewren_store::history::UsageHistory;
use gatewren_store::state::{State, StateLogRetention};
use gatewren_store::vault::Vault;
use gatewren_wire::registry::Catalog;

/// Every tool, resource and prompt that a host may have. Its stores are empty and deleted, and it has no helper.
pub fn tables() -> Result<Catalog, BuildError> {
    let name = u64::from_ne_bytes(random_bytes().map_err(BuildError::new)?);
    let scratch = std::env::temp_dir().join(format!("gatewren-tables-{name:016x}"));
    files::private_dir(&scratch).map_err(BuildError::new)?;
    let catalog = build_catalog(&scratch);
    // Open files stay usable after their names are removed.
    let removed = std::fs::remove_dir_all(&scratch);
    match removed {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(BuildError::new(cause)),
        _ => catalog,
    }
}

fn build_catalog(scratch: &Path) -> Result<Catalog, BuildError> {
    let state = State::open_keeping(&scratch.join("state.db"), StateLogRetention::default())
        .map_err(BuildError::new)?;
    let vault = Vault::open(&scratch.join("vault.db")).map_err(BuildError::new)?;
    let helper = HelperClient::connect_to(scratch.join("helper"));
    let (lxc, systemd) = (Lxc::new(helper.clone()), Systemd::new(SystemBus::new()));
    let units = ObservedUnits::new(&systemd, LiveSettings::from(Settings::default()));
    let observer = Observer::new(state.clone(), &lxc, Host::new(helper.clone()), units);
    let stop = watch::Sender::new(false);
    let backends = backends(
        systemd,
        helper.clone(),
        Settings::default().into(),
        vault.clone(),
        &stop,
    );
    let probes = Arc::new(watch_probes(&backends, &helper, &state, None));
    let sessions = Sessions::open(&[0; 32], Settings::default().into(), None);
    let sources = CatalogSources {
        state: &state,
        vault: &vault,
        sessions: Arc::new(sessions.map_err(BuildError::new)?),
        observer: observer.handle(),
        bounds: HelperCapabilities::unknown(),
        live: Settings::default().into(),
        history: UsageHistory::at(scratch.join("usage.db")),
        probes,
    };
    catalog_of(sources, backends, ToolSelection::All, Dialect::default()).map_err(BuildError::new)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::dispatch::{instructions, list_tools};
    use gatewren_base::config::{HelperClass, Overrides, Policy, Preset};
    use gatewren_gate::auth::Principal;
    use gatewren_tools::watches::probing_tools;
    use gatewren_wire::protocol::check_dialect;
    use gatewren_wire::registry::{Tool, complaints};

    /// The tools by toolset.
    fn toolsets(catalog: &Catalog) -> BTreeMap<&'static str, Vec<&Tool>> {
        let mut sets: BTreeMap<_, Vec<&Tool>> = BTreeMap::new();
        for tool in catalog.tools() {
            sets.entry(tool.toolset()).or_default().push(tool);
        }
        sets
    }

    #[test]
    fn each_toolset_is_listed_as_its_golden_file_has_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
        let catalog = tables().unwrap();
        let update = std::env::var_os("UPDATE_GOLDEN").is_some();
        let mut expected = Vec::new();
        for (toolset, tools) in toolsets(&catalog) {
            let listed: Vec<Value> = tools.iter().map(|tool| json!(tool.list_entry())).collect();
            let text = serde_json::to_string_pretty(&listed).unwrap() + "\n";
            let name = format!("tools-{toolset}.json");
            let file = folder.join(&name);
            if update {
                fs::write(&file, &text).unwrap();
            }
            let golden = fs::read_to_string(&file).unwrap_or_default();
            assert!(
                golden == text,
                "tests/golden/{name} differs; UPDATE_GOLDEN=1 cargo test golden writes it anew, and its \
                 difference shows what clients will see"
            );
            expected.push(name);
        }
        let there = fs::read_dir(&folder).unwrap();
        let there = there.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut others: Vec<String> = there.filter(|name| name.starts_with("tools-")).collect();
        others.retain(|name| !expected.contains(name));
        assert_eq!(
            others, [""; 0],
            "golden files of toolsets that there are not"
        );
    }

    #[test]
    fn every_schema_of_an_answer_is_of_the_one_dialect() {
        let catalog = tables().unwrap();
        let schemas = catalog
            .tools()
            .map(|tool| (tool.name(), tool.full_definition()));
        let schemas = schemas.filter_map(|(name, tool)| Some((name, tool.output_schema?)));
        let schemas: Vec<_> = schemas.collect();
        assert!(schemas.len() > 60, "{}", schemas.len());
        for (name, schema) in schemas {
            assert_eq!(check_dialect(&schema), Ok(()), "{name}");
        }
    }

    #[test]
    fn every_client_can_hand_on_every_tool() {
        let mut found = Vec::new();
        for tool in tables().unwrap().tools() {
            let complaints = complaints(&tool.list_entry());
            found.extend(
                complaints
                    .iter()
                    .map(|what| format!("{}{what}", tool.name())),
            );
        }
        assert_eq!(found, [""; 0]);
    }

    /// Words that show that a description states the tool's result, and its failures.
    const GIVES: &[&str] = &[
        "answer", "count", "describe", "find", "list", "measure", "read", "return", "say", "show",
        "tell",
    ];
    const MAY_FAIL: &[&str] = &[
        "as far as",
        "at most",
        "cannot",
        "drop",
        "fail",
        "gives up",
        "left as it is",
        "left out",
        "missing",
        "no ",
        "not ",
        "nothing",
        "time was up",
        "only ",
        "refuse",
        "unless",
        "whatever",
        "who ",
    ];

    #[test]
    fn every_tool_says_what_happens_what_it_gives_what_can_go_wrong_and_what_comes_next() {
        let catalog = tables().unwrap();
        let names: Vec<&str> = catalog.tools().map(|tool| tool.name()).collect();
        let mut found = Vec::new();
        for tool in catalog.tools() {
            let definition = tool.definition();
            let words = &definition.description;
            let lower = words.to_lowercase();
            let says = |some: &[&str]| some.iter().any(|word| lower.contains(word));
            let mut others = names.iter().filter(|name| **name != tool.name());
            let parts = [
                ("what it gives", says(GIVES)),
                ("what can go wrong", says(MAY_FAIL)),
                (
                    "which tool comes next",
                    others.any(|name| words.contains(&format!("`{name}`"))),
                ),
                ("two sentences", words.matches(['.', ':', ';']).count() >= 2),
                (
                    "a title",
                    definition
                        .title
                        .as_ref()
                        .is_some_and(|t| (4..60).contains(&t.len())),
                ),
                ("a toolset", !tool.toolset().is_empty()),
                ("a limit of 300 characters", words.chars().count() <= 300),
            ];
            let missing = parts.iter().filter(|(_, is_there)| !is_there);
            found.extend(missing.map(|(part, _)| format!("{} lacks {part}", tool.name())));
        }
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn a_watch_needs_the_permission_of_a_real_tool() {
        let catalog = tables().unwrap();
        for subject in probing_tools() {
            let tool = catalog.tool(subject.name).unwrap();
            assert_eq!(
                (tool.toolset(), tool.risk()),
                (subject.toolset, subject.risk),
                "{}",
                subject.name
            );
        }
    }

    /// An agent with this preset, for which these toolsets are named.
    fn agent(preset: Preset, toolsets: Option<&str>) -> Principal {
        let toolsets = toolsets.map(|one| vec![one.to_owned()]);
        let overrides = Overrides {
            toolsets,
            ..Overrides::default()
        };
        Principal::without_token("x", Policy { preset, overrides })
    }

    #[test]
    fn a_class_is_missing_only_for_the_calls_that_need_it() {
        let mut catalog = tables().unwrap();
        catalog.bound_by(Box::new(|class| class != HelperClass::Units));
        let tool = catalog.tool("unit_restart").unwrap();
        for (arguments, missing) in [
            (json!({}), Some(HelperClass::Units)),
            (json!({ "container": null }), Some(HelperClass::Units)),
            (json!({ "container": "web" }), None),
        ] {
            let arguments = arguments.as_object().unwrap();
            assert_eq!(catalog.missing_class(tool, arguments), missing);
        }
        let other = catalog.tool("container_stop").unwrap();
        assert_eq!(catalog.missing_class(other, &Map::new()), None);
    }

    #[test]
    fn a_list_is_as_short_as_its_policy_allows() {
        let catalog = tables().unwrap();
        for (preset, tools, kilobytes) in [
            (Preset::Observe, 30..50, 24),
            (Preset::Suggest, 4..5, 3),
            (Preset::Operate, 30..50, 24),
            // All tools of the catalog: the list on a host that has everything, with every class of the helper on.
            (Preset::Admin, 140..160, 70),
        ] {
            let list = list_tools(&catalog, &agent(preset, None));
            let size = json!(list).to_string().len();
            assert!(tools.contains(&list.len()), "{preset:?}: {}", list.len());
            assert!(size < kilobytes * 1000, "{preset:?}: {size} bytes");
            assert!(list.iter().all(|tool| tool.output_schema.is_none()));
            let whole = list_tools(&catalog, &agent(preset, Some("all")));
            let described = whole.iter().filter(|tool| tool.output_schema.is_some());
            assert!(
                whole.len() >= list.len() && described.count() > 0,
                "{preset:?}"
            );
        }
    }

    #[test]
    fn a_list_and_its_instructions_name_only_tools_in_the_list() {
        let catalog = tables().unwrap();
        let all: BTreeSet<&str> = catalog.tools().map(|tool| tool.name()).collect();
        let named = toolsets(&catalog).into_keys().map(Some);
        let named: Vec<_> = named.chain([None, Some("all")]).collect();
        let mut found = Vec::new();
        for (preset, toolset) in Preset::ALL
            .map(|preset| named.iter().map(move |one| (preset, *one)))
            .into_iter()
            .flatten()
        {
            let who = agent(preset, toolset);
            let list = list_tools(&catalog, &who);
            let listed: BTreeSet<&str> = list.iter().map(|tool| tool.name.as_str()).collect();
            let mut texts: Vec<(String, String)> = list
                .iter()
                .map(|tool| {
                    (
                        tool.name.clone(),
                        json!([tool.description, tool.input_schema]).to_string(),
                    )
                })
                .collect();
            let told = instructions(&catalog, &who).unwrap();
            assert_eq!(
                told.contains("`whoami`"),
                listed.contains("whoami"),
                "{told}"
            );
            texts.push(("instructions".to_owned(), told));
            for (place, text) in texts {
                found.extend(
                    unlisted(&text, &all, &listed)
                        .map(|word| format!("{preset:?} {toolset:?}: {place}: {word}")),
                );
            }
        }
        assert_eq!(found, [""; 0]);
    }

    /// The tools that a text names and that are not in a list. A name that is also a word counts only as code.
    fn unlisted<'a>(
        text: &'a str,
        all: &'a BTreeSet<&str>,
        listed: &'a BTreeSet<&str>,
    ) -> impl Iterator<Item = &'a str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let words = words.filter(|word| word.contains('_'));
        let named = words.chain(text.split('`').skip(1).step_by(2));
        named.filter(|word| all.contains(word) && !listed.contains(word))
    }
}
