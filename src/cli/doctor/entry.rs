//! The arguments of `gatewren doctor`, and the order of its checks.

use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::super::check_host::Findings;
use super::super::console::listener::LocalServer;
use super::super::console::output::fail;
use super::super::console::progress::Progress;
use super::super::console::runtime;
use super::super::console::target::InstanceArgs;
use super::super::job::helper_of;
use super::finding::{Finding, FindingState};
use super::{
    agents, backups, call, certificate, container, fronts, helper_policy, machine, reach, runtimes,
    schedules, service, stores, watches, workers,
};
use gatewren_base::config::Settings;
use gatewren_base::sys::{Requester, now_ms};
use gatewren_host::helper_client::HelperClient;
use gatewren_store::vault::{DoctorFinding, DoctorReport};

/// Exit code: something needs attention.
const WARNINGS: u8 = 1;

/// Exit code: something does not work.
const PROBLEMS: u8 = 2;

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    place: InstanceArgs,

    /// The server's address, if it differs from the settings or systemd's socket
    #[arg(long, value_name = "ADDRESS:PORT")]
    address: Option<SocketAddr>,

    /// Skip the self-tests: the command in a container of each runtime that is killed, and the call with a temporary token
    #[arg(long)]
    no_self_test: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &DoctorArgs) -> ExitCode {
    // Invalid settings are a finding.
    if let Ok(settings) = args.place.settings()
        && let Err(words) = args.place.require_access(&settings)
    {
        fail(&words);
        return ExitCode::from(PROBLEMS);
    }
    let runtime = match runtime::build() {
        Ok(runtime) => runtime,
        Err(cause) => return fail(&cause),
    };
    let mut report = Report {
        json: args.json,
        found: Vec::new(),
    };
    runtime.block_on(look(args, &mut report));
    report.end()
}

async fn look(args: &DoctorArgs, report: &mut Report) {
    let settings = match args.place.settings() {
        Ok(settings) => settings,
        Err(words) => {
            let first = words.lines().next().unwrap_or_default().to_owned();
            report.report_finding(Finding::problem("settings", first, "gatewren check"));
            return check_helper_policy(args, report);
        }
    };
    let settings = Settings {
        state_dir: args.place.directory(&settings),
        ..settings
    };
    check_settings(args, &settings, report);
    check_helper_policy(args, report);
    if !args.place.is_a_directory() {
        report.report_all(service::look().await);
    }
    report.report_finding(certificate::look(&settings));
    report.report_all(machine::look(&settings));
    let server = LocalServer::of(&settings, args.address, !args.place.is_a_directory()).await;
    let answers = reach::answers(&server).await;
    let up = answers.state == FindingState::Good;
    report.report_finding(answers);
    report.report_all(fronts::look(&settings).await);
    let mut way = None;
    if up {
        let (found, at) = reach::look(&server, &settings).await;
        report.report_all(found);
        way = Some((&server, at.unwrap_or_else(|| server.near.ip())));
    }
    check_as_service(args, &settings, way, report).await;
}

fn check_settings(args: &DoctorArgs, settings: &Settings, report: &mut Report) {
    let found = Findings::of(settings, &args.place.file_of_settings());
    let remedy = "gatewren check";
    let has_no_findings = found.problems.is_empty() && found.warnings.is_empty();
    for problem in &found.problems {
        report.report_finding(Finding::problem("settings", problem.to_string(), remedy));
    }
    for warning in &found.warnings {
        report.report_finding(Finding::warning("settings", warning.to_string(), remedy));
    }
    if has_no_findings {
        report.report_finding(Finding::good(
            "settings",
            "the settings and the certificate are valid",
        ));
    }
}

/// Checks the policy beside the settings. A directory of `try` has none.
fn check_helper_policy(args: &DoctorArgs, report: &mut Report) {
    if !args.place.is_a_directory() {
        let file = args.place.file_of_settings().with_file_name("helper.toml");
        report.report_all(helper_policy::look(&file).into_iter().collect());
    }
}

