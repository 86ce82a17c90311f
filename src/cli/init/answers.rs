//! The answers for `init`: from options, from the terminal, and otherwise the current values.

use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::str::FromStr as _;

use toml::Value;

use super::super::console::listen::Listen;
use super::fragment::WantedSetting;
use super::profile::{self, HelperProfile};
use super::runtimes::{HostRuntimes, MEANING, parse_runtimes, runtime_words};
use gatewren_base::config::{Preset, RuntimeKind, Settings, TlsMode};
use gatewren_gate::owner_actions::fit_name;
use gatewren_server::app::server_names;

/// The files of the owner's own certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate chain.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The wanted configuration. Absent values stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InitAnswers {
    /// The names of the host.
    pub names: Vec<String>,
    /// Where to listen.
    pub listen: Option<Listen>,
    /// The owner's certificate, if it replaces our own.
    pub files: Option<CertificateFiles>,
    /// Whether to go back to our own authority.
    pub own: bool,
    /// An agent to create.
    pub agent: Option<(String, Preset)>,
    /// The runtimes whose containers are served.
    pub runtimes: Option<Vec<RuntimeKind>>,
    /// The profile of `helper.toml`.
    pub profile: Option<HelperProfile>,
}

/// The values that the questions offer.
pub struct OfferedValues<'a> {
    /// The settings as they are.
    pub settings: &'a Settings,
    /// The port as it is.
    pub port: u16,
    /// The runtimes of this host; `None` if the helper's policy cannot be read.
    pub runtimes: Option<&'a HostRuntimes>,
    /// The profile that `helper.toml` has.
    pub profile: HelperProfile,
}

impl InitAnswers {
    /// The settings to write.
    pub fn wanted_settings(&self) -> Vec<WantedSetting> {
        let text = |text: &str| Value::String(text.to_owned());
        let mut wanted_settings: Vec<WantedSetting> = Vec::new();
        if !self.names.is_empty() {
            let names = self.names.iter().map(|name| text(name)).collect();
            wanted_settings.push(("names", Value::Array(names)));
        }
        if let Some(CertificateFiles { cert, key }) = &self.files {
            wanted_settings.extend([
                ("tls.mode", text("files")),
                ("tls.cert", text(&cert.to_string_lossy())),
                ("tls.key", text(&key.to_string_lossy())),
            ]);
        } else if self.own {
            wanted_settings.extend([
                ("tls.mode", text("own")),
                ("tls.cert", text("")),
                ("tls.key", text("")),
            ]);
        }
        wanted_settings
    }

    /// Asks on the terminal for each value that no option gave; an empty line keeps the offered value.
    pub fn ask(mut self, offered: &OfferedValues<'_>) -> Result<Self, String> {
        let OfferedValues { settings, port, .. } = *offered;
        if self.names.is_empty() {
            self.names = ask_names(settings)?;
        }
        if self.listen.is_none() {
            let listen: Listen =
                read_valid("Port, or address and port", &port.to_string(), str::parse)?;
            self.listen = (listen != Listen::Port(port)).then_some(listen);
        }
        if self.files.is_none() && settings.tls.mode == TlsMode::Own {
            self.files = ask_files()?;
        }
        if let (None, Some(runtimes)) = (&self.runtimes, offered.runtimes) {
            self.runtimes = ask_runtimes(runtimes)?;
        }
        if let (None, Some(_)) = (self.profile, offered.runtimes) {
            self.profile = ask_profile(offered.profile)?;
        }
        if self.agent.is_none() {
            self.agent = ask_agent()?;
        }
        Ok(self)
    }
}

/// Asks for the names of the host; returns none if they stay as they are.
fn ask_names(settings: &Settings) -> Result<Vec<String>, String> {
    let now = server_names(&settings.names);
    let now: Vec<&str> = now
        .iter()
        .map(String::as_str)
        .filter(|name| *name != "localhost")
        .collect();
    let answer = read_answer(
        "Names of this host, for clients and the certificate",
        &now.join(" "),
    )?;
    let answer: Vec<String> = answer
        .split([' ', ','])
        .filter(|name| !name.is_empty())
        .map(str::to_lowercase)
        .collect();
    Ok(if answer == now { Vec::new() } else { answer })
}

