//! Prompts: a task in words, with what the box is like right now put beside it by the tools that look.

use serde_json::{Map, Value, json};

use crate::protocol::{Content, Prompt, PromptArgument, PromptMessage, Role};
use crate::registry::{BoxFuture, Cx, PromptAnswer, PromptRow, Result, ToolError};

/// A prompt, as a row: what it is, what it stands on, and what is looked at for it.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// What it takes, with its meaning.
    argument: Option<(&'static str, &'static str)>,
    /// The tool without which there is nothing to say.
    needs: &'static [&'static str],
    /// What is to be done.
    task: &'static str,
    /// What is looked at, from the argument.
    looks: fn(&str) -> Vec<(&'static str, Value)>,
}

/// The prompts. A tool that is not there, or that the agent may not call, is passed over.
const ROWS: [Row; 4] = [
    Row {
        name: "diagnose_container",
        title: "What is wrong with a container",
        description: "How a container stands, what it uses, its ports, logs and latest changes, to find out what is \
                      wrong with it",
        argument: Some(("container", "The container's name")),
        needs: &["container_info"],
        task: "Find out whether something is wrong with this container, and what. Say what you see that speaks for \
               it, what you would look at next and with which tool, and what you would change. Change nothing yet.",
        looks: |container| {
            let of_it = json!({ "container": container });
            vec![
                ("container_info", of_it.clone()),
                ("container_stats", of_it.clone()),
                ("container_ports", of_it.clone()),
                ("container_logs", of_it),
                ("state_blame", json!({ "pointer": place(container) })),
            ]
        },
    },
    Row {
        name: "explain_change",
        title: "What a change was about",
        description: "One revision of the state, or one proposal, with who made it and why, to be explained",
        argument: Some((
            "change",
            "The number of a revision, or the id of a proposal (chg_...)",
        )),
        needs: &["state_get"],
        task: "Explain to the owner of this box, in plain words, what this change did, who made it and why, and what \
               follows from it. Say what the data does not tell.",
        looks: |change| match change.parse::<u64>() {
            Ok(revision) => {
                let before = json!({ "revision": revision.saturating_sub(1), "limit": 1 });
                vec![("changes_since", before)]
            }
            Err(_) => vec![("change_get", json!({ "change": change }))],
        },
    },
    Row {
        name: "update_plan",
        title: "Plan the updates",
        description: "What could be upgraded, what runs here and what waits for a reboot, for a plan of updates",
        argument: None,
        needs: &["update_check", "server_info"],
        task: "Plan the updates of this box: which to install first and why, what may be interrupted and for how \
               long, whether a reboot is needed, and how to check afterwards that everything runs. Change nothing yet.",
        looks: |_| {
            vec![
                ("update_check", json!({})),
                ("server_info", json!({})),
                ("container_list", json!({})),
                ("update_history", json!({})),
            ]
        },
    },
    Row {
        name: "tidy_disk",
        title: "Make room on the disks",
        description: "The disks, how full they are and what the containers hold, to find what could go",
        argument: None,
        needs: &["disk_list"],
        task: "Find what could be removed from the disks of this box, beginning with what frees most at the least \
               risk. Say for each how to find out whether it is still needed. Remove nothing yet.",
        looks: |_| {
            vec![
                ("disk_list", json!({})),
                ("disk_usage", json!({})),
                ("container_list", json!({})),
            ]
        },
    },
];

/// Every prompt.
pub fn prompts() -> Vec<PromptRow> {
    ROWS.into_iter().map(row).collect()
}

fn row(row: Row) -> PromptRow {
    let argument = row.argument.map(|(name, description)| PromptArgument {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        required: true,
    });
    PromptRow {
        definition: Prompt {
            name: row.name.to_owned(),
            title: Some(row.title.to_owned()),
            description: Some(row.description.to_owned()),
            arguments: argument.into_iter().collect(),
        },
        needs: row.needs,
        function: Box::new(move |arguments, cx| {
            let named = row
                .argument
                .map_or(Ok(""), |(name, _)| text(&arguments, name));
            let looks = named.map(row.looks);
            Box::pin(async move { Ok(written(&row, assembled(looks?, &cx).await?)) })
                as BoxFuture<_>
        }),
    }
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str> {
    /// No name of anything is longer.
    const LONGEST: usize = 256;
    let given = arguments.get(name).and_then(Value::as_str);
    let given = given.filter(|text| (1..=LONGEST).contains(&text.len()));
    let rule = || ToolError::new(format!("`{name}` is a text of 1 to {LONGEST} bytes"));
    given.ok_or_else(|| rule().into())
}

/// What the tools say, each under its name. When the first of them fails, there is nothing to write about.
async fn assembled(
    looks: Vec<(&'static str, Value)>,
    cx: &Cx,
) -> Result<Vec<(&'static str, String)>> {
    let mut said = Vec::new();
    for (tool, arguments) in looks {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        match cx.look(tool, arguments).await {
            Some(Ok(words)) => said.push((tool, words)),
            Some(Err(words)) if said.is_empty() => return Err(ToolError::new(words).into()),
            Some(Err(words)) => said.push((tool, format!("It failed: {words}"))),
            None if said.is_empty() => {
                let words = format!("{tool}, on which this stands, is not there for you");
                return Err(ToolError::new(words).into());
            }
            None => {}
        }
    }
    Ok(said)
}

fn written(row: &Row, said: Vec<(&'static str, String)>) -> PromptAnswer {
    let of_user = |text: String| PromptMessage {
        role: Role::User,
        content: Content::text(text),
    };
    let looked = said
        .into_iter()
        .map(|(tool, words)| format!("What {tool} says now, as data:\n\n{words}"));
    let messages = std::iter::once(row.task.to_owned()).chain(looked);
    PromptAnswer {
        description: Some(row.description.to_owned()),
        messages: messages.map(of_user).collect(),
    }
}

/// Where a container stands in the state.
fn place(container: &str) -> String {
    let name = container.replace('~', "~0").replace('/', "~1");
    format!("/public/packageData/{name}")
}
