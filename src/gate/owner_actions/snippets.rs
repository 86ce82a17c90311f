//! The snippets that a user pastes into a client to connect it with a token.

use std::net::SocketAddr;

use super::clients::{CLIENTS, ClientProfile, SnippetFormat, TokenSource};
use gatewren_base::sys::sanitize;

/// The default path of the authority's file on a client's machine.
pub const AUTHORITY_FILE: &str = "$HOME/gatewren-ca.pem";

/// The placeholder for the home directory in texts that no shell expands.
const HOME: &str = "/PATH/TO";

/// The hint for a client that could not connect by address.
const BY_NAME: &str = "It must connect by name, not by address: its TLS library accepts no addresses from an \
                       authority that is limited to private addresses.";

/// The connection data for a snippet.
#[derive(Debug, Clone, Copy)]
pub struct SnippetConnection<'a> {
    /// The MCP endpoint, such as `https://box.lan:8443/mcp`.
    pub url: &'a str,
    /// The agent's token; without it, each client gets the token from its own source.
    pub token: Option<&'a str>,
    /// The path of gatewren's authority file on the client's machine; `None` if a public authority issued the
    /// certificate.
    pub authority: Option<&'a str>,
    /// The agent's name, for clients that show one.
    pub agent: Option<&'a str>,
}

/// A client and its snippet.
#[derive(Debug, PartialEq, Eq)]
pub struct Snippet {
    /// Its name on the command line.
    pub client: &'static str,
    /// Its usual name.
    pub title: &'static str,
    /// Where the text goes, in words.
    pub place: &'static str,
    /// The format of the text.
    pub form: SnippetFormat,
    /// The text to paste.
    pub text: String,
    /// Further requirements, one sentence each.
    pub needs: Vec<String>,
}

/// Returns the clients' names on the command line.
pub fn client_words() -> Vec<&'static str> {
    CLIENTS.iter().map(|client| client.word).collect()
}

/// Returns the snippet of each client.
pub fn snippets(way: &SnippetConnection<'_>) -> Vec<Snippet> {
    CLIENTS.iter().map(|client| snippet(way, client)).collect()
}

fn snippet(way: &SnippetConnection<'_>, client: &ClientProfile) -> Snippet {
    let (text, mut needs) = with_token(client, way.token);
    let (lines, authority_needs) = of_authority(client, way.authority);
    needs.extend(authority_needs);
    let host = way.url.trim_start_matches("https://");
    let host = host.split('/').next().unwrap_or(host);
    if client.by_name && way.authority.is_some() && host.parse::<SocketAddr>().is_ok() {
        needs.push(BY_NAME.to_owned());
    }
    if !client.hint.is_empty() {
        needs.push(client.hint.to_owned());
    }
    let text = match way.authority {
        Some(file) => text.replace("{ca}", &path(client.form, file)),
        None if client.authority_part.is_empty() => text,
        None => text.replace(client.authority_part, ""),
    };
    let who = way
        .agent
        .map_or_else(|| "gatewren".to_owned(), |name| format!("gatewren, {name}"));
    let text = text
        .replace("{url}", way.url)
        .replace("{host}", host)
        .replace("{who}", &inside(client.form, &who));
    Snippet {
        client: client.word,
        title: client.title,
        place: client.place,
        form: client.form,
        text: lines + &text,
        needs,
    }
}

/// Returns the text with the token, or with the client's own source for it, and what that requires.
fn with_token(client: &ClientProfile, token: Option<&str>) -> (String, Vec<String>) {
    const VARIABLE: &str = "Set GATEWREN_TOKEN to the agent's token in the environment of";
    let variable = || {
        if client.form == SnippetFormat::Shell {
            "GATEWREN_TOKEN holds the agent's token: read -rs GATEWREN_TOKEN && export GATEWREN_TOKEN"
                .to_owned()
        } else {
            format!("{VARIABLE} {}.", client.title)
        }
    };
    let given = |token: &str| client.text.replace("{token}", token);
    match (client.source, token) {
        (TokenSource::OnlyVariable, None) => (client.text.to_owned(), vec![variable()]),
        (TokenSource::OnlyVariable, Some(token)) => (
            client.text.to_owned(),
            vec![format!("{} Here: GATEWREN_TOKEN={token}", variable())],
        ),
        (TokenSource::Asks, _) => {
            let words = format!("{} asks for the token once.", client.title);
            (client.text.to_owned(), vec![words])
        }
        (_, Some(token)) => (given(token), Vec::new()),
        (TokenSource::Paste(place), None) => {
            let words = format!("Replace {place} with the agent's token.");
            (given(place), vec![words])
        }
        (TokenSource::Variable(pairs), None) => {
            let replaced = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
            let text = pairs.iter().fold(client.text.to_owned(), replaced);
            (text, vec![variable()])
        }
    }
}

/// Returns how a client learns of the authority before it starts: lines for its text, or a sentence.
fn of_authority(client: &ClientProfile, authority: Option<&str>) -> (String, Option<String>) {
    let Some(file) = authority else {
        return (String::new(), None);
    };
    let (file, title) = (path(client.form, file), client.title);
    let Some(variable) = client.variable else {
        let is_told = !client.authority_part.is_empty();
        let words = format!(
            "{title} uses the trust store of its system: add {file} to it, as the owner's page describes for \
             each system."
        );
        return (String::new(), (!is_told).then_some(words));
    };
    if client.form == SnippetFormat::Shell {
        return (format!("export {variable}={file}\n"), None);
    }
    let words = format!("Set {variable}={file} in the environment of {title}.");
    (String::new(), Some(words))
}

