//! What `gatewren client-config` prints: the steps on standard error, and the configuration on standard output.

use std::io::{self, Write as _};
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::super::console::table::table;
use super::write::{UNCHANGED, WrittenFile};
use gatewren_gate::owner_actions::{SetupStep, Snippet, SnippetConnection, StepKind, snippets};

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
        name: None,
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
        let mut object = as_json(snippet, way);
        object.insert("format".to_owned(), snippet.form.as_str().into());
        object.insert("text".to_owned(), snippet.text.as_str().into());
        ClientConfigOutput::text(Value::Object(object).to_string())
    } else {
        as_text(snippet)
    }
}

/// Returns what became of a client's files, and the steps that are left.
pub fn after_write(
    snippet: &Snippet,
    way: &SnippetConnection<'_>,
    written: &[WrittenFile],
    json: bool,
) -> ClientConfigOutput {
    if json {
        let files = written.iter().map(|file| {
            json!({
                "file": file.path, "change": file.change, "copy": file.copy, "exposes_token": file.exposes_token,
            })
        });
        let mut object = as_json(snippet, way);
        object.insert("files".to_owned(), files.collect());
        return ClientConfigOutput::text(Value::Object(object).to_string());
    }
    let mut words: String = written.iter().map(what_became_of).collect();
    for (number, step) in (1_usize..).zip(&snippet.steps) {
        words += &numbered(number, step);
        words += &indented(step);
    }
    ClientConfigOutput::text(words.trim_end().to_owned())
}

fn what_became_of(file: &WrittenFile) -> String {
    let path = file.path.display();
    let words = match (file.change, &file.copy) {
        (UNCHANGED, _) => format!("{path} was not changed: it has the entry already."),
        (_, Some(copy)) => format!("Changed {path}; the file before is {}.", copy.display()),
        _ => format!("Created {path}."),
    };
    if file.exposes_token {
        format!("{words}\nOther users may read the token in it: chmod 600 '{path}'\n")
    } else {
        words + "\n"
    }
}

fn as_json(snippet: &Snippet, way: &SnippetConnection<'_>) -> Map<String, Value> {
    let steps = snippet
        .steps
        .iter()
        .map(|step| json!({ "kind": step.kind.as_str(), "words": step.words, "code": step.code }));
    let steps: Vec<Value> = steps.collect();
    let trusted = way
        .authority
        .map(|file| json!({ "file": file, "sha256": way.fingerprint }));
    let object = json!({
        "client": snippet.client, "title": snippet.title, "place": snippet.place, "steps": steps,
        "url": way.url, "agent": way.agent, "authority": trusted,
    });
    match object {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn as_text(snippet: &Snippet) -> ClientConfigOutput {
    let mut parts = Vec::new();
    let mut words = format!("{}\n", snippet.title);
    for (number, step) in (1_usize..).zip(&snippet.steps) {
        words += &numbered(number, step);
        if step.kind == StepKind::Paste {
            parts.push(OutputPart::Words(std::mem::take(&mut words)));
            parts.push(OutputPart::Text(snippet.text.clone()));
        }
        words += &indented(step);
    }
    parts.push(OutputPart::Words(words));
    ClientConfigOutput { parts }
}

fn numbered(number: usize, step: &SetupStep) -> String {
    ["\n", &number.to_string(), ". ", &step.words, "\n"].concat()
}

fn indented(step: &SetupStep) -> String {
    let lines = step.code.lines();
    lines.map(|line| ["   ", line, "\n"].concat()).collect()
}
