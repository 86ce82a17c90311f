//! The form for a new or changed agent, and its submitted values.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{agent_texts, texts};
use gatewren_base::config::{
    Glob, IpNetwork, Mode, Overrides, Policy, Preset, Risk, Spaces, WHOLE_SERVER,
};
use gatewren_base::sys::rfc3339;
use gatewren_gate::auth::AgentSpec;
use gatewren_gate::guard::OwnerRequest;
use gatewren_gate::owner_actions::{Expiry, choose_space, fit_name, fit_new_name};
use gatewren_store::vault::Agent;

/// The maximum number of entries of a typed list; more are rejected.
const MAX_LISTED: usize = 64;

/// The submitted or current values, as text, so that invalid input can be shown again.
#[derive(Debug, Clone, Default)]
pub struct AgentFormValues {
    name: String,
    preset: String,
    space: String,
    expires: String,
    toolsets: String,
    containers: String,
    networks: String,
    modes: BTreeMap<Risk, String>,
}

impl AgentFormValues {
    /// Reads the values from a submitted form.
    pub fn of(visit: &OwnerRequest) -> Self {
        let field = |name: &str| visit.field(name).unwrap_or_default();
        let mode = |risk: Risk| (risk, field(&mode_field(risk)));
        Self {
            name: field("name"),
            preset: field("policy"),
            space: field("space"),
            expires: field("expires"),
            toolsets: field("toolsets"),
            containers: field("containers"),
            networks: field("networks"),
            modes: Risk::ALL.map(mode).into_iter().collect(),
        }
    }

    /// Returns the values of a new agent with this name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the current values of an agent.
    pub fn now(agent: &Agent, policy: &Policy) -> Self {
        let overrides = &policy.overrides;
        let modes = overrides.modes.iter();
        Self {
            name: agent.name.clone(),
            preset: agent.preset.as_str().to_owned(),
            space: agent.space.clone().unwrap_or_default(),
            expires: expires_text(agent),
            toolsets: join_list(overrides.toolsets.as_deref()),
            containers: join_list(overrides.containers.as_deref()),
            networks: join_list(overrides.networks.as_deref()),
            modes: modes
                .map(|(risk, mode)| (*risk, mode.to_string()))
                .collect(),
        }
    }

    /// Returns the new agent that the values describe, or the error in them.
    pub fn admission(&self, spaces: &Spaces) -> Result<AgentSpec, String> {
        Ok(AgentSpec {
            name: fit_name(self.name.trim())?,
            policy: Policy {
                preset: self.preset()?,
                overrides: self.overrides(Overrides::default())?,
            },
            space: self.space(spaces)?,
            expires_ms: match self.expires.trim() {
                "" => Expiry::of_new().0,
                text => text.parse::<Expiry>()?.0,
            },
        })
    }

    /// Returns an agent with the values applied.
    pub fn changed(
        &self,
        before: &Agent,
        policy: &Policy,
        spaces: &Spaces,
    ) -> Result<Agent, String> {
        let mut after = before.clone();
        after.name = fit_new_name(self.name.trim(), before)?;
        after.preset = self.preset()?;
        after.overrides = self.overrides(policy.overrides.clone())?.to_text();
        // An agent whose space was removed from the settings may keep it.
        if before.space.as_deref() != Some(self.space.as_str()) {
            after.space = Some(self.space(spaces)?);
        }
        let expires = self.expires.trim();
        if !expires.is_empty() && expires != expires_text(before) {
            after.expires_ms = expires.parse::<Expiry>()?.0;
        }
        Ok(after)
    }

    fn preset(&self) -> Result<Preset, String> {
        self.preset
            .parse()
            .map_err(|_| texts::CHOOSE_POLICY.to_owned())
    }

    fn space(&self, spaces: &Spaces) -> Result<String, String> {
        choose_space(
            Some(self.space.as_str()).filter(|space| !space.is_empty()),
            spaces,
        )
    }

    /// Overrides for single tools are kept, because the form does not show them.
    fn overrides(&self, kept: Overrides) -> Result<Overrides, String> {
        let mut overrides = kept;
        overrides.toolsets = list(&self.toolsets)?;
        overrides.containers = list::<Glob>(&self.containers)?;
        overrides.networks = list::<IpNetwork>(&self.networks)?;
        overrides.modes.clear();
        for (risk, mode) in self.modes.iter().filter(|(_, mode)| !mode.is_empty()) {
            let mode: Mode = mode.parse().map_err(|_| texts::CHOOSE_MODE.to_owned())?;
            overrides.modes.insert(*risk, mode);
        }
        Ok(overrides)
    }
}

/// When a token expires, in the format that the form shows and parses.
fn expires_text(agent: &Agent) -> String {
    agent
        .expires_ms
        .map_or_else(|| texts::EXPIRES_NEVER.to_owned(), rfc3339)
}

fn mode_field(risk: Risk) -> String {
    format!("mode-{risk}")
}

fn join_list<T: ToString>(list: Option<&[T]>) -> String {
    let words: Vec<String> = list
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect();
    words.join(" ")
}

