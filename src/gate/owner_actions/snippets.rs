//! The snippets that a user pastes into a client to connect it with a token.

use std::net::IpAddr;

use super::clients::{ClientProfile, SnippetFormat, TokenSource, all_clients};
use super::setup_step::SetupStep;
use super::setup_steps::steps;
use super::snippet_connection::{SnippetConnection, inside, path};

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
    /// What to do, in order: one step pastes the text, and the last one shows that the client is connected.
    pub steps: Vec<SetupStep>,
}

/// Returns the clients' names on the command line.
pub fn client_words() -> Vec<&'static str> {
    all_clients().map(|client| client.word).collect()
}

/// Returns the clients' names on the command line, and their usual names.
pub fn client_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    all_clients().map(|client| (client.word, client.title))
}

/// Returns the snippet of each client.
pub fn snippets(way: &SnippetConnection<'_>) -> Vec<Snippet> {
    all_clients().map(|client| snippet(way, client)).collect()
}

fn snippet(way: &SnippetConnection<'_>, client: &ClientProfile) -> Snippet {
    let needs_name = client.by_name && way.authority.is_some();
    let address = needs_name.then(|| way.address()).flatten();
    let url = address.and_then(|_| way.url_by_name());
    let way = SnippetConnection {
        url: url.as_deref().unwrap_or(way.url),
        ..*way
    };
    let text = filled(&way, client, &with_token(client, way.token));
    let mut steps = steps(&way, client, &text);
    if let Some(address) = address {
        steps.insert(0, name_step(&way, client, address.ip()));
    }
    Snippet {
        client: client.word,
        title: client.title,
        place: client.place,
        form: client.form,
        steps,
        text,
    }
}

/// Tells how the client's machine finds the server by name. Some TLS libraries accept no address from an authority that
/// is limited to private addresses.
fn name_step(way: &SnippetConnection<'_>, client: &ClientProfile, address: IpAddr) -> SetupStep {
    let title = client.title;
    match (way.address(), way.name) {
        (None, Some(name)) => SetupStep::prepare(
            &format!(
                "{title} cannot connect by address, so the steps use the name {name}. If the client's machine does \
                 not know the name, add this line to its /etc/hosts (Windows: \
                 C:\\Windows\\System32\\drivers\\etc\\hosts)"
            ),
            format!("{address} {name}"),
        ),
        _ => SetupStep::prepare(
            &format!(
                "{title} cannot connect by address: give the server a name with `gatewren init --name NAME`, and run \
                 this with --host NAME"
            ),
            String::new(),
        ),
    }
}

/// Replaces the placeholders other than the token's.
pub(super) fn filled(way: &SnippetConnection<'_>, client: &ClientProfile, text: &str) -> String {
    let text = match way.authority {
        Some(file) => text.replace("{ca}", &path(client.form, file)),
        None if client.authority_part.is_empty() => text.to_owned(),
        None => text.replace(client.authority_part, ""),
    };
    let who = way
        .agent
        .map_or_else(|| "gatewren".to_owned(), |name| format!("gatewren, {name}"));
    text.replace("{url}", way.url)
        .replace("{host}", way.host())
        .replace("{who}", &inside(client.form, &who))
}

