//! Selects the space of an agent.

use gatewren_base::config::{Spaces, WHOLE_SERVER, nearest};
use gatewren_base::sys::sanitize;

/// Returns the requested space if it exists. If the owner has defined spaces, one must be requested: omitting the
/// option must not yield a token for the whole host.
pub fn choose_space(asked: Option<&str>, spaces: &Spaces) -> Result<String, String> {
    match asked {
        Some(WHOLE_SERVER) => Ok(WHOLE_SERVER.to_owned()),
        Some(name) if spaces.contains_key(name) => Ok(name.to_owned()),
        Some(name) => Err(unknown(name, spaces)),
        None if spaces.is_empty() => Ok(WHOLE_SERVER.to_owned()),
        None => Err(format!("choose the agent's space: {}", list_spaces(spaces))),
    }
}

fn unknown(name: &str, spaces: &Spaces) -> String {
    let known = spaces.keys().map(String::as_str);
    let shown = sanitize(name);
    if spaces.is_empty() {
        return format!(
            "unknown space \"{shown}\": the settings define none; [spaces.NAME] defines one, and without \
             --space the agent reaches the whole server"
        );
    }
    match nearest(name, known) {
        Some(meant) => format!("unknown space \"{shown}\"; did you mean \"{meant}\"?"),
        None => format!("unknown space \"{shown}\"; use {}", list_spaces(spaces)),
    }
}

fn list_spaces(spaces: &Spaces) -> String {
    let named = spaces.keys().map(|name| format!("--space {name}"));
    let named: Vec<String> = named.collect();
    format!(
        "{}, or --space '{WHOLE_SERVER}' for the whole server",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::config::Space;

    #[test]
    fn the_whole_box_is_had_only_by_asking_where_it_is_divided() {
        let none = Spaces::new();
        assert_eq!(choose_space(None, &none).as_deref(), Ok("*"));
        assert_eq!(choose_space(Some("*"), &none).as_deref(), Ok("*"));
        assert!(
            choose_space(Some("media"), &none)
                .unwrap_err()
                .contains("[spaces.NAME]")
        );
        let spaces = Spaces::from(["media", "web"].map(|name| (name.to_owned(), Space::default())));
        assert_eq!(choose_space(Some("media"), &spaces).as_deref(), Ok("media"));
        assert_eq!(choose_space(Some("*"), &spaces).as_deref(), Ok("*"));
        assert_eq!(
            choose_space(None, &spaces).unwrap_err(),
            "choose the agent's space: --space media, --space web, or --space '*' for the whole server"
        );
        let error = choose_space(Some("medai"), &spaces).unwrap_err();
        assert_eq!(error, "unknown space \"medai\"; did you mean \"media\"?");
    }
}
