//! The arguments of `gatewren init`, and its steps in order.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::super::console::listen::Listen;
use super::super::console::listener::{LocalServer, in_url};
use super::super::console::output::conclude;
use super::super::console::runtime;
use super::super::console::target::InstanceArgs;
use super::super::owner_action::owner_context;
use super::answers::{CertificateFiles, InitAnswers, OfferedValues};
use super::authority;
use super::fragment::{InitFragment, WantedSetting};
use super::profile::{HelperProfile, apply_profile, home_keys, profile_of};
use super::report::InitReport;
use super::runtimes::HostRuntimes;
use super::service;
use gatewren_base::config::{Policy, Preset, RuntimeKind, Settings, TlsMode};
use gatewren_base::sys::{Secret, is_asked};
use gatewren_gate::auth::AgentSpec;
use gatewren_gate::owner_actions::{Expiry, admit, fit_name};
use gatewren_store::vault::{Agent, Vault};

/// How long the server may take to answer after a start or a reload.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    #[command(flatten)]
    place: InstanceArgs,

    /// Do not ask: values without an option stay as they are
    #[arg(long, short = 'y')]
    yes: bool,

    /// A name of this host, such as box.lan; repeat it for more
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,

    /// The port, or an address and a port to listen on only that address
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    listen: Option<Listen>,

    /// A certificate of your own: the chain as PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Its key as PEM, readable only by the user gatewren
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Use the certificate of our own authority again
    #[arg(long, conflicts_with = "cert")]
    own_cert: bool,

    /// Serve the containers of this runtime: lxc, docker, podman or docker-in-lxc; repeat it for more. Others are not served
    #[arg(long = "runtime", value_name = "RUNTIME", conflicts_with = "dir")]
    runtimes: Vec<RuntimeKind>,

    /// Set the keys of helper.toml that it does not set: home lets the helper install updates, make backups and
    /// snapshots, manage containers and maintain disks; minimal sets none
    #[arg(long, value_name = "PROFILE", conflicts_with = "dir")]
    profile: Option<HelperProfile>,

    /// Create an agent with this name, unless it exists
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// What that agent may do: observe, suggest, operate or admin
    #[arg(
        long,
        value_name = "PRESET",
        default_value = "observe",
        requires = "agent"
    )]
    policy: Preset,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command; exits with 1 if it failed.
pub fn run(args: &InitArgs) -> ExitCode {
    let settings = args.place.settings();
    let done = settings
        .and_then(|settings| args.place.require_access(&settings))
        .and_then(|()| runtime::build().map_err(|e| e.to_string()))
        .and_then(|runtime| runtime.block_on(set_up(args)));
    let done = done.map(|done| if args.json { done.json() } else { done.words() });
    conclude(done.map_err(|words| args.place.complete_hint(words)))
}

async fn set_up(args: &InitArgs) -> Result<InitReport, String> {
    let settings = args.place.settings()?;
    let managed =
        !args.place.is_a_directory() && args.place.is_standard() && service::is_installed().await;
    let door = LocalServer::of(&settings, None, managed).await;
    let runtimes = runtimes(args)?;
    let offered = OfferedValues {
        settings: &settings,
        port: door.port,
        runtimes: runtimes.as_ref(),
        profile: profile_of(&helper_file(args)),
    };
    let answers = answers(args, &offered)?;
    let mut done = InitReport::default();
    let wanted = planned_settings(args, &settings, &answers);
    let makes_way = authority::must_be_replaced(&wanted)?;
    let fragment = InitFragment::next_to(&args.place.file_of_settings());
    let written = fragment.write(&settings_to_write(&answers, managed))?;
    done.changed.extend(
        written
            .iter()
            .map(|key| format!("{key} in {}", fragment.path().display())),
    );
    if makes_way {
        let words = "the certificate authority, for the new names; no client had connected with the earlier one";
        done.changed.push(words.to_owned());
    }
    if managed {
        if makes_way {
            authority::remove(&wanted)?;
        }
        if let Some(listen) = answers.listen
            && service::listen(listen).await?
        {
            done.changed.push(format!("the port: {listen}"));
        }
        if service::take(!done.changed.is_empty()).await? && done.changed.is_empty() {
            done.changed.push("the service was started".to_owned());
        }
    }
    if let (Some(wanted), Some(runtimes)) = (&answers.runtimes, &runtimes) {
        serve_runtimes(runtimes, wanted, managed, &mut done).await?;
    }
    if let Some(profile) = answers.profile {
        set_profile(args, profile, managed, &mut done).await?;
    }
    done.runtimes = self::runtimes(args)?;
    let settings = args.place.settings()?;
    let door = LocalServer::of(&settings, None, managed).await;
    (done.url, done.page) = (door.url(&settings, "/mcp"), door.url(&settings, "/owner"));
    wait_for(&door, managed).await?;
    if makes_way && !managed {
        authority::remove(&wanted)?;
    }
    done.authority.clone_from(&door.authority);
    agent(args, &answers, &mut done).await?;
    Ok(done)
}

/// Writes which runtimes are served, and makes a helper that systemd runs read it.
async fn serve_runtimes(
    runtimes: &HostRuntimes,
    wanted: &[RuntimeKind],
    managed: bool,
    done: &mut InitReport,
) -> Result<(), String> {
    if runtimes.serve(wanted)? {
        let file = runtimes.path().display();
        done.changed.push(format!("runtimes in {file}"));
        if managed {
            service::reload_helper().await?;
        }
    }
    Ok(())
}

