//! The examples at the end of the help of second-level commands.

use clap::Command;

/// Commands, each with lines that a person can type.
#[rustfmt::skip]
const EXAMPLES: [(&str, &[&str]); 38] = [
    ("agent add", &["laptop --policy observe", "claude --policy operate --space media --expires 30d"]),
    ("agent list", &["", "--json"]),
    ("agent show", &["claude"]),
    ("agent edit", &["claude --policy operate", "claude --mode execute=deny --tool container_restart=allow"]),
    ("agent revoke", &["laptop"]),
    ("agent rotate", &["laptop"]),
    ("owner setup", &["", "--dir ~/.local/state/gatewren-try"]),
    ("owner sign-out", &["--all"]),
    ("inbox list", &["", "--agent claude"]),
    ("inbox show", &["chg_4f1c", "--all-of claude"]),
    ("inbox approve", &["chg_4f1c", "chg_4f1c --wait", "chg_4f1c --grant 4h"]),
    ("inbox reject", &["chg_4f1c --note later", "--all-of claude"]),
    ("inbox grant", &["claude container_restart --target jellyfin --for 4h"]),
    ("inbox ungrant", &["grant_4f1c"]),
    ("audit list", &["--agent claude --outcome failed", "--tool container_restart --since 2d"]),
    ("audit show", &["1204", "1204 --exact"]),
    ("audit verify", &["", "--anchors helper.json"]),
    ("audit export", &["", "--after 1204"]),
    ("job list", &["--running"]),
    ("job get", &["job_4f1c"]),
    ("job wait", &["job_4f1c --timeout 600"]),
    ("job output", &["job_4f1c --follow"]),
    ("job cancel", &["job_4f1c"]),
    ("schedule run", &["nightly-backup"]),
    ("backup list", &["--container jellyfin"]),
    ("backup create", &["nas jellyfin --keep daily=7", "nas --path /srv/photos"]),
    ("backup verify", &["nas jellyfin@2026-11-24T01-13-40Z"]),
    ("backup restore", &["nas jellyfin@2026-11-24T01-13-40Z jellyfin-2"]),
    ("backup delete", &["nas jellyfin@2026-11-24T01-13-40Z"]),
    ("session notify", &["--agent claude --params '{\"level\":\"warning\",\"data\":\"disk-full\"}'", "--all --method notifications/tools/list_changed"]),
    ("notify test", &["", "phone"]),
    ("cert show", &["", "--json"]),
    ("cert trust", &["macos", "--form pem", "--install"]),
    ("cert install", &["--cert fullchain.pem --key privkey.pem", "--hook"]),
    ("state get", &["/public/packageData"]),
    ("state watch", &["/public/packageData"]),
    ("state log", &["/public/packageData --limit 5"]),
    ("state blame", &["/public/packageData/jellyfin"]),
];

/// Puts the examples behind the help of their commands.
pub fn with_examples(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (path, lines)| {
        let Some((outer, inner)) = path.split_once(' ') else {
            return command;
        };
        let lines = lines.iter();
        let lines = lines.map(|words| format!("\n  {}", format!("gatewren {path} {words}").trim()));
        let text = format!("Examples:{}", lines.collect::<String>());
        command.mut_subcommand(outer, |outer| {
            outer.mut_subcommand(inner, |inner| inner.after_help(text))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn each_example_is_a_command_line_that_is_accepted() {
        for (path, lines) in EXAMPLES {
            for words in lines {
                let line = format!("gatewren {path} {words}");
                let parsed = Cli::command().try_get_matches_from(line.split_whitespace());
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
