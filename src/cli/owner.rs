//! `gatewren owner`: manages the owner's password and the sessions.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

use super::console::output::conclude;
use super::console::runtime;
use super::console::target::SubcommandArgs;
use super::owner_action::owner_context;
use gatewren_base::config::Settings;
use gatewren_base::sys::{Secret, is_asked, read_hidden, rfc3339};
use gatewren_gate::auth::make_code;
use gatewren_gate::owner_actions;
use gatewren_gate::owner_actions::{
    KeyPlan, OwnerCommand, reached_at, sealed_calls, set_password, sign_out_everywhere,
};
use gatewren_store::vault::{Agent, Login, Vault};

/// The arguments of the command.
pub type OwnerArgs = SubcommandArgs<OwnerSubcommand>;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum OwnerSubcommand {
    /// Print the page's address and a one-time code for setting the first password there
    Setup,
    /// Set the password: asked for, or the first line of standard input; the owner is signed out everywhere
    ///
    /// If exact arguments are sealed to the owner's key, the present password is needed too, to encrypt that key
    /// again: asked for, or the second line of standard input.
    SetPassword {
        /// Without the present password: the exact arguments sealed until now can no longer be opened
        #[arg(long)]
        reset: bool,
    },
    /// List the sessions: those of the owner, and of agents that exchanged their token
    Sessions,
    /// End a session
    SignOut {
        /// The id of the session, as `sessions` shows it
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<String>,
        /// End all sessions of the owner
        #[arg(long)]
        all: bool,
    },
}

/// Runs the command; exits with 1 if it failed.
pub fn run(args: &OwnerArgs) -> ExitCode {
    conclude(act(args))
}

fn act(args: &OwnerArgs) -> Result<String, String> {
    let vault = args.place.vault()?;
    let runtime = runtime::build().map_err(words)?;
    match &args.subcommand {
        OwnerSubcommand::Setup => runtime.block_on(set_up(args, &vault)),
        OwnerSubcommand::SetPassword { reset } => {
            let sealed = sealed_calls(&vault).map_err(words)?;
            let (password, plan) = asked_for(sealed, *reset)?;
            runtime.block_on(set_password(&owner_context(&vault), &password, plan))?;
            let lost = if *reset { sealed } else { 0 };
            let set = json!({ "password": "set", "lost": lost });
            Ok(render(args.json, &set, || match lost {
                0 => "the owner's password is set".to_owned(),
                lost => format!(
                    "the owner's password is set; the exact arguments of {lost} calls can no longer be opened"
                ),
            }))
        }
        OwnerSubcommand::Sessions => sessions(&vault, args.json),
        OwnerSubcommand::SignOut { id, .. } => {
            runtime.block_on(sign_out(&vault, id.as_deref(), args.json))
        }
    }
}

/// Creates a code for the first password; fails if a password is set, because the owner can sign in with it.
async fn set_up(args: &OwnerArgs, vault: &Vault) -> Result<String, String> {
    if vault.owner().password().map_err(words)?.is_some() {
        return Err(
            "the password is already set; sign in with it, or set another one with gatewren owner set-password"
                .to_owned(),
        );
    }
    let command = OwnerCommand::plain("owner setup", None);
    let owner = owner_context(vault);
    let code = owner.run_audited(command, make_code(vault)).await?;
    let url = page_url(&args.place.settings_as_served()?);
    Ok(render(
        args.json,
        &json!({ "url": url, "code": code.expose() }),
        || {
            format!(
                "The owner's page:  {url}\nOne-time code:     {}\nThe code is valid once, for one day.",
                code.expose()
            )
        },
    ))
}

/// The URL of the owner's page, with the first name of this host that other machines can resolve.
fn page_url(settings: &Settings) -> String {
    format!("https://{}/owner", reached_at(settings))
}

/// Ends one session by its id, or all of the owner's.
async fn sign_out(vault: &Vault, id: Option<&str>, json: bool) -> Result<String, String> {
    let Some(id) = id else {
        let count = sign_out_everywhere(&owner_context(vault)).await?;
        return Ok(render(json, &json!({ "signed_out": count }), || {
            format!("the owner is signed out of {count} sessions")
        }));
    };
    if owner_actions::sign_out(&owner_context(vault), id).await? {
        Ok(render(json, &json!({ "signed_out": 1 }), || {
            format!("{id} is signed out")
        }))
    } else {
        Err(format!(
            "there is no session {id}; `gatewren owner sessions` lists them"
        ))
    }
}

/// Asks for the new password (twice on a terminal), and for the present one if the key seals the arguments of
/// `sealed` calls.
fn asked_for(sealed: u64, reset: bool) -> Result<(Secret, KeyPlan), String> {
    let password = read_hidden("The owner's new password").map_err(words)?;
    if is_asked() && read_hidden("The same again").map_err(words)? != password {
        return Err("the two passwords differ; nothing was changed".to_owned());
    }
    if sealed == 0 || reset {
        return Ok((password, KeyPlan::Begin));
    }
    let question =
        format!("The present password, which opens the exact arguments of {sealed} calls");
    let present = read_hidden(&question).map_err(words)?;
    if present.expose().is_empty() {
        return Err(format!(
            "nothing was changed: the present password was not given, and it opens the exact arguments of {sealed} \
             calls; give it as the second line, or use --reset to lose them"
        ));
    }
    Ok((password, KeyPlan::Present(present)))
}

fn sessions(vault: &Vault, json: bool) -> Result<String, String> {
    let logins = vault.logins().list().map_err(words)?;
    let agents = vault.agents().list().map_err(words)?;
    let rows = logins.iter().map(|login| Row::of(login, &agents));
    if json {
        return Ok(Value::Array(rows.map(|row| row.json()).collect()).to_string());
    }
    if logins.is_empty() {
        return Ok("there are no sessions".to_owned());
    }
    let heading = format!(
        "{:<22} {:<20} {:<40} {:<24} last used",
        "id", "who", "from", "since"
    );
    let lines = std::iter::once(heading).chain(rows.map(|row| row.line()));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// A session and the name of its user.
struct Row<'a> {
    login: &'a Login,
    who: &'a str,
}

impl<'a> Row<'a> {
    fn of(login: &'a Login, agents: &'a [Agent]) -> Self {
        let who = match login.agent {
            None => "owner",
            Some(token) => {
                let agent = agents.iter().find(|agent| agent.token_sha256 == token);
                agent.map_or("(an agent that has a new token)", |agent| &agent.name)
            }
        };
        Self { login, who }
    }

    fn json(&self) -> Value {
        let Login { id, address, .. } = self.login;
        json!({ "id": id, "who": self.who, "owner": self.login.agent.is_none(), "from": address,
                "since": rfc3339(self.login.created_ms), "last_used": rfc3339(self.login.used_ms) })
    }

    fn line(&self) -> String {
        let Login { id, address, .. } = self.login;
        let (since, used) = (rfc3339(self.login.created_ms), rfc3339(self.login.used_ms));
        format!("{id:<22} {:<20} {address:<40} {since:<24} {used}", self.who)
    }
}

fn render(json: bool, value: &Value, text: impl FnOnce() -> String) -> String {
    if json { value.to_string() } else { text() }
}

fn words(cause: impl std::fmt::Display) -> String {
    cause.to_string()
}