/// Sets the keys of a profile, and makes a helper that systemd runs read them.
async fn set_profile(
    args: &InitArgs,
    profile: HelperProfile,
    managed: bool,
    done: &mut InitReport,
) -> Result<(), String> {
    let path = helper_file(args);
    if profile == HelperProfile::Minimal {
        done.kept = home_keys(&path);
    }
    let keys = apply_profile(path.clone(), profile)?;
    let changed = keys
        .iter()
        .map(|key| format!("{key} in {}", path.display()));
    done.changed.extend(changed);
    if managed && !keys.is_empty() {
        service::reload_helper().await?;
    }
    Ok(())
}

/// The file with the helper's policy.
fn helper_file(args: &InitArgs) -> PathBuf {
    args.place.file_of_settings().with_file_name("helper.toml")
}

/// The settings as they will be, as far as a certificate depends on them.
fn planned_settings(args: &InitArgs, settings: &Settings, answers: &InitAnswers) -> Settings {
    let mut wanted = settings.clone();
    wanted.state_dir = args.place.directory(settings);
    if !answers.names.is_empty() {
        wanted.names.clone_from(&answers.names);
    }
    if answers.files.is_some() {
        wanted.tls.mode = TlsMode::Files;
    } else if answers.own {
        wanted.tls.mode = TlsMode::Own;
    }
    if let Some(CertificateFiles { cert, key }) = &answers.files {
        wanted.tls.cert = Some(cert.clone());
        wanted.tls.key = Some(key.clone());
    }
    wanted
}

/// The runtimes of this host. `None` for a directory of `try`, which serves what it finds, and if the helper's policy
/// cannot be read and no option is about it.
fn runtimes(args: &InitArgs) -> Result<Option<HostRuntimes>, String> {
    if args.place.is_a_directory() {
        return Ok(None);
    }
    match HostRuntimes::read(helper_file(args)) {
        Ok(runtimes) => Ok(Some(runtimes)),
        Err(_) if args.runtimes.is_empty() => Ok(None),
        Err(cause) => Err(format!("nothing was changed: {cause}")),
    }
}

/// The answers from the options and from the terminal.
fn answers(args: &InitArgs, offered: &OfferedValues<'_>) -> Result<InitAnswers, String> {
    let given = InitAnswers {
        names: args.names.iter().map(|name| name.to_lowercase()).collect(),
        listen: args.listen,
        files: args
            .cert
            .clone()
            .zip(args.key.clone())
            .map(|(cert, key)| CertificateFiles { cert, key }),
        own: args.own_cert,
        agent: args.agent.clone().map(|name| (name, args.policy)),
        runtimes: (!args.runtimes.is_empty()).then(|| args.runtimes.clone()),
        profile: args.profile,
    };
    let answers = if args.yes {
        given
    } else if is_asked() {
        given.ask(offered)?
    } else {
        return Err("standard input is not a terminal; use --yes and options".to_owned());
    };
    // Before anything is changed.
    if let Some((name, _)) = &answers.agent {
        fit_name(name)?;
    }
    Ok(answers)
}

/// The settings to write. Where systemd has the port, it is not among them.
fn settings_to_write(answers: &InitAnswers, managed: bool) -> Vec<WantedSetting> {
    let mut wanted = answers.wanted_settings();
    if let (Some(listen), false) = (answers.listen, managed) {
        wanted.push(("listen", listen_value(listen)));
    }
    wanted
}

fn listen_value(listen: Listen) -> toml::Value {
    let address = match listen {
        Listen::Port(port) => format!("0.0.0.0:{port}"),
        Listen::Address(address) => address.to_string(),
    };
    toml::Value::Array(vec![toml::Value::String(address)])
}

/// Waits until the server answers. Fails at once if systemd does not manage it: it may be started later.
async fn wait_for(door: &LocalServer, managed: bool) -> Result<(), String> {
    let begun = Instant::now();
    let at = door.near.ip();
    loop {
        let Err(cause) = door.probe(at, &in_url(at)).await else {
            return Ok(());
        };
        if !managed {
            return Err(format!(
                "the settings are valid, but no server answers at {}: {cause}; start it with gatewren serve, then \
                 run this again",
                door.near
            ));
        }
        if begun.elapsed() > ANSWERS_WITHIN {
            return Err(format!(
                "the server does not answer at {}: {cause}; run gatewren doctor for details",
                door.near
            ));
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Creates the agent that was requested, and reads the other results. Root acts as the server's user from here
/// on.
async fn agent(
    args: &InitArgs,
    answers: &InitAnswers,
    done: &mut InitReport,
) -> Result<(), String> {
    let vault = args.place.vault()?;
    let agents = vault.agents().list().map_err(|e| e.to_string())?;
    let mut kept = agents
        .into_iter()
        .filter(Agent::has_valid_token)
        .collect::<Vec<_>>();
    if let Some((name, policy)) = &answers.agent {
        if let Some(there) = kept.iter().find(|agent| agent.name == *name) {
            done.asked_policy = Some(*policy);
            done.agent = Some((there.clone(), None));
        } else {
            let (agent, token) = add_agent(&vault, name, *policy).await?;
            kept.push(agent.clone());
            done.changed.push(format!("the agent {name}"));
            done.agent = Some((agent, Some(token)));
        }
    }
    done.agents = kept.len();
    done.has_password = vault
        .owner()
        .password()
        .map_err(|e| e.to_string())?
        .is_some();
    Ok(())
}

async fn add_agent(vault: &Vault, name: &str, preset: Preset) -> Result<(Agent, Secret), String> {
    let admission = AgentSpec {
        name: fit_name(name)?,
        policy: Policy::from(preset),
        space: "*".to_owned(),
        expires_ms: Expiry::of_new().0,
    };
    admit(&owner_context(vault), admission).await
}
