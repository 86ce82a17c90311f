//! The numbered steps that connect a client: certificate, trust, token, the text to paste, and a check.

use super::clients::{CaSetting, ClientProfile, SnippetFormat, TokenSource, Trust};
use super::install_link::install_steps;
use super::setup_step::{SetupStep, StepKind};
use super::snippet_connection::{HOME, SnippetConnection, path};
use gatewren_base::sys::sanitize;

/// The shell's files that keep a variable.
const TO_KEEP: &str =
    "run this, and add the line to ~/.profile (zsh: ~/.zprofile) so that it lasts";

/// The path of the file that joins the public authorities and gatewren's.
const BUNDLE: &str = "$HOME/gatewren-bundle.pem";

/// Returns the steps for a client whose snippet is `text`.
pub(super) fn steps(
    way: &SnippetConnection<'_>,
    client: &ClientProfile,
    text: &str,
) -> Vec<SetupStep> {
    let mut steps = Vec::new();
    if let Some(file) = way.authority {
        steps.extend(trust(way, client, file));
        if !client.trust_note.is_empty() {
            steps.push(SetupStep::prepare(client.trust_note, String::new()));
        }
    } else if client.trust == Trust::PublicOnly {
        steps.push(SetupStep::prepare(PUBLIC_NAME, String::new()));
    }
    steps.extend(token(way, client));
    if !client.first.is_empty() {
        steps.push(SetupStep::prepare(client.first, String::new()));
    }
    steps.push(SetupStep::new(
        StepKind::Paste,
        &paste(client),
        String::new(),
    ));
    if let Some(link) = client.link {
        steps.extend(install_steps(link, client.title, text));
    }
    if client.source == TokenSource::OAuth {
        steps.push(SetupStep::prepare(APPROVE, String::new()));
    }
    let (words, code) = client.check;
    let check = format!("Check: {words}");
    steps.push(SetupStep::new(StepKind::Check, &check, code.to_owned()));
    steps
}

/// What a client of the internet needs.
const PUBLIC_NAME: &str = "It connects over the internet: the name in the address must be reachable from there, \
                           through a reverse proxy or a tunnel, with a certificate of a public authority.";

/// What follows for a client that gets its token over OAuth.
const APPROVE: &str = "Approve it: the browser opens gatewren's page, where you sign in and choose what the client may do.";

/// How the person pastes the snippet.
fn paste(client: &ClientProfile) -> String {
    let place = client.place;
    match client.form {
        SnippetFormat::Shell => format!("Run in {place}"),
        SnippetFormat::Fields => format!("Open {place}, and fill in"),
        SnippetFormat::Python => format!("Use in {place}"),
        SnippetFormat::Json => {
            format!("Paste into {place}; where other servers are, only the entry \"gatewren\"")
        }
        SnippetFormat::Toml | SnippetFormat::Yaml => format!("Add to {place}"),
    }
}

/// The step that gives a service of Docker Compose the authority's file.
fn compose_step(title: &str, service: &str, file: &str, variable: &str) -> SetupStep {
    let file = file.trim_matches(['"', '\'']).replace("$HOME", "${HOME}");
    SetupStep::prepare(
        &format!("Let {title} trust the certificate, in compose.yaml"),
        format!(
            "services:\n  {service}:\n    environment:\n      {variable}: /gatewren-ca.pem\n    \
             volumes:\n      - \"{file}:/gatewren-ca.pem:ro\""
        ),
    )
}

/// What to write for the placeholder of the home directory, if a text has it.
fn place_of_home(text: &str) -> &'static str {
    if text.contains(HOME) {
        ", with your home directory (echo \"$HOME\") for /PATH/TO"
    } else {
        ""
    }
}

/// The steps that make the client trust gatewren's authority, whose file on the client's machine is `file`.
fn trust(way: &SnippetConnection<'_>, client: &ClientProfile, file: &str) -> Vec<SetupStep> {
    let title = client.title;
    if client.trust == Trust::PublicOnly {
        let words = format!("{PUBLIC_NAME} See `gatewren cert --help`.");
        return vec![SetupStep::prepare(&words, String::new())];
    }
    let quoted = path(SnippetFormat::Shell, file);
    let plain = path(SnippetFormat::Fields, file);
    let mut steps = vec![save(way, client, &quoted)];
    let step = match client.trust {
        Trust::InText | Trust::PublicOnly => return steps,
        Trust::System => SetupStep::prepare(
            &format!(
                "Add {plain} to the trust store of the system, which {title} uses; `gatewren cert trust` and the \
                 owner's page list the command of each system. On Debian"
            ),
            format!(
                "sudo cp {quoted} /usr/local/share/ca-certificates/gatewren.crt && sudo update-ca-certificates"
            ),
        ),
        Trust::Settings {
            place,
            text,
            setting,
        } => {
            let text = text.replace("{ca}", &path(SnippetFormat::Json, file));
            let words = format!(
                "Let {title} trust it: put this into {place}{}",
                place_of_home(&text)
            );
            steps.push(SetupStep::new(StepKind::Settings, &words, text));
            let words = format!("Some versions of {title} ignore {place}: {TO_KEEP}");
            let code = format!("export {}={quoted}", setting.variable);
            SetupStep::prepare(&words, code)
        }
        Trust::Shell(setting) => {
            let (set, bundle) = value(setting, file, &mut steps);
            let variable = setting.variable;
            let words = format!("Let {title} trust {bundle}: {TO_KEEP}");
            SetupStep::prepare(&words, format!("export {variable}={set}"))
        }
        Trust::Desktop(setting) => SetupStep::prepare(
            &format!(
                "Let {title} trust the certificate, with the line of its system, and start it again"
            ),
            desktop_lines(setting.variable, &plain),
        ),
        Trust::Compose(service, setting) => {
            let (file, _) = value(setting, file, &mut steps);
            compose_step(title, service, &file, setting.variable)
        }
    };
    steps.push(step);
    steps
}

