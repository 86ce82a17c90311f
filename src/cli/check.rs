//! `gatewren check`: are the settings good, and if not, what is to be mended?

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::config::{ConfigError, HelperPolicy, Problem, SETTINGS_FILE, Settings, TlsMode};
use crate::http::{Tls, TlsSource};

/// What a start would refuse; 1 is for a check that could not say what it found.
const BAD_SETTINGS: u8 = 2;

/// Say whether the settings are good, and what to mend.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The settings file; conf.d beside it is read too
    #[arg(long, value_name = "FILE", default_value = SETTINGS_FILE)]
    config: PathBuf,

    /// Check this policy of the helper as well
    #[arg(long, value_name = "FILE")]
    helper: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Exits with 0 if everything is good, with 2 if something is to be mended.
pub fn run(args: &Args) -> ExitCode {
    let problems = problems(args);
    let written = if args.json {
        writeln!(io::stdout(), "{}", as_json(&problems))
    } else if problems.is_empty() {
        writeln!(io::stdout(), "the settings are good")
    } else {
        problems
            .iter()
            .try_for_each(|problem| writeln!(io::stderr(), "{problem}"))
    };
    match (written, problems.is_empty()) {
        (Err(_), _) => ExitCode::FAILURE,
        (Ok(()), true) => ExitCode::SUCCESS,
        (Ok(()), false) => ExitCode::from(BAD_SETTINGS),
    }
}

fn problems(args: &Args) -> Vec<Problem> {
    let mut problems = match Settings::load(&args.config) {
        Ok(settings) => certificate_problem(&args.config, settings)
            .into_iter()
            .collect(),
        Err(error) => listed(&error),
    };
    if let Some(Err(error)) = args.helper.as_deref().map(HelperPolicy::load) {
        problems.extend(listed(&error));
    }
    problems
}

fn listed(error: &ConfigError) -> Vec<Problem> {
    error.problems().to_vec()
}

/// What is wrong with a certificate of the owner's own; ours is made at the start.
fn certificate_problem(config: &Path, settings: Settings) -> Option<Problem> {
    let (TlsMode::Files, Some(cert), Some(key)) =
        (settings.tls.mode, settings.tls.cert, settings.tls.key)
    else {
        return None;
    };
    let error = Tls::load(TlsSource::Files { cert, key }).err()?;
    Some(Problem {
        file: config.to_owned(),
        line: None,
        message: error.to_string(),
    })
}

fn as_json(problems: &[Problem]) -> Value {
    let listed = problems.iter().map(
        |problem| json!({ "file": problem.file, "line": problem.line, "message": problem.message }),
    );
    json!({ "ok": problems.is_empty(), "problems": listed.collect::<Vec<_>>() })
}
