//! The help of the program with its commands in groups, and the texts at the end of each help, as clap needs them: one
//! line for each paragraph.

use std::fmt::Write as _;

use clap::Command;

/// The commands by what a person wants to do.
#[rustfmt::skip]
const GROUPS: [(&str, &[&str]); 6] = [
    ("Get started", &["try", "init", "doctor", "status"]),
    ("Let clients in", &["agent", "pair", "client-config", "bridge"]),
    ("Decide and watch", &["inbox", "top", "audit", "job", "schedule", "watch", "backup", "session", "owner"]),
    ("Set up", &["cert", "mdns", "notify", "metrics", "check", "describe"]),
    ("Run by systemd", &["serve", "helper"]),
    ("Other", &["state", "completions", "everything"]),
];

/// Puts the program's commands into groups; clap itself has only one list.
pub fn in_groups(command: Command) -> Command {
    let mut groups = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(groups, "{title}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            if let Some(about) = about {
                let _ = writeln!(groups, "  {name:<14} {about}");
            }
        }
        groups.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}"
    ))
}

/// Joins the lines of each paragraph in the help of a command and of its subcommands. The sources break them for
/// their readers; clap breaks them at the width of the terminal, and would break them twice.
pub fn with_whole_paragraphs(command: Command) -> Command {
    let end = command
        .get_after_help()
        .map(|text| whole_paragraphs(&text.to_string()));
    let command = match end {
        Some(text) => command.after_help(text),
        None => command,
    };
    command.mut_subcommands(with_whole_paragraphs)
}

/// A line continues the line before it, unless one of them is empty or indented, or the first is a heading, with a
/// colon at its end.
fn whole_paragraphs(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut is_open = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        if !whole.is_empty() {
            whole.push(if is_open && is_prose { ' ' } else { '\n' });
        }
        whole.push_str(line);
        is_open = is_prose && !line.ends_with(':');
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn each_command_is_in_one_group_and_on_one_line() {
        let help = in_groups(Cli::command()).render_help().to_string();
        for command in Cli::command().get_subcommands() {
            let line = format!("  {:<14} ", command.get_name());
            assert_eq!(help.matches(&line).count(), 1, "{line}: {help}");
        }
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn a_paragraph_becomes_a_line_and_examples_stay() {
        let text = "Examples:\n  gatewren a\n  gatewren b\n\nOne sentence that\nis broken. Another\none.\n\nEnd.\n  x";
        let whole = "Examples:\n  gatewren a\n  gatewren b\n\nOne sentence that is broken. Another one.\n\nEnd.\n  x";
        assert_eq!(whole_paragraphs(text), whole);
        assert_eq!(whole_paragraphs(""), "");
    }

    #[test]
    fn subcommands_have_it_too() {
        let inner = Command::new("inner").after_help("a\nb");
        let mut outer =
            with_whole_paragraphs(Command::new("outer").subcommand(inner).after_help("c\nd"));
        assert_eq!(outer.get_after_help().unwrap().to_string(), "c d");
        let inner = outer.find_subcommand_mut("inner").unwrap();
        assert_eq!(inner.get_after_help().unwrap().to_string(), "a b");
    }
}
