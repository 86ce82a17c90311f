//! What `gatewren client-config` prints: the steps on standard error, and the configuration on standard output.

use std::io::{self, Write as _};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::super::console::table::table;
use gatewren_gate::owner_actions::{Snippet, SnippetConnection, StepKind, snippets};

/// The output.
pub struct ClientConfigOutput {
    parts: Vec<OutputPart>,
}

/// A part of the output. On a terminal the parts follow each other; redirected, only the configuration is in the file.
enum OutputPart {
    /// For the person, on standard error.
    Words(String),
    /// For the client, on standard output.
    Text(String),
}

impl ClientConfigOutput {
    /// Text for standard output alone.
    fn text(text: String) -> Self {
        Self {
            parts: vec![OutputPart::Text(text)],
        }
    }

    /// Adds a line for the person.
    pub fn note(&mut self, words: &str) {
        self.parts.push(OutputPart::Words(format!("{words}\n")));
    }

    /// Prints all parts.
    pub fn print(&self) -> ExitCode {
        for part in &self.parts {
            match part {
                // Errors are ignored: the configuration on standard output does not depend on standard error.
                OutputPart::Words(words) => {
                    let _ = io::stderr().write_all(words.as_bytes());
                }
                OutputPart::Text(text) => {
                    if writeln!(io::stdout(), "{text}").is_err() {
                        return ExitCode::FAILURE;
                    }
                }
            }
        }
        ExitCode::SUCCESS
    }
}

/// Returns the list of all clients.
pub fn list_clients(json: bool) -> ClientConfigOutput {
    let way = SnippetConnection {
        url: "",
        token: None,
        authority: None,
        fingerprint: None,
        agent: None,
        authority_on_server: "",
    };
    let all = snippets(&way);
    ClientConfigOutput::text(if json {
        let rows = all.iter().map(|one| {
            json!({
                "client": one.client, "title": one.title, "place": one.place, "format": one.form.as_str(),
            })
        });
        Value::Array(rows.collect()).to_string()
    } else {
        let mut rows = vec![["client", "", "goes into"].map(str::to_owned)];
        rows.extend(
            all.iter()
                .map(|one| [one.client, one.title, one.place].map(str::to_owned)),
        );
        table(&rows)
    })
}

/// Returns the steps for one client.
pub fn one_client(
    snippet: &Snippet,
    way: &SnippetConnection<'_>,
    json: bool,
) -> ClientConfigOutput {
    if json {
        ClientConfigOutput::text(as_json(snippet, way))
    } else {
        as_text(snippet)
    }
}

fn as_json(snippet: &Snippet, way: &SnippetConnection<'_>) -> String {
    let steps = snippet
        .steps
        .iter()
        .map(|step| json!({ "kind": step.kind.as_str(), "words": step.words, "code": step.code }));
    let steps: Vec<Value> = steps.collect();
    let trusted = way
        .authority
        .map(|file| json!({ "file": file, "sha256": way.fingerprint }));
    json!({
        "client": snippet.client, "title": snippet.title, "place": snippet.place,
        "format": snippet.form.as_str(), "text": snippet.text, "steps": steps,
        "url": way.url, "agent": way.agent, "authority": trusted,
    })
    .to_string()
}

fn as_text(snippet: &Snippet) -> ClientConfigOutput {
    let mut parts = Vec::new();
    let mut words = format!("{}\n", snippet.title);
    for (number, step) in (1_usize..).zip(&snippet.steps) {
        words += &["\n", &number.to_string(), ". ", &step.words, "\n"].concat();
        if step.kind == StepKind::Paste {
            parts.push(OutputPart::Words(std::mem::take(&mut words)));
            parts.push(OutputPart::Text(snippet.text.clone()));
        }
        for line in step.code.lines() {
            words += &["   ", line, "\n"].concat();
        }
    }
    parts.push(OutputPart::Words(words));
    ClientConfigOutput { parts }
}
