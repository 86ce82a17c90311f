//! `gatewren status`: shows whether the server runs, who uses it, changes that wait for the owner, and how many
//! containers run.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::console::listener::{LocalServer, in_url};
use super::console::moment::at_moment;
use super::console::output::{conclude, fail};
use super::console::runtime;
use super::console::style::Style;
use super::console::target::InstanceArgs;
use super::container_counts::{ContainerCount, count_containers};
use super::fronts;
use super::switched_off::{line as off_line, switched_off};
use super::units::{UnitState, systemd_runs};
use gatewren_base::config::Settings;
use gatewren_base::sys::{LockHolder, now_ms, rfc3339};
use gatewren_gate::owner_actions::{expires_soon, sanitize, token_status};
use gatewren_store::vault::{Agent, AuditReader, CallFilter, Schedule, Vault, VaultError};
use gatewren_tools::watches::WatchView;

/// Exit code: the server does not answer; the same as of `systemctl status`.
const NOT_SERVING: u8 = 3;

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    #[command(flatten)]
    place: InstanceArgs,

    /// The server's address, if it differs from the settings or systemd's socket
    #[arg(long, value_name = "ADDRESS:PORT")]
    address: Option<SocketAddr>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The results.
struct Status {
    url: String,
    /// Why the server does not answer, if it does not.
    silent: Option<String>,
    unit: Option<UnitState>,
    kept: Result<VaultSummary, String>,
    /// The containers, from the state; empty if the state cannot be read.
    containers: Vec<ContainerCount>,
    off: Vec<String>,
    fronts: Vec<LockHolder>,
    /// The options that name this gatewren, for the commands in hints.
    options: String,
    /// Whether nothing of a service is on this host.
    is_absent: bool,
}

/// What to do on a host without a service.
const NOT_SET_UP: &str = "gatewren is not set up on this box yet.
  Try it:     gatewren try
  Set it up:  sudo gatewren init";

/// The results from the vault.
struct VaultSummary {
    agents: Vec<(Agent, bool)>,
    waiting: usize,
    newest_call: Option<(u64, String)>,
    password: bool,
    schedules: ScheduleCounts,
    watches: WatchCounts,
}

/// The schedules of all agents that are active.
struct ScheduleCounts {
    active: usize,
    /// Those whose last run failed.
    failing: usize,
}

/// The watches of all agents.
struct WatchCounts {
    total: usize,
    fired: usize,
    /// Those whose last check failed.
    unchecked: usize,
}

/// Runs the command.
pub fn run(args: &StatusArgs) -> ExitCode {
    let settings = match args.place.settings() {
        Ok(settings) => settings,
        Err(words) => return fail(&words),
    };
    if let Err(words) = args.place.require_access(&settings) {
        return fail(&words);
    }
    let settings = Settings {
        state_dir: args.place.directory(&settings),
        ..settings
    };
    let runtime = match runtime::build() {
        Ok(runtime) => runtime,
        Err(cause) => return fail(&cause),
    };
    let status = runtime.block_on(look(args, &settings));
    let text = if args.json {
        status.json()
    } else {
        status.words()
    };
    match conclude(Ok(text)) {
        ExitCode::SUCCESS if status.silent.is_some() => ExitCode::from(NOT_SERVING),
        code => code,
    }
}

async fn look(args: &StatusArgs, settings: &Settings) -> Status {
    let of_systemd = !args.place.is_a_directory();
    let door = LocalServer::of(settings, args.address, of_systemd).await;
    let at = door.near.ip();
    let unit = if of_systemd && systemd_runs() {
        UnitState::of("gatewren.service").await
    } else {
        None
    };
    let silent = door.probe(at, &in_url(at)).await.err();
    // Last, because root acts as the server's user from here on.
    let kept = read_vault(&args.place, settings);
    let state = args.place.file("state.db");
    let off = switched_off(state.as_deref(), settings);
    let containers = state.and_then(|file| count_containers(&file));
    let has_unit = unit.as_ref().is_some_and(UnitState::is_installed);
    // A directory that this user cannot look into may have a server's state.
    let is_there = |path: &Path| path.try_exists().unwrap_or(true);
    let is_absent = args.place.is_standard()
        && !has_unit
        && !is_there(&args.place.file_of_settings())
        && !is_there(&settings.state_dir);
    Status {
        is_absent,
        url: door.url(settings, "/mcp"),
        silent: silent.map(|cause| format!("{}: {cause}", door.near)),
        unit: unit.filter(UnitState::is_installed),
        kept,
        off,
        fronts: fronts::running_fronts(&settings.state_dir),
        containers: containers.unwrap_or_default(),
        options: args.place.options(),
    }
}