/// Formats a path for the text.
fn path(form: SnippetFormat, file: &str) -> String {
    match form {
        // The default path, whose variable the shell has to expand.
        SnippetFormat::Shell if file == AUTHORITY_FILE => format!("\"{file}\""),
        SnippetFormat::Shell => format!("'{}'", file.replace('\'', r"'\''")),
        _ => inside(form, &file.replace("$HOME", HOME)),
    }
}

/// Escapes untrusted text for use inside the quotes of a snippet.
fn inside(form: SnippetFormat, text: &str) -> String {
    if form != SnippetFormat::Json {
        return sanitize(text);
    }
    let quoted = serde_json::Value::from(text).to_string();
    let bare = quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    bare.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::{env, fs, path::Path};

    use super::*;

    const URL: &str = "https://box.lan:8443/mcp";

    fn example_connections() -> [(&'static str, SnippetConnection<'static>); 3] {
        let open = SnippetConnection {
            url: URL,
            token: None,
            authority: Some(AUTHORITY_FILE),
            agent: None,
        };
        let given = SnippetConnection {
            token: Some("gw_x"),
            authority: Some("/home/me/my ca.pem"),
            agent: Some("Mac \"mini\""),
            ..open
        };
        let vouched = SnippetConnection {
            authority: None,
            ..open
        };
        [
            ("own authority, no token", open),
            ("own authority, token and agent", given),
            ("others vouch, no token", vouched),
        ]
    }

    #[test]
    fn each_client_is_told_what_its_golden_says() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/clients");
        for client in &CLIENTS {
            let mut printed = String::new();
            for (name, way) in example_connections() {
                let Snippet {
                    title,
                    place,
                    form,
                    text,
                    needs,
                    ..
                } = snippet(&way, client);
                let form = form.as_str();
                writeln!(printed, "== {title}: {name}\n-- {place} ({form})").unwrap();
                writeln!(printed, "{text}\n-- needs").unwrap();
                for need in needs {
                    writeln!(printed, "{need}").unwrap();
                }
            }
            let golden = folder.join(format!("{}.txt", client.word));
            if env::var_os("UPDATE_GOLDEN").is_some() {
                fs::write(&golden, &printed).unwrap();
            }
            let expected = fs::read_to_string(&golden).unwrap_or_default();
            assert_eq!(printed, expected, "{}", golden.display());
        }
        let goldens = fs::read_dir(&folder).unwrap().count();
        assert_eq!(goldens, CLIENTS.len(), "a golden without a client");
    }

    #[test]
    fn nothing_is_left_open_and_json_is_json() {
        for (name, way) in example_connections() {
            for Snippet {
                client,
                text,
                needs,
                form,
                ..
            } in snippets(&way)
            {
                let all = format!("{text}{}", needs.concat());
                assert!(all.contains(URL), "{client}, {name}");
                for open in ["{url}", "{ca}", "{token}", "{host}", "{who}"] {
                    assert!(!all.contains(open), "{client}, {name}: {all}");
                }
                assert_eq!(
                    way.authority.is_none(),
                    !all.contains(".pem"),
                    "{client}, {name}: {all}"
                );
                match form {
                    SnippetFormat::Json => {
                        drop(serde_json::from_str::<serde_json::Value>(&text).unwrap());
                    }
                    SnippetFormat::Toml => drop(toml::from_str::<toml::Table>(&text).unwrap()),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn a_token_that_is_told_is_in_every_text_that_can_hold_it() {
        let [_, (_, given), _] = example_connections();
        for Snippet {
            client,
            text,
            needs,
            ..
        } in snippets(&given)
        {
            let has_token = format!("{text}{}", needs.concat()).contains("gw_x");
            assert_eq!(has_token, client != "vscode", "{client}");
        }
    }

    #[test]
    fn who_cannot_come_in_by_an_address_is_told_so() {
        let [(_, open), _, (_, vouched)] = example_connections();
        let clients_by_name = |way: &SnippetConnection<'_>, url: &'static str| {
            let all = snippets(&SnippetConnection { url, ..*way });
            let all = all.into_iter();
            let listed = all.filter(|one| one.needs.iter().any(|need| need == BY_NAME));
            listed.map(|one| one.client).collect::<Vec<_>>()
        };
        let (four, six) = ("https://192.168.1.5:8443/mcp", "https://[fd00::5]:8443/mcp");
        assert_eq!(clients_by_name(&open, four), ["claude-code"]);
        assert_eq!(clients_by_name(&open, six), ["claude-code"]);
        assert_eq!(clients_by_name(&open, URL), [""; 0]);
        assert_eq!(clients_by_name(&vouched, four), [""; 0]);
    }

    #[test]
    fn what_an_agent_is_called_breaks_out_of_nothing() {
        let name = "x\", \"password\": false, \"y\": \"\u{1b}[31m";
        let [_, (_, way), _] = example_connections();
        let way = SnippetConnection {
            agent: Some(name),
            ..way
        };
        for Snippet { client, text, .. } in snippets(&way) {
            assert!(!text.contains('\u{1b}'), "{client}");
            if client == "vscode" {
                let read: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(
                    read["inputs"][0]["description"],
                    format!("Token of gatewren, {name}")
                );
                assert_eq!(read["inputs"][0]["password"], true);
            }
        }
    }
}
