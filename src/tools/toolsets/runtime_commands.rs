//! Finds commands whose processes a container runtime starts, so that they outlive the call.

use gatewren_host::backends::Program;

/// The clients of container runtimes.
const CLIENTS: [&str; 5] = ["docker", "podman", "nerdctl", "ctr", "crictl"];

/// Their subcommands that start processes.
const STARTING: [&str; 2] = ["exec", "run"];

/// The note in the answer. Killing a runtime's client does not kill the processes that the runtime started for it.
const NOTE: &str = "processes that a container runtime starts for this command are not killed with the call, and may \
                    still run; container_shell on docker:NAME or podman:NAME kills what it starts";

/// Returns a note for the answer if a command has a container runtime start processes. It reads the words of the
/// command only: what a script does is not seen, and a word such as `docker` in a text may be taken for a command.
pub fn note_on_runtime(program: &Program) -> Option<&'static str> {
    let starts = match program {
        Program::Argv(argv) => has_runtime_start(argv.iter().map(String::as_str)),
        Program::Shell(line) => {
            let is_end = |c| matches!(c, ';' | '&' | '|' | '\n' | '(' | ')' | '`');
            line.split(is_end).any(|command| {
                let is_space = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '$');
                has_runtime_start(command.split(is_space))
            })
        }
    };
    starts.then_some(NOTE)
}

/// Whether one of the words is a client, and a later one is its subcommand.
fn has_runtime_start<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let mut words = words;
    let is_client = |word: &str| CLIENTS.contains(&word.rsplit('/').next().unwrap_or(word));
    words.any(is_client) && words.any(|word| STARTING.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_runtime_are_found() {
        let shell = |line: &str| note_on_runtime(&Program::Shell(line.to_owned())).is_some();
        for line in [
            "docker exec web sleep 9",
            "cd /srv && docker compose exec -T web sh -c 'sleep 9 &'",
            "sudo /usr/bin/podman --log-level=error run --rm alpine true",
            "echo $(nerdctl exec x id)",
            "sh -c \"docker exec web id\"",
        ] {
            assert!(shell(line), "{line}");
        }
        for line in [
            "docker ps",
            "docker inspect web; run-parts /etc/x",
            "exec sleep 9",
            "grep run docker.log",
        ] {
            assert!(!shell(line), "{line}");
        }
        let argv = |words: &[&str]| {
            let words = words.iter().map(|&word| word.to_owned()).collect();
            note_on_runtime(&Program::Argv(words)).is_some()
        };
        assert!(argv(&["docker", "exec", "web", "id"]));
        assert!(!argv(&["docker", "logs", "web"]));
    }
}
