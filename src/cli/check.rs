//! `gatewren check`: checks the settings and reports what to fix.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::check_host::Findings;
use gatewren_base::config::{Problem, ResolvedSetting, SETTINGS_FILE, Settings};

/// Exit code: the server would not start. 1 means that the check could not print its findings.
const BAD_SETTINGS: u8 = 2;

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The settings file; conf.d beside it is read too
    #[arg(long, value_name = "FILE", default_value = SETTINGS_FILE)]
    config: PathBuf,

    /// Also check this helper policy [default: /etc/gatewren/helper.toml, with the settings beside it]
    #[arg(long, value_name = "FILE")]
    helper: Option<PathBuf>,

    /// Print every key with its value and the file and line that set it
    #[arg(long)]
    resolved: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Exits with 0 if everything is valid, also with warnings, and with 2 if something must be fixed. Writes
/// nothing.
pub fn run(args: &CheckArgs) -> ExitCode {
    let (found, settings) = look(args);
    let written = if args.json {
        writeln!(io::stdout(), "{}", as_json(&found, &settings))
    } else {
        print_findings(&found, args.resolved.then_some(settings.as_slice()))
    };
    match (written, found.problems.is_empty()) {
        (Err(_), _) => ExitCode::FAILURE,
        (Ok(()), true) => ExitCode::SUCCESS,
        (Ok(()), false) => ExitCode::from(BAD_SETTINGS),
    }
}

fn look(args: &CheckArgs) -> (Findings, Vec<ResolvedSetting>) {
    let (mut found, resolved) = match Settings::resolve(&args.config) {
        Ok((settings, resolved)) => (Findings::of(&settings, &args.config), resolved),
        Err(error) => {
            let problems = error.problems().to_vec();
            let found = Findings {
                problems,
                ..Findings::default()
            };
            (found, Vec::new())
        }
    };
    found.helper(args.helper.as_deref(), &args.config);
    (found, resolved)
}

fn print_findings(found: &Findings, resolved: Option<&[ResolvedSetting]>) -> io::Result<()> {
    for problem in &found.problems {
        writeln!(io::stderr(), "{problem}")?;
    }
    for warning in &found.warnings {
        writeln!(io::stderr(), "warning: {warning}")?;
    }
    for key in resolved.unwrap_or_default() {
        let place = match &key.place {
            Some((file, line)) => format!("{}:{line}", file.display()),
            None => "default".to_owned(),
        };
        writeln!(io::stdout(), "{} = {}  # {place}", key.key, key.value)?;
    }
    if found.problems.is_empty() && resolved.is_none() {
        writeln!(io::stdout(), "the settings are valid")?;
    }
    Ok(())
}

fn as_json(found: &Findings, resolved: &[ResolvedSetting]) -> Value {
    let listed = |problems: &[Problem]| -> Vec<Value> {
        let listed = problems.iter().map(|problem| {
            json!({ "file": problem.file, "line": problem.line, "message": problem.message })
        });
        listed.collect()
    };
    let settings = resolved.iter().map(|key| {
        let (file, line) = key.place.clone().unzip();
        json!({
            "key": key.key, "value": value(&key.value), "file": file, "line": line,
            "needs_restart": key.needs_restart,
        })
    });
    json!({
        "ok": found.problems.is_empty(),
        "problems": listed(&found.problems),
        "warnings": listed(&found.warnings),
        "settings": settings.collect::<Vec<_>>(),
    })
}

/// A TOML value as JSON; every kind of TOML value has a JSON equivalent.
fn value(toml: &str) -> Value {
    let table: Option<toml::Table> = toml::from_str(&format!("value = {toml}")).ok();
    let value = table.and_then(|mut table| table.remove("value"));
    serde_json::to_value(value).unwrap_or_default()
}