fn read_vault(place: &InstanceArgs, settings: &Settings) -> Result<VaultSummary, String> {
    let file = place.file("vault.db")?;
    let vault = Vault::open(&file).map_err(words)?;
    let agents = vault.agents().list().map_err(words)?;
    let agents = agents
        .into_iter()
        .filter(|agent| agent.revoked_ms.is_none())
        .map(|agent| {
            let has_valid_token = token_status(&agent, &settings.spaces).refused.is_none();
            (agent, has_valid_token)
        });
    let newest = AuditReader::open(&file).and_then(|audit| {
        audit.calls(&CallFilter {
            limit: 1,
            ..CallFilter::default()
        })
    });
    let newest = newest.map_err(words)?.into_iter().next().map(|call| {
        let at = u64::try_from(call.at_ms).unwrap_or(0);
        let who = call.agent_name.or(call.agent).unwrap_or_default();
        (at, format!("{} by {who}", call.tool.unwrap_or_default()))
    });
    Ok(VaultSummary {
        agents: agents.collect(),
        waiting: vault.changes().list(true).map_err(words)?.len(),
        newest_call: newest,
        password: vault.owner().password().map_err(words)?.is_some(),
        schedules: ScheduleCounts::of(&vault).map_err(words)?,
        watches: WatchCounts::of(&vault).map_err(words)?,
    })
}

impl ScheduleCounts {
    fn of(vault: &Vault) -> Result<Self, VaultError> {
        let mut all = vault.schedules().list()?;
        all.retain(Schedule::is_active);
        Ok(Self {
            active: all.len(),
            failing: all.iter().filter(|one| one.failing).count(),
        })
    }

    fn line(&self) -> Option<String> {
        let failing = match self.failing {
            0 => "none is failing".to_owned(),
            some => format!(
                "{}: gatewren schedule list",
                Style::Problem.paint(&format!("{some} failing"))
            ),
        };
        (self.active > 0).then(|| format!("  runs    {} active schedules; {failing}", self.active))
    }
}

impl WatchCounts {
    fn of(vault: &Vault) -> Result<Self, VaultError> {
        let all = vault.watches().list()?;
        let views: Vec<WatchView> = all.iter().filter_map(WatchView::of).collect();
        Ok(Self {
            total: all.len(),
            fired: views.iter().filter(|view| view.phase == "fired").count(),
            unchecked: views.iter().filter(|view| view.unchecked).count(),
        })
    }

    fn line(&self) -> Option<String> {
        let found = match (self.fired, self.unchecked) {
            (0, 0) => "none has fired".to_owned(),
            (fired, unchecked) => {
                format!("{fired} fired, {unchecked} cannot be checked: gatewren watch list")
            }
        };
        (self.total > 0).then(|| format!("  watches {}; {found}", self.total))
    }
}

fn words(cause: impl std::fmt::Display) -> String {
    cause.to_string()
}

impl Status {
    fn words(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let mut lines = vec![match &self.silent {
            None => format!(
                "gatewren {version} {} MCP at {}",
                Style::Good.paint("serves"),
                self.url
            ),
            Some(_) if self.is_absent => return NOT_SET_UP.to_owned(),
            Some(why) => format!(
                "gatewren {version} {} at {why}\n  to find the cause, run: gatewren doctor{}",
                Style::Problem.paint("does not answer"),
                self.options
            ),
        }];
        if let Some(unit) = &self.unit {
            let (active, since) = (unit.get("ActiveState"), unit.get("ActiveEnterTimestamp"));
            lines.push(format!(
                "  unit    {active} since {since}; {}",
                sanitize(unit.get("StatusText"))
            ));
        }
        match &self.kept {
            Ok(kept) => lines.extend(kept.lines(&self.options)),
            Err(cause) => lines.push(format!("  agents, inbox and calls cannot be read: {cause}")),
        }
        lines.extend(fronts::line(&self.fronts));
        lines.extend(off_line(&self.off));
        lines.extend(self.containers.iter().map(ContainerCount::line));
        lines.join("\n")
    }

