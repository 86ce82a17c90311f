//! The title of a push message about a request: who asks, and the tool's sentence. It contains no other arguments.

use gatewren_store::vault::{Change, Vault};
use gatewren_tools::tool_texts::sentence;

/// Returns the title.
pub fn request_title(vault: &Vault, change: &Change) -> String {
    let agents = vault.agents().list().unwrap_or_default();
    let agent = agents.into_iter().find(|agent| agent.id == change.agent);
    let agent = agent.map_or_else(|| change.agent.clone(), |agent| agent.name);
    let Some(said) = sentence(&change.tool, change.target.is_some()) else {
        return format!("{agent}: {}", change.tool);
    };
    let target = change.target.as_deref().filter(|_| said.after.is_some());
    let (target, after) = (target.unwrap_or_default(), said.after.unwrap_or_default());
    format!("{agent}: {}{target}{after}", said.before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;

    #[tokio::test]
    async fn the_title_says_who_asks_for_what_and_no_argument() {
        let scratch = Scratch::new();
        let vault = Vault::open(&scratch.join("vault.db")).unwrap();
        let arguments = r#"{"container":"web","command":"echo s3cret"}"#;
        let mut change = Change::waiting("chg_1", "container_shell", arguments.to_owned());
        change.agent = "agent_1".to_owned();
        change.target = Some("web".to_owned());
        let title = request_title(&vault, &change);
        assert_eq!(title, "agent_1: Run a command in the container web");
        change.tool = "a_new_tool".to_owned();
        assert_eq!(request_title(&vault, &change), "agent_1: a_new_tool");
    }
}
