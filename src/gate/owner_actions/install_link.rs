//! Links and commands that add the server to a client without a file being edited.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::clients::InstallLink;
use super::setup_step::{SetupStep, StepKind};

/// Returns the steps that a person can take instead of pasting `text`.
pub(super) fn install_steps(link: InstallLink, title: &str, text: &str) -> Vec<SetupStep> {
    let Ok(Value::Object(file)) = serde_json::from_str::<Value>(text) else {
        return Vec::new();
    };
    let entry = file.values().find_map(|servers| servers.get("gatewren"));
    let Some(Value::Object(entry)) = entry else {
        return Vec::new();
    };
    let instead = format!("Or open this link instead; {title} then asks whether to add gatewren");
    match link {
        InstallLink::Base64(start) => {
            let config = STANDARD.encode(Value::from(entry.clone()).to_string());
            let link = format!("{start}{}", percent_encoded(&config));
            vec![SetupStep::new(StepKind::Link, &instead, link)]
        }
        InstallLink::VsCode => {
            let config = with_name(&file, entry).to_string();
            let link = format!("vscode:mcp/install?{}", percent_encoded(&config));
            let command = format!("code --add-mcp '{}'", config.replace('\'', r"'\''"));
            vec![
                SetupStep::new(StepKind::Link, &instead, link),
                SetupStep::new(StepKind::Prepare, "Or run in a terminal instead", command),
            ]
        }
    }
}

/// The server as VS Code wants it from outside: with its name, and with the questions that its file has beside it.
fn with_name(file: &Map<String, Value>, entry: &Map<String, Value>) -> Value {
    let mut config = entry.clone();
    config.insert("name".to_owned(), Value::from("gatewren"));
    if let Some(inputs) = file.get("inputs") {
        config.insert("inputs".to_owned(), inputs.clone());
    }
    Value::Object(config)
}

/// Percent-encodes a text for a query; a blank becomes `%20`, which no reader takes for a plus.
fn percent_encoded(text: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    encoded.replace('+', "%20")
}
