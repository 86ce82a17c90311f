//! `gatewren __manual`: prints a manual page with the parts that come from the program's tables: the list of commands
//! in gatewren(1), every command with its options in the page of its group, every key in the pages of the settings
//! files, every tool and resource in gatewren-tools(7). The package build calls it; it is not for users.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, Command};

use super::console::output::{conclude, fail};
use super::reference::{self, ReferenceField};
use super::tool_table;
use gatewren_base::config::{helper_sample, settings_sample};
use gatewren_server::app::tables;
use gatewren_wire::registry::Catalog;

/// The name of the hidden subcommand.
pub const NAME: &str = "__manual";

/// The line of a page that the table replaces.
const MARK: &str = ".\\\" The package build puts the table here: gatewren __manual\n";

/// The maximum width of a line of source.
const WIDTH: usize = 78;

/// A page of section 1.
struct Page {
    /// Its name, without the section.
    name: &'static str,
    /// The commands that it describes, in the order of the page.
    commands: &'static [&'static str],
}

/// The pages of the commands, in the order of the list in gatewren(1).
#[rustfmt::skip]
const PAGES: &[Page] = &[
    Page {
        name: "gatewren-serve",
        commands: &["try", "init", "serve", "helper", "check", "status", "doctor", "describe", "completions"],
    },
    Page { name: "gatewren-agent", commands: &["agent", "pair", "owner"] },
    Page { name: "gatewren-client", commands: &["client-config", "bridge", "mdns"] },
    Page { name: "gatewren-inbox", commands: &["inbox"] },
    Page { name: "gatewren-job", commands: &["job"] },
    Page { name: "gatewren-schedule", commands: &["schedule"] },
    Page { name: "gatewren-backup", commands: &["backup"] },
    Page { name: "gatewren-audit", commands: &["audit", "top"] },
    Page { name: "gatewren-notify", commands: &["notify", "watch", "session", "metrics"] },
    Page { name: "gatewren-cert", commands: &["cert"] },
    Page { name: "gatewren-state", commands: &["state"] },
];