/// The step that fetches the certificate. It is downloaded without verification, so its fingerprint is compared.
fn save(way: &SnippetConnection<'_>, client: &ClientProfile, quoted: &str) -> SetupStep {
    let machine = match client.trust {
        Trust::Compose(..) => "machine that runs the containers",
        _ => "client's machine",
    };
    let compare = match way.fingerprint {
        Some(fingerprint) => format!("it must print {fingerprint}"),
        None => format!(
            "it must print the same as this command on the box, `sudo openssl x509 -in {} -noout -fingerprint \
             -sha256`",
            way.authority_on_server
        ),
    };
    SetupStep::new(
        StepKind::Save,
        &format!("Save the box's certificate on the {machine}; {compare}"),
        format!(
            "curl -ko {quoted} https://{}/owner/connect/authority/pem\n\
             openssl x509 -in {quoted} -noout -fingerprint -sha256",
            way.host()
        ),
    )
}

/// Returns the value of a variable, quoted for a shell, and what it is in words. One that replaces the public
/// authorities gets a file with both, which a further step makes.
fn value(setting: CaSetting, file: &str, steps: &mut Vec<SetupStep>) -> (String, &'static str) {
    let quoted = path(SnippetFormat::Shell, file);
    if !setting.replaces {
        return (quoted, "the certificate");
    }
    let bundle = format!("\"{BUNDLE}\"");
    steps.push(SetupStep::prepare(
        &format!(
            "Join it with the public authorities, which {} would replace",
            setting.variable
        ),
        format!("cat /etc/ssl/certs/ca-certificates.crt {quoted} >{bundle}"),
    ));
    (bundle, "both")
}

/// How each desktop gets a variable. <https://www.freedesktop.org/software/systemd/man/latest/environment.d.html>
fn desktop_lines(variable: &str, value: &str) -> String {
    format!(
        "Linux:   echo '{variable}={value}' >>~/.config/environment.d/gatewren.conf   # and log in again\n\
         macOS:   launchctl setenv {variable} '{value}'   # again after each restart\n\
         Windows: setx {variable} \"{value}\""
    )
}

/// The step that gives the client its token, if the snippet does not.
fn token(way: &SnippetConnection<'_>, client: &ClientProfile) -> Option<SetupStep> {
    let title = client.title;
    let Some(token) = way.token else {
        return missing_token(way, client);
    };
    match client.source {
        TokenSource::OnlyVariable => {
            let words = format!("Give {title} the token: {TO_KEEP}");
            let code = format!("export GATEWREN_TOKEN={token}");
            Some(SetupStep::prepare(&words, code))
        }
        TokenSource::Asks => {
            let words = format!("{title} asks for the token once");
            Some(SetupStep::prepare(&words, String::new()))
        }
        TokenSource::OAuth | TokenSource::Paste(_) | TokenSource::Variable(_) => None,
    }
}

/// The same where no token is given.
fn missing_token(way: &SnippetConnection<'_>, client: &ClientProfile) -> Option<SetupStep> {
    let title = client.title;
    let (then, code) = match (client.source, client.trust) {
        (TokenSource::OAuth, _) => return None,
        (TokenSource::Asks, _) => (format!("{title} asks for it once"), String::new()),
        (TokenSource::Paste(place), _) => (format!("Put it in place of {place}"), String::new()),
        (_, Trust::Desktop(_)) => (
            format!("Give it to {title}, with the line of its system"),
            desktop_lines("GATEWREN_TOKEN", "TOKEN"),
        ),
        (TokenSource::OnlyVariable, _) => (
            format!("Give it to {title}: {TO_KEEP}"),
            "export GATEWREN_TOKEN=TOKEN".to_owned(),
        ),
        (TokenSource::Variable(_), Trust::Compose(..)) => (
            format!("Give it to {title}, in the file .env"),
            "GATEWREN_TOKEN=TOKEN".to_owned(),
        ),
        (TokenSource::Variable(_), _) if client.form != SnippetFormat::Shell => (
            format!("Give it to {title}: {TO_KEEP}"),
            "export GATEWREN_TOKEN=TOKEN".to_owned(),
        ),
        (TokenSource::Variable(_), _) => (
            "Run this, and paste it".to_owned(),
            "read -rs GATEWREN_TOKEN && export GATEWREN_TOKEN".to_owned(),
        ),
    };
    let name = way.agent.map_or_else(|| "NAME".to_owned(), sanitize);
    let words = format!(
        "Get a token, which is shown only once: `gatewren agent add NAME`, or `gatewren agent rotate {name}` for an \
         agent that exists. {then}"
    );
    Some(SetupStep::prepare(&words, code))
}
