//! Prompts: a task with the current state of the host, collected by read-only tools.

use serde_json::{Map, Value, json};

use gatewren_wire::protocol::{Content, Prompt, PromptArgument, PromptMessage, Role};
use gatewren_wire::registry::{
    BoxFuture, Cx, PromptAnswer, PromptRow, PromptSkill, Result, ToolError,
};

/// A prompt: its metadata, its requirements, and its tool calls.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// The argument's name and description.
    argument: Option<(&'static str, &'static str)>,
    /// The tools without which the prompt is not offered.
    needs: &'static [&'static str],
    /// The task for the model.
    task: &'static str,
    /// Returns the tool calls for an argument.
    looks: fn(&str) -> Vec<(&'static str, Value)>,
}

/// The prompts. A tool that does not exist, or that the agent may not call, is skipped.
const ROWS: [Row; 4] = [
    Row {
        name: "diagnose_container",
        title: "Diagnose a container",
        description: "A container's state, usage now and over time, ports, errors and latest changes, to find the problem",
        argument: Some(("container", "The container's name")),
        needs: &["container_info"],
        task: "Find out whether something is wrong with this container, and name the problem. Give your \
               evidence, the next checks and their tools, and the changes that you suggest. Change nothing yet.",
        looks: |container| {
            let of_it = json!({ "container": container });
            vec![
                ("container_info", of_it.clone()),
                ("container_diagnose", of_it.clone()),
                ("container_ports", of_it),
                ("state_blame", json!({ "pointer": place(container) })),
            ]
        },
    },
    Row {
        name: "explain_change",
        title: "Explain a change",
        description: "One revision of the state, or one proposal, with its author and reason, to explain it",
        argument: Some((
            "change",
            "The number of a revision, or the id of a proposal (chg_...)",
        )),
        needs: &["state_get"],
        task: "Explain to the owner of this server, in plain words, what this change did, who made it and why, and \
               its consequences. State what the data does not show.",
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
        description: "Available upgrades, running containers and pending reboots, to plan the updates",
        argument: None,
        needs: &["update_plan", "server_info"],
        task: "Plan the updates of this server: which to install first and why, which services may be interrupted \
               and for how long, what protects each target, whether a reboot is needed, and how to check afterwards \
               that everything runs. Change nothing yet; update_run installs the plan.",
        looks: |_| {
            vec![
                ("update_plan", json!({})),
                ("server_info", json!({})),
                ("update_history", json!({})),
            ]
        },
    },
    Row {
        name: "tidy_disk",
        title: "Free disk space",
        description: "The disks, their free space, and the size of directories and containers, to find data to remove",
        argument: None,
        needs: &["disk_list", "disk_report"],
        task: "Find data that could be removed from the disks of this server. Begin with data that frees the most \
               space at the least risk. Explain how to check whether each item is still needed. Remove nothing yet.",
        looks: |_| {
            vec![
                ("disk_list", json!({})),
                ("disk_report", json!({})),
                ("container_list", json!({})),
            ]
        },
    },
];

/// Returns all prompts.
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
        skill: Some(PromptSkill {
            task: row.task,
            calls: calls_with_placeholder(&row),
        }),
        function: Box::new(move |arguments, cx| {
            let named = row
                .argument
                .map_or(Ok(""), |(name, _)| text(&arguments, name));
            let looks = named.map(row.looks);
            Box::pin(async move { Ok(build_prompt(&row, collect_outputs(looks?, &cx).await?)) })
                as BoxFuture<_>
        }),
    }
}

/// Returns the tool calls for any argument: its name in upper case is the placeholder. A prompt may have other calls for
/// a number.
fn calls_with_placeholder(row: &Row) -> Vec<(&'static str, Value)> {
    let placeholder = row.argument.map(|(name, _)| name.to_uppercase());
    let mut calls = (row.looks)(&placeholder.unwrap_or_default());
    for (tool, arguments) in (row.looks)("2") {
        if calls.iter().all(|(other, _)| *other != tool) {
            calls.push((tool, arguments));
        }
    }
    calls
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str> {
    /// No name is longer.
    const LONGEST: usize = 256;
    let given = arguments.get(name).and_then(Value::as_str);
    let given = given.filter(|text| (1..=LONGEST).contains(&text.len()));
    let rule = || ToolError::new(format!("`{name}` must be a string of 1 to {LONGEST} bytes"));
    given.ok_or_else(|| rule().into())
}

/// Runs the tools and returns their results by name. An error of the first tool is returned, because the prompt
/// would be empty.
async fn collect_outputs(
    looks: Vec<(&'static str, Value)>,
    cx: &Cx,
) -> Result<Vec<(&'static str, String)>> {
    let mut outputs = Vec::new();
    for (tool, arguments) in looks {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        match cx.look(tool, arguments).await {
            Some(Ok(words)) => outputs.push((tool, words)),
            Some(Err(words)) if outputs.is_empty() => return Err(ToolError::new(words).into()),
            Some(Err(words)) => outputs.push((tool, format!("It failed: {words}"))),
            None if outputs.is_empty() => {
                let words = format!("this prompt requires {tool}, which is not available to you");
                return Err(ToolError::new(words).into());
            }
            None => {}
        }
    }
    Ok(outputs)
}

fn build_prompt(row: &Row, outputs: Vec<(&'static str, String)>) -> PromptAnswer {
    let of_user = |text: String| PromptMessage {
        role: Role::User,
        content: Content::text(text),
    };
    let looked = outputs
        .into_iter()
        .map(|(tool, words)| format!("Current output of {tool}, as data:\n\n{words}"));
    let messages = std::iter::once(row.task.to_owned()).chain(looked);
    PromptAnswer {
        description: Some(row.description.to_owned()),
        messages: messages.map(of_user).collect(),
    }
}

/// Returns the path of a container in the state.
fn place(container: &str) -> String {
    let name = container.replace('~', "~0").replace('/', "~1");
    format!("/public/packageData/{name}")
}
