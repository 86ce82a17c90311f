//! Tools that take time and report progress.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::elicitations::{FORM, form};
use crate::protocol::InputRequired;
use crate::registry::{Answer, Cx, Result, Risk, ToolError, Toolset};

/// The maximum duration of a call, in seconds.
const MAX_SECONDS: f64 = 600.0;

/// The maximum number of steps.
const MAX_STEPS: u32 = 1_000;

/// The duration of a stage of the research.
const STAGE: Duration = Duration::from_secs(1);

const STAGES: [&str; 4] = [
    "Gathering sources",
    "Reading them",
    "Putting the findings together",
    "Writing the report",
];

/// The key of the question about the meaning of a topic.
const MEANING: &str = "interpretation";

/// These tools have no state.
pub struct Slow;

/// The toolset, as a table.
#[rustfmt::skip]
pub fn tools() -> Toolset<Slow> {
    Toolset::over(Arc::new(Slow))
        .answering("trigger-long-running-operation", Risk::Read, long).titled("Long-running operation")
        .answering("simulate-research-query", Risk::Read, research).titled("Research query").offers_task().offers_task()
}

/// Run for a while, in steps, and report progress after each.
#[derive(Deserialize, JsonSchema)]
struct Long {
    /// The duration in seconds, at most 600.
    #[serde(default = "ten")]
    #[schemars(range(min = 0, max = 600))]
    duration: f64,
    /// The number of steps, 1 to 1000.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 1000))]
    steps: u32,
}

fn ten() -> f64 {
    10.0
}

fn five() -> u32 {
    5
}

async fn long(_: Arc<Slow>, Long { duration, steps }: Long, cx: Cx) -> Result<Answer> {
    if !(0.0..=MAX_SECONDS).contains(&duration) || !(1..=MAX_STEPS).contains(&steps) {
        let words = format!("duration is 0 to {MAX_SECONDS} seconds, steps are 1 to {MAX_STEPS}");
        return Err(ToolError::new(words).into());
    }
    let step = Duration::from_secs_f64(duration) / steps;
    for done in 1..=steps {
        sleep(step).await;
        cx.progress(done.into(), Some(steps.into()), None).await;
    }
    Ok(Answer::text(format!(
        "Long running operation completed. Duration: {duration} seconds, Steps: {steps}."
    )))
}

/// Simulate research in four stages of a second each. First asks the person about the meaning of an ambiguous
/// topic. For clients that support tasks, the call is a task.
#[derive(Deserialize, JsonSchema)]
struct Research {
    /// The topic of the research.
    topic: String,
    /// Whether the topic has several meanings, so that the person must choose; for clients that show forms.
    #[serde(default)]
    ambiguous: bool,
}

async fn research(_: Arc<Slow>, asked: Research, cx: Cx) -> Result<Answer> {
    let Research { topic, ambiguous } = asked;
    let meaning = if ambiguous && cx.capabilities().elicitation_form() {
        Some(meaning(&topic, &cx).await?)
    } else {
        None
    };
    let mut done = 0.0;
    for stage in STAGES {
        cx.progress(done, Some(4.0), Some(stage)).await;
        sleep(STAGE).await;
        done += 1.0;
    }
    cx.progress(done, Some(4.0), Some("Done")).await;
    Ok(Answer::text(report(&topic, meaning.as_deref())))
}

/// Asks the person for the meaning of the topic.
async fn meaning(topic: &str, cx: &Cx) -> Result<String> {
    let message = format!("\"{topic}\" has several meanings. Which one is it?");
    let fields =
        json!({ MEANING: { "type": "string", "title": "Meaning", "oneOf": meanings(topic) } });
    let question = form(&message, &fields, &[MEANING]);
    let answers = cx
        .ask(InputRequired::new().ask(MEANING, FORM, question))
        .await?;
    let chosen = answers
        .get(MEANING)
        .and_then(|answer| answer.pointer("/content/interpretation")?.as_str());
    Ok(chosen.unwrap_or("any meaning").to_owned())
}

fn meanings(topic: &str) -> Value {
    if topic.to_lowercase().contains("python") {
        json!([
            { "const": "programming", "title": "The programming language" },
            { "const": "snake", "title": "The snake" },
            { "const": "comedy", "title": "The comedians" },
        ])
    } else {
        json!([
            { "const": "technical", "title": "How it works" },
            { "const": "historical", "title": "How it came to be" },
            { "const": "current", "title": "What is new about it" },
        ])
    }
}

fn report(topic: &str, meaning: Option<&str>) -> String {
    let title = meaning.map_or_else(
        || topic.to_owned(),
        |meaning| format!("{topic} ({meaning})"),
    );
    let stages: Vec<String> = STAGES
        .iter()
        .map(|stage| format!("- {stage}: done"))
        .collect();
    let stages = stages.join("\n");
    format!(
        "# Research report: {title}\n\n{stages}\n\nNothing was really looked up: this is a fixture.\n"
    )
}
