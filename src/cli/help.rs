//! The texts at the end of a command's help, as clap needs them: one line for each paragraph.

use clap::Command;

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
