//! The help of each command: broken once, at the width of the terminal.

use std::process::Command;

/// The width where standard output is no terminal.
const WIDTH: usize = 100;

fn help(words: &[String]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let output = command.args(words).arg("--help").output().unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the subcommands that a help lists: below "Commands:", or in the groups of the program's own help.
fn subcommands(help: &str) -> Vec<String> {
    let is_whole = help.contains("\nGet started:\n");
    let begin = if is_whole {
        "Get started:"
    } else {
        "Commands:"
    };
    let end = if is_whole { "Options:" } else { "" };
    let lines = help.lines().skip_while(|line| *line != begin).skip(1);
    let lines = lines.take_while(|line| *line != end);
    let named = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let words = named.filter_map(|line| line.split_whitespace().next());
    words
        .filter(|word| *word != "help")
        .map(str::to_owned)
        .collect()
}

/// Asserts that no line of prose ends before the width if the next line's first word had room.
fn is_broken_once(words: &[String], help: &str) {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
    for (line, next) in help.lines().zip(help.lines().skip(1)) {
        if is_prose(line) && is_prose(next) {
            let word = next.split(' ').next().unwrap();
            let room = WIDTH - line.chars().count().min(WIDTH);
            assert!(
                room < word.chars().count() + 1,
                "{words:?}: {line:?} / {next:?}"
            );
        }
    }
}

#[test]
fn no_text_is_broken_twice() {
    let mut waiting: Vec<Vec<String>> = vec![Vec::new()];
    let mut seen = 0;
    while let Some(words) = waiting.pop() {
        let help = help(&words);
        is_broken_once(&words, &help);
        seen += 1;
        for word in subcommands(&help) {
            waiting.push([words.clone(), vec![word]].concat());
        }
    }
    assert!(seen > 60, "{seen} commands");
}

#[test]
fn the_first_help_has_the_commands_in_groups_on_80_columns() {
    let help = help(&[]);
    let groups = [
        "Get started:",
        "Let clients in:",
        "Decide and watch:",
        "Set up:",
    ];
    let places = groups.map(|group| {
        help.find(group)
            .unwrap_or_else(|| panic!("{group}: {help}"))
    });
    assert!(places.is_sorted(), "{help}");
    assert!(
        help.lines().all(|line| line.chars().count() <= 80),
        "{help}"
    );
    let approve = self::help(&["inbox", "approve"].map(str::to_owned));
    assert!(
        approve.contains("\n  gatewren inbox approve chg_"),
        "{approve}"
    );
}
