//! The settings files of clients that gatewren edits on the client's machine.

use super::clients::{ClientFile, ClientProfile, SnippetFormat, TokenSource, all_clients};
use super::snippet_connection::SnippetConnection;
use super::snippets::{filled, with_token};

/// An edit of a client's settings file.
#[derive(Debug, PartialEq, Eq)]
pub struct ClientFileEdit {
    /// The variable that can name its folder; empty if there is none.
    pub variable: &'static str,
    /// The folder otherwise, in the user's home directory.
    pub folder: &'static str,
    /// The file's path in that folder.
    pub name: &'static str,
    /// The format of the file.
    pub form: SnippetFormat,
    /// What to add to it: an object in JSON, or a table in TOML.
    pub text: String,
}

/// Returns the edits that connect a client, or why there are none.
pub fn file_edits(word: &str, way: &SnippetConnection<'_>) -> Result<Vec<ClientFileEdit>, String> {
    let editable = all_clients().filter(|client| !client.files.is_empty());
    let editable: Vec<&ClientProfile> = editable.collect();
    let Some(client) = editable.iter().find(|client| client.word == word) else {
        let words: Vec<&str> = editable.iter().map(|client| client.word).collect();
        return Err(format!(
            "--write cannot edit a file of {word}, only those of {}; take the steps that it prints without --write",
            words.join(", ")
        ));
    };
    let needed = |file: &&ClientFile| way.authority.is_some() || !file.text.contains("{ca}");
    let edit = |file: &ClientFile| {
        Ok(ClientFileEdit {
            variable: file.variable,
            folder: file.folder,
            name: file.name,
            form: form(client, file),
            text: text(client, file, way)?,
        })
    };
    client.files.iter().filter(needed).map(edit).collect()
}

/// The format of a file that has the snippet is the snippet's; the others are JSON.
const fn form(client: &ClientProfile, file: &ClientFile) -> SnippetFormat {
    if file.text.is_empty() {
        client.form
    } else {
        SnippetFormat::Json
    }
}

/// The text of an edit. Only a client that reads the variable itself, or asks, needs no token in its file.
fn text(
    client: &ClientProfile,
    file: &ClientFile,
    way: &SnippetConnection<'_>,
) -> Result<String, String> {
    let of_snippet = file.text.is_empty();
    let in_file = ClientProfile {
        text: if of_snippet { client.text } else { file.text },
        form: form(client, file),
        ..*client
    };
    let gets_it_itself = of_snippet && !matches!(client.source, TokenSource::Paste(_));
    if way.token.is_none() && in_file.text.contains("{token}") && !gets_it_itself {
        return Err(format!(
            "the file of {} needs the agent's token: give it with --token-file FILE",
            client.title
        ));
    }
    Ok(filled(way, &in_file, &with_token(&in_file, way.token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: SnippetConnection<'_> = SnippetConnection {
        url: "https://box.lan:8443/mcp",
        name: Some("box.lan"),
        token: Some("gw_x"),
        authority: Some("/home/me/my \"ca\".pem"),
        fingerprint: None,
        authority_on_server: "/var/lib/gatewren/tls/ca.pem",
        agent: Some("Mac \"mini\""),
    };

    #[test]
    fn each_edit_parses_and_names_the_server_or_the_authority() {
        for client in all_clients().filter(|client| !client.files.is_empty()) {
            let edits = file_edits(client.word, &GIVEN).unwrap();
            assert_eq!(edits.len(), client.files.len(), "{}", client.word);
            for ClientFileEdit {
                name, form, text, ..
            } in edits
            {
                let parsed: serde_json::Value = match form {
                    SnippetFormat::Toml => toml::from_str(&text).unwrap(),
                    _ => serde_json::from_str(&text).unwrap(),
                };
                let mut members = parsed.as_object().unwrap().values();
                let entry = members.find_map(|servers| servers.get("gatewren"));
                let url = entry.and_then(|entry| {
                    let url = ["url", "serverUrl", "httpUrl"];
                    url.into_iter().find_map(|key| entry.get(key))
                });
                match url {
                    Some(url) => assert_eq!(url, GIVEN.url, "{name}"),
                    None => assert_eq!(
                        parsed["env"]["NODE_EXTRA_CA_CERTS"],
                        GIVEN.authority.unwrap(),
                        "{name}"
                    ),
                }
                assert!(!text.contains("{token}"), "{name}: {text}");
            }
        }
    }

    #[test]
    fn without_a_token_only_a_client_that_gets_it_itself_is_written() {
        let open = SnippetConnection {
            token: None,
            ..GIVEN
        };
        for (word, works) in [
            ("cursor", true),
            ("windsurf", true),
            ("vscode", true),
            ("codex", true),
            ("opencode", true),
            ("claude-code", false),
            ("gemini", false),
            ("copilot", false),
            ("cline", false),
            ("zed", false),
        ] {
            let why = file_edits(word, &open).err().unwrap_or_default();
            assert_eq!(why.is_empty(), works, "{word}");
            assert_eq!(why.contains("--token-file"), !works, "{word}: {why}");
        }
        let why = file_edits("curl", &open).unwrap_err();
        assert!(
            why.contains("only those of claude-code, codex, gemini, "),
            "{why}"
        );
    }

    #[test]
    fn with_a_public_certificate_no_file_names_an_authority() {
        let vouched = SnippetConnection {
            authority: None,
            ..GIVEN
        };
        let edits = file_edits("claude-code", &vouched).unwrap();
        let names: Vec<_> = edits.iter().map(|edit| edit.name).collect();
        assert_eq!(names, [".claude.json"]);
    }
}