/// Asks for the owner's own certificate; returns `None` if our own authority signs it.
fn ask_files() -> Result<Option<CertificateFiles>, String> {
    let is_own = read_valid(
        "Certificate: own (signed by this host's own authority, which clients must trust) or files (yours)",
        "own",
        |answer| match answer {
            "own" => Ok(true),
            "files" => Ok(false),
            other => Err(format!("{other:?} is neither own nor files")),
        },
    )?;
    if is_own {
        return Ok(None);
    }
    let cert = read_answer("  Path of the chain, as PEM", "")?.into();
    let key = read_answer(
        "  Path of the key, as PEM, readable by the user gatewren",
        "",
    )?;
    let key = key.into();
    Ok(Some(CertificateFiles { cert, key }))
}

/// Asks for a first agent; returns `None` for none.
fn ask_agent() -> Result<Option<(String, Preset)>, String> {
    let name = read_valid(
        "Name of the first AI client (empty for none)",
        "",
        |answer| match answer {
            "" => Ok(None),
            name => fit_name(name).map(Some),
        },
    )?;
    let Some(name) = name else {
        return Ok(None);
    };
    let policy = read_valid(
        "  What it may do: observe, suggest, operate or admin",
        "observe",
        |answer| Preset::from_str(answer).map_err(|e| e.to_string()),
    )?;
    Ok(Some((name, policy)))
}

/// Asks which runtimes to serve, if one is installed and not served; returns `None` if nothing is to change.
fn ask_runtimes(runtimes: &HostRuntimes) -> Result<Option<Vec<RuntimeKind>>, String> {
    if runtimes.unserved().is_empty() {
        return Ok(None);
    }
    let unfinished = |_| "nothing was changed: standard error is closed".to_owned();
    let mut lines = vec![MEANING.to_owned()];
    for kind in runtimes.found() {
        let trace = runtimes.trace(kind).unwrap_or_default();
        lines.push(format!("  {kind}: {trace}"));
    }
    writeln!(io::stderr(), "{}", lines.join("\n")).map_err(unfinished)?;
    let now = runtime_words(runtimes.served());
    read_valid("Runtimes whose containers are served", &now, |answer| {
        (answer != now).then(|| parse_runtimes(answer)).transpose()
    })
}

/// Asks for the profile of `helper.toml`; returns `None` if nothing is to change.
fn ask_profile(now: HelperProfile) -> Result<Option<HelperProfile>, String> {
    let unfinished = |_| "nothing was changed: standard error is closed".to_owned();
    writeln!(io::stderr(), "{}", profile::MEANING).map_err(unfinished)?;
    let question = "Profile of the helper: minimal or home";
    let profile: HelperProfile = read_valid(question, now.word(), str::parse)?;
    Ok((profile != now).then_some(profile))
}

/// Asks until the answer is valid, so that one mistake does not lose the answers before it.
fn read_valid<T>(
    question: &str,
    offer: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T, String> {
    loop {
        match parse(&read_answer(question, offer)?) {
            Ok(valid) => return Ok(valid),
            Err(cause) => writeln!(io::stderr(), "  {cause}")
                .map_err(|_| "nothing was changed: standard error is closed".to_owned())?,
        }
    }
}

/// Reads one line of standard input; returns the offer if the line is empty.
fn read_answer(question: &str, offer: &str) -> Result<String, String> {
    let unfinished = || "nothing was changed: input ended before the last answer".to_owned();
    let shown = if offer.is_empty() {
        String::new()
    } else {
        format!(" [{offer}]")
    };
    // Not to standard output, which a program may read.
    write!(io::stderr(), "{question}{shown}: ").map_err(|_| unfinished())?;
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => Err(unfinished()),
        Ok(_) => {
            let answer = line.trim();
            Ok(if answer.is_empty() { offer } else { answer }.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_wished_that_nobody_said() {
        assert_eq!(InitAnswers::default().wanted_settings(), []);
        let named = InitAnswers {
            names: vec!["box.lan".to_owned()],
            ..InitAnswers::default()
        };
        assert_eq!(named.wanted_settings().len(), 1);
    }
}