/// Prints the page in the file that the second argument names; `root` is the program's table of commands.
pub fn run(mut root: Command) -> ExitCode {
    // Gives each command the options that all commands share.
    root.build();
    let Some(path) = std::env::args_os().nth(2) else {
        return fail(&format_args!("{NAME} needs the file of a manual page"));
    };
    let path = Path::new(&path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let source = fs::read_to_string(path).map_err(|cause| cause.to_string());
    let page = source.and_then(|source| complete(&name, &source, &root));
    let page = page.map(|page| page.trim_end().to_owned());
    conclude(page.map_err(|why| format!("{}: {why}", path.display())))
}

/// Returns the page with its table in the place of the mark.
fn complete(name: &str, source: &str, root: &Command) -> Result<String, String> {
    match (source.split_once(MARK), table_of(name, root)?) {
        (Some((before, after)), Some(table)) => Ok([before, &table, after].concat()),
        (None, None) => Ok(source.to_owned()),
        (Some(_), None) => Err("the page has a place for a table, but there is none for it".into()),
        (None, Some(_)) => Err("the page has no place for its table".into()),
    }
}

/// Returns the table of a page, if it has one.
fn table_of(name: &str, root: &Command) -> Result<Option<String>, String> {
    Ok(Some(match name {
        "gatewren.1" => overview(root),
        "gatewren.toml.5" => keys(&settings_sample()),
        "helper.toml.5" => keys(&helper_sample()),
        "gatewren-tools.7" => tools()?,
        _ => {
            let mut pages = PAGES.iter();
            let page = pages.find(|page| name.strip_suffix(".1") == Some(page.name));
            let Some(page) = page else { return Ok(None) };
            let commands = page.commands.iter();
            let commands = commands.filter_map(|name| root.find_subcommand(name));
            commands.map(section).collect()
        }
    }))
}

/// The pages, each with its commands and their first sentences.
fn overview(root: &Command) -> String {
    list(PAGES.iter().map(|page| {
        let commands = page.commands.iter().map(|name| {
            let command = root.find_subcommand(name);
            let words = command.and_then(Command::get_about);
            let words = words.map(ToString::to_string).unwrap_or_default();
            format!(".It Ic {}\n{}", escape_words(name), prose(&words))
        });
        let commands: String = commands.collect();
        format!(
            ".It Xr {} 1\n.Bl -tag -width client-config -compact\n{commands}.El\n",
            page.name
        )
    }))
}

/// The tools by toolset, then the resources.
fn tools() -> Result<String, String> {
    let catalog = tables().map_err(|cause| cause.to_string())?;
    let mut text = ".Sh TOOLS\n".to_owned();
    for (toolset, tools) in reference::toolsets(&catalog) {
        let _ = writeln!(text, ".Ss {}", escape_words(toolset));
        text.push_str(&list(tools.iter().map(|tool| {
            let words = prose(&tool.definition().description);
            let remarks = prose(&sentence(&reference::remarks(tool)));
            let members = [
                ("Arguments:", reference::arguments(tool)),
                ("Result:", outer(reference::answer(tool))),
            ];
            let members = members
                .into_iter()
                .filter(|(_, members)| !members.is_empty());
            let members = members.map(|(title, members)| {
                format!(".Pp\n{title}\n{}", list(members.iter().map(member)))
            });
            let members: String = members.collect();
            format!(".It Ic {}\n{words}.Pp\n{remarks}{members}", tool.name())
        })));
    }
    text.push_str(&figures(&catalog));
    text.push_str(".Sh RESOURCES\n");
    let resources = reference::resources(&catalog).into_iter();
    Ok(text
        + &list(
            resources
                .map(|(uri, words)| format!(".It Li {}\n{}", escape_words(&uri), prose(&words))),
        ))
}

/// The table of the tools' figures.
fn figures(catalog: &Catalog) -> String {
    let line = |columns: &[String]| {
        let columns: Vec<String> = columns.iter().map(|words| escape_words(words)).collect();
        format!(".It {}\n", columns.join(" Ta "))
    };
    let legend: Vec<String> = tool_table::legend().iter().map(|p| prose(p)).collect();
    let rows: String = tool_table::rows(catalog)
        .iter()
        .map(|row| line(row))
        .collect();
    format!(
        ".Sh FIGURES\n{}.Bl -column container_snapshot_restore disrupt 40000 12345 none\n{}{rows}.El\n",
        legend.join(".Pp\n"),
        line(&tool_table::COLUMNS.map(str::to_owned))
    )
}

/// The top-level members of a result; `gatewren describe tools` has the nested ones too.
fn outer(members: Vec<ReferenceField>) -> Vec<ReferenceField> {
    let inner = |member: &ReferenceField| member.name.contains(['.', '[']);
    members
        .into_iter()
        .filter(|member| !inner(member))
        .collect()
}

fn member(member: &ReferenceField) -> String {
    let words = if member.words.is_empty() {
        String::new()
    } else {
        prose(&member.words)
    };
    format!(
        ".It Li {}\n{}{words}",
        member.name,
        prose(&sentence(&member.kind))
    )
}

/// The text with a capital first letter.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// One command: its options, and those of each of its subcommands.
fn section(command: &Command) -> String {
    let mut text = format!(".Ss gatewren {}\n", command.get_name());
    if !command.has_subcommands() {
        let _ = write!(text, ".Nm gatewren {}\n.Pp\n", synopsis(command));
    }
    text.push_str(&about(command));
    text.push_str(&list(arguments(command, false)));
    let inner = command.get_subcommands();
    let inner = inner.filter(|inner| inner.get_name() != "help");
    let entries = inner.map(|inner| {
        let words = about(inner) + &list(arguments(inner, true));
        format!(
            ".It Nm gatewren {} {}\n{words}",
            command.get_name(),
            synopsis(inner)
        )
    });
    text.push_str(&list(entries));
    if let Some(more) = command.get_after_help() {
        let _ = write!(text, ".Bd -literal\n{}\n.Ed\n", literal(&more.to_string()));
    }
    text
}

fn about(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    prose(&about.map(ToString::to_string).unwrap_or_default())
}

/// The command's name and required arguments, and whether it has options.
fn synopsis(command: &Command) -> String {
    let mut text = command.get_name().to_owned();
    let options = visible_arguments(command, true).any(|arg| !arg.is_positional());
    if options {
        text.push_str(" Oo Ar options Oc");
    }
    for arg in command.get_positionals() {
        let values = values(arg);
        let _ = if arg.is_required_set() {
            write!(text, " Ar {values}")
        } else {
            write!(text, " Oo Ar {values} Oc")
        };
    }
    text
}

/// The arguments to explain: those of the command itself, once.
fn visible_arguments(command: &Command, inner: bool) -> impl Iterator<Item = &Arg> {
    let of_all = ["help", "version"];
    command.get_arguments().filter(move |arg| {
        let id = arg.get_id().as_str();
        let is_elsewhere = of_all.contains(&id) || inner && arg.is_global_set();
        !(is_elsewhere || arg.is_hide_set())
    })
}

/// An entry for each argument.
fn arguments(command: &Command, inner: bool) -> Vec<String> {
    visible_arguments(command, inner).map(argument).collect()
}

fn argument(arg: &Arg) -> String {
    let mut text = ".It".to_owned();
    if let Some(long) = arg.get_long() {
        let _ = write!(text, " Fl -{long}");
    }
    if arg.get_action().takes_values() {
        let _ = write!(text, " Ar {}", values(arg));
    }
    text.push('\n');
    let help = arg.get_long_help().or(arg.get_help());
    text.push_str(&prose(&help.map(ToString::to_string).unwrap_or_default()));
    let defaults: Vec<_> = arg.get_default_values().iter().collect();
    if let [value] = defaults[..]
        && arg.get_action().takes_values()
        && !value.is_empty()
    {
        let _ = write!(
            text,
            "The default is\n.Li {} .\n",
            escape_words(&value.to_string_lossy())
        );
    }
    text
}

fn values(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let names = names.iter().map(|name| escape_words(&name.to_lowercase()));
    let names = names.collect::<Vec<_>>().join(" ");
    let many = arg.get_num_args().is_some_and(|n| n.max_values() > 1);
    if many { names + " ..." } else { names }
}

/// The keys of a settings file, read from its sample: comments, then `#key = value`, below `[section]`.
fn keys(sample: &str) -> String {
    let mut text = ".Ss Top-level keys\n".to_owned();
    let (mut entries, mut words) = (Vec::new(), Vec::new());
    // The sample's introduction is written by hand in the pages.
    let sample = sample.split_once("\n\n").map_or("", |(_, sample)| sample);
    for line in sample.lines() {
        if let Some(section) = line.strip_prefix('[') {
            text.push_str(&list(std::mem::take(&mut entries)));
            let _ = writeln!(text, ".Ss [{section}");
        } else if let Some(comment) = line.strip_prefix("# ") {
            words.push(comment);
        } else if let Some(key) = line.strip_prefix('#') {
            let help = prose(&words.join("\n"));
            entries.push(format!(".It Li {}\n{help}", escape_words(key)));
            words.clear();
        }
    }
    // Text below no key is an example, which is written by hand in the pages too.
    text + &list(entries)
}

/// A list of entries that begin with `.It`; empty if there are none.
fn list(entries: impl IntoIterator<Item = String>) -> String {
    let entries: String = entries.into_iter().collect();
    if entries.is_empty() {
        return entries;
    }
    format!(".Bl -tag -width 4n\n{entries}.El\n")
}

/// Text as lines of source: each sentence on separate lines, with a full stop at the end.
fn prose(words: &str) -> String {
    let mut text = String::new();
    for paragraph in words.trim().split("\n\n") {
        if !text.is_empty() {
            text.push_str(".Pp\n");
        }
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        // An ellipsis does not end a sentence.
        let words = words.replace("...", "\u{2026}");
        let end = if words.ends_with(['.', ':']) { "" } else { "." };
        for sentence in (words + end).replace(". ", ".\n").lines() {
            text.push_str(&wrap_sentence(&escape_words(sentence)));
        }
    }
    text
}

fn wrap_sentence(sentence: &str) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in sentence.split(' ') {
        if column > 0 && column + 1 + word.len() > WIDTH {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        // mdoc reads a dot or quote in the first column as a command.
        if column == 0 && word.starts_with(['.', '\'']) {
            text.push_str("\\&");
        }
        text.push_str(word);
        column += word.len();
    }
    text.push('\n');
    text
}

/// A literal block, line by line.
fn literal(words: &str) -> String {
    let lines = words.lines().map(|line| {
        let guard = if line.starts_with(['.', '\'']) {
            "\\&"
        } else {
            ""
        };
        format!("{guard}{}", escape_words(line))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Escapes characters that are special in mdoc(7), or that it would print as others.
fn escape_words(words: &str) -> String {
    let special = [
        ('\\', "\\e"),
        ('"', "\\(dq"),
        ('\'', "\\(aq"),
        ('`', "\\(ga"),
        ('^', "\\(ha"),
        ('~', "\\(ti"),
        ('-', "\\-"),
        ('\u{2026}', "..."),
    ];
    let mut text = String::with_capacity(words.len());
    for letter in words.chars() {
        match special.iter().find(|(plain, _)| *plain == letter) {
            Some((_, escape)) => text.push_str(escape),
            None => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::entry::Cli;
    use super::*;

    /// Commands that no package has.
    const NOT_INSTALLED: [&str; 2] = ["everything", "help"];

    fn program() -> Command {
        let mut root = Cli::command();
        root.build();
        root
    }

    #[test]
    fn every_command_is_in_one_page() {
        let listed: Vec<&str> = PAGES
            .iter()
            .flat_map(|page| page.commands)
            .copied()
            .collect();
        let root = program();
        for command in root.get_subcommands() {
            let name = command.get_name();
            let count = listed.iter().filter(|listed| **listed == name).count();
            let expected = usize::from(!NOT_INSTALLED.contains(&name));
            assert_eq!(
                count, expected,
                "the number of pages in PAGES with `{name}`"
            );
        }
        for name in listed {
            assert!(root.find_subcommand(name).is_some(), "`{name}` in PAGES");
        }
    }

    #[test]
    fn each_table_has_its_place_in_a_page() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/man");
        let root = program();
        let mut tables = 0;
        for page in fs::read_dir(&folder).unwrap() {
            let path = page.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            let source = fs::read_to_string(&path).unwrap();
            let page =
                complete(&name, &source, &root).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert!(!page.contains(MARK), "{name}");
            tables += usize::from(page != source);
        }
        assert_eq!(tables, PAGES.len() + 4);
        let tools = table_of("gatewren-tools.7", &root).unwrap().unwrap();
        assert!(tools.contains(".It Ic container_shell\n"));
        assert!(tools.contains(".It container_stop Ta disrupt Ta "));
        let settings = table_of("gatewren.toml.5", &root).unwrap().unwrap();
        assert!(settings.contains(".It Li listen = "), "{settings:.2000}");
    }

    #[test]
    fn a_page_without_the_place_for_its_table_is_an_error() {
        let root = program();
        assert!(complete("gatewren.1", "text\n", &root).is_err());
        assert!(complete("gatewren.8", MARK, &root).is_err());
        assert_eq!(complete("gatewren.8", "text\n", &root).unwrap(), "text\n");
    }
}