/// Splits text at spaces and commas; `None` if it is empty.
fn list<T: std::str::FromStr<Err: ToString>>(text: &str) -> Result<Option<Vec<T>>, String> {
    let words = text
        .split([' ', ',', '\n', '\r', '\t'])
        .filter(|word| !word.is_empty());
    let all: Result<Vec<T>, T::Err> = words.map(str::parse).collect();
    let all = all.map_err(|error| error.to_string())?;
    if all.len() > MAX_LISTED {
        return Err(texts::TOO_MANY_LISTED.to_owned());
    }
    Ok(Some(all).filter(|all| !all.is_empty()))
}

/// Renders the fields; for a new agent, optional ones are collapsed.
pub fn fields(wanted: &AgentFormValues, spaces: &Spaces, is_new: bool) -> Markup {
    html! {
        div class="field" {
            label for="name" { (texts::NAME) }
            input type="text" id="name" name="name" value=(wanted.name) maxlength="64" autocomplete="off" autocapitalize="none"
                aria-describedby="name-how" required;
            p class="soft" id="name-how" { (texts::NAME_HOW) }
        }
        (presets(wanted, is_new))
        (space(wanted, spaces))
        div class="field" {
            label for="expires" { (texts::EXPIRES) }
            input type="text" id="expires" name="expires" value=(wanted.expires) placeholder=(texts::EXPIRES_EXAMPLE)
                aria-describedby="expires-how" autocomplete="off";
            p class="soft" id="expires-how" {
                (texts::EXPIRES_HOW) " " @if is_new { (texts::EXPIRES_NEW) } @else { (texts::EXPIRES_KEPT) }
            }
        }
        details open[!is_new] {
            summary { (texts::DIFFERS) }
            (modes(wanted))
            (list_field("toolsets", texts::TOOLSETS, &wanted.toolsets, texts::TOOLSETS_HOW))
            (list_field("containers", texts::CONTAINERS, &wanted.containers, texts::CONTAINERS_HOW))
            (list_field("networks", texts::NETWORKS, &wanted.networks, texts::NETWORKS_HOW))
        }
    }
}

fn presets(wanted: &AgentFormValues, is_new: bool) -> Markup {
    html! {
        fieldset {
            legend { (texts::POLICY) }
            @for preset in Preset::ALL {
                @let is_it = wanted.preset == preset.as_str()
                    || (is_new && wanted.preset.is_empty() && preset == Preset::Observe);
                div class="choice" {
                    input type="radio" id=(preset.as_str()) name="policy" value=(preset.as_str()) checked[is_it] required;
                    label for=(preset.as_str()) { strong { (preset.as_str()) } " " (texts::preset(preset)) }
                }
            }
        }
    }
}

fn space(wanted: &AgentFormValues, spaces: &Spaces) -> Markup {
    let known = spaces.contains_key(&wanted.space) || wanted.space == WHOLE_SERVER;
    html! {
        div class="field" {
            label for="space" { (texts::SPACE) }
            select id="space" name="space" required {
                @if !known && !wanted.space.is_empty() {
                    option value=(wanted.space) selected { (wanted.space) " " (texts::NO_SUCH_SPACE) }
                }
                @if !spaces.is_empty() && wanted.space.is_empty() { option value="" { (texts::CHOOSE) } }
                @for name in spaces.keys() { option value=(name) selected[*name == wanted.space] { (name) } }
                option value=(WHOLE_SERVER) selected[wanted.space == WHOLE_SERVER] { (texts::WHOLE_SERVER) }
            }
        }
    }
}

/// Renders the classes of tools as a table: a row each, and a column for each way that its calls may go.
fn modes(wanted: &AgentFormValues) -> Markup {
    let ways = [""].into_iter().chain(Mode::ALL.map(Mode::as_str));
    let ways: Vec<&str> = ways.collect();
    let title = |way: &str| match way.parse::<Mode>() {
        Ok(mode) => agent_texts::mode(mode),
        Err(_) => agent_texts::AS_POLICY,
    };
    html! {
        fieldset {
            legend { (texts::CLASSES) }
            div class="scroll" role="region" aria-label=(texts::CLASSES) tabindex="0" {
                table class="modes" {
                    thead { tr {
                        th scope="col" { (agent_texts::CLASS) }
                        @for way in &ways { th scope="col" { (title(way)) } }
                    } }
                    tbody { @for risk in Risk::ALL { tr {
                        @let mode_name = wanted.modes.get(&risk).map(String::as_str).unwrap_or_default();
                        @let field = mode_field(risk);
                        th scope="row" { (risk.as_str()) " " span class="soft" { (texts::risk(risk)) } }
                        @for way in &ways { td {
                            input type="radio" id=[(*way == mode_name).then_some(&field)] name=(field) value=(way)
                                aria-label=(format!("{risk}: {}", title(way))) checked[*way == mode_name];
                        } }
                    } } }
                }
            }
        }
    }
}

fn list_field(id: &str, label: &str, value: &str, how: &str) -> Markup {
    html! {
        div class="field" {
            label for=(id) { (label) }
            input type="text" id=(id) name=(id) value=(value) aria-describedby=(format!("{id}-how")) autocomplete="off";
            p class="soft" id=(format!("{id}-how")) { (how) }
        }
    }
}