/// Checks that run as the server's user, which the helper accepts. They come last because root privileges are
/// dropped for them.
async fn check_as_service(
    args: &DoctorArgs,
    settings: &Settings,
    way: Option<(&LocalServer, IpAddr)>,
    report: &mut Report,
) {
    let file = match args.place.file("vault.db") {
        Ok(file) => file,
        Err(words) => {
            return report.report_finding(Finding::problem(
                "vault",
                words,
                "systemctl start gatewren",
            ));
        }
    };
    let vault = match args.place.vault() {
        Ok(vault) => vault,
        Err(words) => {
            return report.report_finding(Finding::problem(
                "vault",
                words,
                "run this as root: sudo gatewren doctor",
            ));
        }
    };
    report.report_all(stores::look(&file));
    report.report_all(agents::look(&vault, &settings.spaces));
    report.report_finding(schedules::look(&vault));
    report.report_all(watches::look(&vault));
    report.report_all(workers::look(&args.place, settings).into_iter().collect());
    match helper_of(&args.place, settings, &file) {
        Ok((socket, _open)) => {
            let helper = HelperClient::connect_to(socket).on_behalf_of(Requester::Owner);
            let (found, containers) = runtimes::look(&helper).await;
            report.report_all(found);
            if !args.no_self_test {
                let progress = Progress::begin("starting and killing a command in a container");
                let found = container::look(&helper, &containers).await;
                drop(progress);
                report.report_all(found);
            }
            let agents = vault.agents().list().unwrap_or_default();
            let first = agents.iter().map(|agent| agent.created_ms).min();
            report.report_finding(backups::look(&helper, first).await);
        }
        Err(words) => report.report_finding(Finding::problem(
            "helper",
            words,
            "systemctl start gatewren-helper.socket",
        )),
    }
    if let (Some((server, at)), false) = (way, args.no_self_test) {
        report.report_finding(call::look(server, &vault, at).await);
    }
    // For the owner's page. A vault that cannot be written was found above, and nothing here depends on it.
    let _ = vault.doctor_report().keep(report.for_the_page()).await;
}

/// The findings; text is printed as they are found, because some checks take a while.
struct Report {
    json: bool,
    found: Vec<Finding>,
}

impl Report {
    fn report_finding(&mut self, finding: Finding) {
        if !self.json {
            // The reader may have closed the pipe; the exit code still has the result.
            let _ = writeln!(io::stdout(), "{}", finding.line());
        }
        self.found.push(finding);
    }

    fn report_all(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            self.report_finding(finding);
        }
    }

    /// What needs attention, which the owner's page shows until the next run.
    fn for_the_page(&self) -> DoctorReport {
        let needs = |one: &&Finding| one.state >= FindingState::Warning;
        let kept = |one: &Finding| DoctorFinding {
            is_problem: one.state == FindingState::Problem,
            seen: one.seen.clone(),
            remedy: one.remedy.clone(),
        };
        DoctorReport {
            at_ms: now_ms(),
            findings: self.found.iter().filter(needs).map(kept).collect(),
        }
    }

    fn end(self) -> ExitCode {
        let count = |state| self.found.iter().filter(|one| one.state == state).count();
        let (problems, warnings) = (count(FindingState::Problem), count(FindingState::Warning));
        let skipped = count(FindingState::Skipped);
        let report = if self.json {
            let found: Vec<Value> = self.found.iter().map(Finding::json).collect();
            let ok = problems == 0 && warnings == 0;
            json!({ "ok": ok, "problems": problems, "warnings": warnings, "skipped": skipped, "findings": found })
                .to_string()
        } else {
            let later = match count(FindingState::Later) {
                0 => String::new(),
                some => format!("{some} later, "),
            };
            format!(
                "\n{problems} problems, {warnings} warnings, {later}{skipped} skipped, {} ok",
                count(FindingState::Good)
            )
        };
        let written = writeln!(io::stdout(), "{report}").is_ok();
        match (problems, warnings) {
            (0, 0) if written => ExitCode::SUCCESS,
            (0, _) => ExitCode::from(WARNINGS),
            _ => ExitCode::from(PROBLEMS),
        }
    }
}
