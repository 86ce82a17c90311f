//! `gatewren describe`: prints the reference from the tables that the program itself uses.

use std::process::ExitCode;

use super::console::output::conclude;
use super::reference;
use gatewren_base::config::{helper_sample, settings_sample};
use gatewren_server::app::tables;
use gatewren_wire::registry::Catalog;

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub struct DescribeArgs {
    /// `settings` for gatewren.toml and `helper` for helper.toml, as files; `tools` and `resources` for
    /// everything that gatewren can offer on any host
    what: DescribeSubcommand,

    /// Print JSON; for tools and resources only
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum DescribeSubcommand {
    /// The settings of the front.
    Settings,
    /// The policy of the root helper.
    Helper,
    /// The tools, with their arguments and results.
    Tools,
    /// The resources.
    Resources,
}

/// Prints the reference.
pub fn run(args: &DescribeArgs) -> ExitCode {
    conclude(text(args).map(|text| text.trim_end().to_owned()))
}

fn text(args: &DescribeArgs) -> Result<String, String> {
    let offered = || tables().map_err(|error| error.to_string());
    let json = |value: serde_json::Value| format!("{value:#}");
    match (args.what, args.json) {
        (DescribeSubcommand::Settings, false) => Ok(settings_sample()),
        (DescribeSubcommand::Helper, false) => Ok(helper_sample()),
        (DescribeSubcommand::Settings | DescribeSubcommand::Helper, true) => {
            Err("a settings file is TOML; omit --json".to_owned())
        }
        (DescribeSubcommand::Tools, false) => Ok(reference::tools(&offered()?)),
        (DescribeSubcommand::Tools, true) => Ok(json(reference::tools_json(&offered()?))),
        (DescribeSubcommand::Resources, false) => Ok(reference::resources_text(&offered()?)),
        (DescribeSubcommand::Resources, true) => Ok(json(resources_json(&offered()?))),
    }
}

fn resources_json(catalog: &Catalog) -> serde_json::Value {
    let all = reference::resources(catalog).into_iter();
    let all =
        all.map(|(uri, description)| serde_json::json!({ "uri": uri, "description": description }));
    all.collect()
}