/// Returns the text with the token, or with the client's own source for it.
pub(super) fn with_token(client: &ClientProfile, token: Option<&str>) -> String {
    let given = |token: &str| client.text.replace("{token}", token);
    match (client.source, token) {
        (TokenSource::OnlyVariable | TokenSource::Asks | TokenSource::OAuth, _) => {
            client.text.to_owned()
        }
        (_, Some(token)) => given(token),
        (TokenSource::Paste(place), None) => given(place),
        (TokenSource::Variable(pairs), None) => {
            let replaced = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
            pairs.iter().fold(client.text.to_owned(), replaced)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::{env, fs, path::Path};

    use super::super::setup_step::StepKind;
    use super::super::snippet_connection::AUTHORITY_FILE;
    use super::*;

    const URL: &str = "https://box.lan:8443/mcp";

    fn example_connections() -> [(&'static str, SnippetConnection<'static>); 3] {
        let open = SnippetConnection {
            url: URL,
            name: Some("box.lan"),
            token: None,
            authority: Some(AUTHORITY_FILE),
            fingerprint: None,
            authority_on_server: "/var/lib/gatewren/tls/ca.pem",
            agent: None,
        };
        let given = SnippetConnection {
            token: Some("gw_x"),
            authority: Some("/home/me/my ca.pem"),
            fingerprint: Some("AB:CD"),
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

    /// The whole snippet as a person reads it.
    fn printed(snippet: &Snippet) -> String {
        let mut all = String::new();
        for (number, step) in (1..).zip(&snippet.steps) {
            writeln!(all, "{number}. {}", step.words).unwrap();
            let code = match step.kind {
                StepKind::Paste => &snippet.text,
                _ => &step.code,
            };
            for line in code.lines() {
                writeln!(all, "   {line}").unwrap();
            }
        }
        all
    }

    #[test]
    fn each_client_has_the_steps_of_its_golden_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/clients");
        for client in all_clients() {
            let mut all = String::new();
            for (name, way) in example_connections() {
                let snippet = snippet(&way, client);
                let (place, form) = (snippet.place, snippet.form.as_str());
                writeln!(all, "== {}: {name}\n-- {place} ({form})", snippet.title).unwrap();
                all.push_str(&printed(&snippet));
            }
            let golden = folder.join(format!("{}.txt", client.word));
            if env::var_os("UPDATE_GOLDEN").is_some() {
                fs::write(&golden, &all).unwrap();
            }
            let expected = fs::read_to_string(&golden).unwrap_or_default();
            assert_eq!(all, expected, "{}", golden.display());
        }
        let goldens = fs::read_dir(&folder).unwrap().count();
        assert_eq!(goldens, all_clients().count(), "a golden without a client");
    }

    #[test]
    fn each_client_has_one_text_to_paste_and_ends_with_a_check() {
        for (name, way) in example_connections() {
            for Snippet { client, steps, .. } in snippets(&way) {
                let count = |kind| steps.iter().filter(|step| step.kind == kind).count();
                assert_eq!(count(StepKind::Paste), 1, "{client}, {name}");
                assert_eq!(count(StepKind::Check), 1, "{client}, {name}");
                let last = steps.last().unwrap();
                assert_eq!(last.kind, StepKind::Check, "{client}, {name}");
                for step in &steps {
                    let has_code = step.kind == StepKind::Paste || !step.code.is_empty();
                    let end = if has_code { ':' } else { '.' };
                    assert!(step.words.ends_with(end), "{client}: {}", step.words);
                }
            }
        }
    }

    #[test]
    fn no_placeholder_is_left_and_json_parses() {
        for (name, way) in example_connections() {
            for snippet in snippets(&way) {
                let all = printed(&snippet);
                let Snippet {
                    client, text, form, ..
                } = snippet;
                assert!(all.contains("https://box.lan:8443/"), "{client}, {name}");
                for open in ["{url}", "{ca}", "{token}", "{host}", "{who}"] {
                    assert!(!all.contains(open), "{client}, {name}: {all}");
                }
                let over_the_internet = ["chatgpt", "claude-connector"].contains(&client);
                assert_eq!(
                    way.authority.is_none() || over_the_internet,
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
    fn a_given_token_is_in_every_text_that_can_hold_it() {
        let [_, (_, given), _] = example_connections();
        for snippet in snippets(&given) {
            let (client, has_token) = (snippet.client, printed(&snippet).contains("gw_x"));
            let takes_none = ["vscode", "home-assistant", "chatgpt", "claude-connector"];
            assert_eq!(has_token, !takes_none.contains(&client), "{client}");
        }
    }

    #[test]
    fn a_client_that_cannot_connect_by_address_gets_the_name_and_how_to_find_it() {
        let [(_, open), _, (_, vouched)] = example_connections();
        let told = |way: &SnippetConnection<'_>, url: &'static str| {
            let all = snippets(&SnippetConnection { url, ..*way }).into_iter();
            let by_address = |one: &Snippet| one.steps[0].words.contains("cannot connect by");
            let told = all.filter(by_address);
            told.map(|one| (one.client, printed(&one)))
                .collect::<Vec<_>>()
        };
        let all = [
            "https://192.168.1.5:8443/mcp",
            "https://[fd00::5]:8443/mcp",
            "https://192.168.1.5/mcp",
        ];
        for url in all {
            let found = told(&open, url);
            assert_eq!(found.len(), 2, "{url}");
            for (client, text) in found {
                assert!(["claude-code", "opencode"].contains(&client), "{client}");
                let (_, after) = text.split_once(" box.lan\n").unwrap();
                assert!(after.contains("https://box.lan:"), "{after}");
                assert!(
                    !after.contains("192.168") && !after.contains("fd00"),
                    "{after}"
                );
            }
        }
        let unnamed = SnippetConnection { name: None, ..open };
        for (_, text) in told(&unnamed, all[0]) {
            assert!(text.contains("gatewren init --name NAME"), "{text}");
        }
        assert!(told(&open, URL).is_empty() && told(&vouched, all[0]).is_empty());
    }

    #[test]
    fn an_agents_name_cannot_break_out_of_the_quotes() {
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