    fn json(&self) -> String {
        let unit = self.unit.as_ref().map(
            |unit| json!({ "active": unit.get("ActiveState"), "status": unit.get("StatusText") }),
        );
        let containers: Map<_, _> = self.containers.iter().map(ContainerCount::member).collect();
        let mut fields = json!({
            "serving": self.silent.is_none(), "version": env!("CARGO_PKG_VERSION"), "url": self.url,
            "why_not": self.silent, "unit": unit, "containers": containers, "workers_off": self.off,
            "fronts": fronts::member(&self.fronts),
        });
        if let (Ok(kept), Some(fields)) = (&self.kept, fields.as_object_mut()) {
            fields.extend(kept.members());
        }
        fields.to_string()
    }
}

impl VaultSummary {
    fn active(&self) -> usize {
        self.agents
            .iter()
            .filter(|(_, has_valid_token)| *has_valid_token)
            .count()
    }

    /// The agent that used its token last, and when.
    fn last_active_agent(&self) -> Option<(&str, u64)> {
        let used = self
            .agents
            .iter()
            .filter_map(|(agent, _)| agent.last_used_ms.map(|at| (agent.name.as_str(), at)));
        used.max_by_key(|(_, at)| *at)
    }

    /// The agents with tokens that expire soon, and when.
    fn expiring(&self) -> Vec<(&str, u64)> {
        let now = now_ms();
        let active = self
            .agents
            .iter()
            .filter(|(_, has_valid_token)| *has_valid_token);
        active
            .filter_map(|(agent, _)| Some((agent.name.as_str(), expires_soon(agent, now)?)))
            .collect()
    }

    /// The lines for a person; `options` belong to the commands in them.
    fn lines(&self, options: &str) -> Vec<String> {
        let seen = match self.last_active_agent() {
            Some((name, at)) => {
                format!("; last used by {} {}", sanitize(name), at_moment(at))
            }
            None => String::new(),
        };
        let to_do = if self.active() == 0 {
            format!(": gatewren agent add NAME --policy observe{options}")
        } else {
            String::new()
        };
        let mut lines = vec![format!(
            "  agents  {} have access{to_do}{seen}",
            self.active()
        )];
        let expiring = self.expiring();
        if let Some((name, at)) = expiring.iter().min_by_key(|(_, at)| *at) {
            lines.push(format!(
                "  tokens  {} expire within 30 days, first the one of {} at {}: gatewren agent edit NAME --expires \
                 365d{options}",
                expiring.len(),
                sanitize(name),
                rfc3339(*at)
            ));
        }
        lines.push(match self.waiting {
            0 => "  inbox   no open changes".to_owned(),
            some => format!(
                "  inbox   {}: gatewren inbox list{options}",
                Style::Warning.paint(&format!("{some} open"))
            ),
        });
        lines.extend(self.schedules.line());
        lines.extend(self.watches.line());
        if let Some((at, call)) = &self.newest_call {
            lines.push(format!(
                "  calls   last one: {} {}",
                sanitize(call),
                at_moment(*at)
            ));
        }
        if !self.password {
            lines.push(format!(
                "  owner   the page has no password yet: gatewren owner setup{options}"
            ));
        }
        lines
    }

    fn members(&self) -> Vec<(String, Value)> {
        let newest = self.newest_call.as_ref();
        let expiring = self.expiring().into_iter();
        let expiring: Vec<Value> = expiring
            .map(|(name, at)| json!({ "agent": name, "at": rfc3339(at) }))
            .collect();
        let seen = self
            .last_active_agent()
            .map(|(name, at)| json!({ "agent": name, "at": rfc3339(at) }));
        vec![
            ("agents".to_owned(), json!(self.active())),
            ("tokens_expiring".to_owned(), json!(expiring)),
            ("last_seen".to_owned(), json!(seen)),
            ("inbox_open".to_owned(), json!(self.waiting)),
            (
                "last_call".to_owned(),
                json!(newest.map(|(at, call)| json!({ "at": rfc3339(*at), "call": call }))),
            ),
            ("owner_password".to_owned(), json!(self.password)),
            (
                "schedules".to_owned(),
                json!({ "active": self.schedules.active, "failing": self.schedules.failing }),
            ),
            (
                "watches".to_owned(),
                json!({
                    "total": self.watches.total,
                    "fired": self.watches.fired,
                    "unchecked": self.watches.unchecked,
                }),
            ),
        ]
    }
}
