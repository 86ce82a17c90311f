//! Skills (SEP-2640): how to work with this server, and one for each prompt. Their files are read as resources.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use super::call::{Call, CallOutcome};
use super::cursor::cursor;
use super::engine::Engine;
use super::instructions::instructions;
use super::prompts::is_there;
use super::results::CachePolicy;
use super::tool_list::describe_listed;
use gatewren_gate::auth::Principal;
use gatewren_gate::policy::sees;
use gatewren_wire::protocol::{Resource, ResourceContents, RpcError, page};
use gatewren_wire::registry::{PromptRow, PromptSkill};

/// The extension's name.
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The texts change with an upgrade and with the agent's policy, as the list of tools does.
const TTL_MS: u64 = 300_000;

/// The file that each skill begins with.
const MANIFEST: &str = "SKILL.md";

/// The media types of files and of directories.
const MARKDOWN: &str = "text/markdown";
const DIRECTORY: &str = "inode/directory";

/// A skill that an agent sees.
struct Skill<'e> {
    name: String,
    title: &'e str,
    description: &'e str,
    text: SkillText<'e>,
}

/// Where the text of a skill comes from.
enum SkillText<'e> {
    /// The instructions for a model, and the tools in a second file.
    Guide,
    /// A prompt.
    Task(&'e PromptSkill),
}

/// A file of a skill, with its path below the skill's directory.
struct SkillFile {
    path: &'static str,
    text: String,
}

/// `skills/list`.
pub fn list(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let all = skills(engine, &call.context.who);
    let page = page(&call.method, &all, |one| &one.name, cursor(&call.params)?)?;
    let entries = page.items.iter().map(|skill| skill.entry(engine, call));
    let entries: Vec<Value> = entries.collect();
    let mut result = Map::from_iter([("skills".to_owned(), json!(entries))]);
    if let Some(next) = page.next {
        result.insert("nextCursor".into(), json!(next));
    }
    Ok(engine.complete(Value::Object(result), CachePolicy::Private(TTL_MS)))
}

/// `skills/get`.
pub fn get(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let uri = uri_of(call)?;
    let all = skills(engine, &call.context.who);
    let skill = all.iter().find(|skill| skill.uri(MANIFEST) == uri);
    let skill = skill.ok_or_else(|| {
        RpcError::invalid_params(format!("no skill {uri}; skills/list lists them"))
    })?;
    let result = json!({ "skill": skill.entry(engine, call) });
    Ok(engine.complete(result, CachePolicy::Private(TTL_MS)))
}

/// `resources/directory/read`: the files and directories directly in a directory of a skill.
pub fn read_directory(engine: &Engine, call: &Call) -> Result<CallOutcome, RpcError> {
    let uri = uri_of(call)?;
    let children = children(engine, &call.context.who, uri);
    if children.is_empty() {
        return Err(RpcError::invalid_params(format!("no directory {uri}")));
    }
    let page = page(
        &call.method,
        &children,
        |one| &one.uri,
        cursor(&call.params)?,
    )?;
    let mut result = Map::from_iter([("resources".to_owned(), json!(page.items))]);
    if let Some(next) = page.next {
        result.insert("nextCursor".into(), json!(next));
    }
    Ok(engine.complete(Value::Object(result), CachePolicy::None))
}

/// Returns the first file of each skill, for `resources/list`.
pub fn manifests(engine: &Engine, who: &Principal) -> Vec<Resource> {
    let skills = skills(engine, who);
    skills.iter().map(Skill::manifest).collect()
}

/// Returns a file; `None` for any other URI.
pub fn read(engine: &Engine, who: &Principal, uri: &str) -> Option<ResourceContents> {
    if !uri.starts_with("skill://") {
        return None;
    }
    let skills = skills(engine, who);
    let skill = skills.iter().find(|one| uri.starts_with(&one.uri("")))?;
    let mut files = skill.files(engine, who).into_iter();
    let file = files.find(|file| skill.uri(file.path) == uri)?;
    Some(ResourceContents {
        uri: uri.to_owned(),
        mime_type: Some(MARKDOWN.to_owned()),
        text: Some(file.text),
        ..ResourceContents::default()
    })
}

fn uri_of(call: &Call) -> Result<&str, RpcError> {
    let uri = call.params.get("uri").and_then(Value::as_str);
    uri.ok_or_else(|| {
        RpcError::invalid_params(format!("{} requires params.uri, a string", call.method))
    })
}

fn skills<'e>(engine: &'e Engine, who: &Principal) -> Vec<Skill<'e>> {
    let catalog = &engine.catalog;
    let guide = catalog.instructions.is_some().then(|| Skill {
        name: catalog.server.name.clone(),
        title: "How to work with this server",
        description: "What you may do on this server, how to do it, and what each tool is for",
        text: SkillText::Guide,
    });
    let prompts = catalog.prompts().filter(|row| is_there(engine, who, row));
    let tasks = prompts.filter_map(|row| Skill::of_prompt(row));
    guide.into_iter().chain(tasks).collect()
}

/// Returns what is directly in a directory; nothing if there is no such directory.
fn children(engine: &Engine, who: &Principal, directory: &str) -> Vec<Resource> {
    let mut found: Vec<Resource> = Vec::new();
    for skill in skills(engine, who) {
        if !format!("{directory}/").starts_with(&skill.uri("")) {
            continue;
        }
        for file in skill.files(engine, who) {
            let uri = skill.uri(file.path);
            let below = uri.strip_prefix(directory);
            let Some(below) = below.and_then(|rest| rest.strip_prefix('/')) else {
                continue;
            };
            let child = match below.split_once('/') {
                Some((name, _)) => resource(format!("{directory}/{name}"), name, DIRECTORY),
                None if file.path == MANIFEST => skill.manifest(),
                None => resource(uri.clone(), below, MARKDOWN),
            };
            if found.iter().all(|other| other.uri != child.uri) {
                found.push(child);
            }
        }
    }
    found
}

fn resource(uri: String, name: &str, media_type: &str) -> Resource {
    Resource {
        uri,
        name: name.to_owned(),
        mime_type: Some(media_type.to_owned()),
        ..Resource::default()
    }
}

impl<'e> Skill<'e> {
    fn of_prompt(row: &'e PromptRow) -> Option<Self> {
        let prompt = &row.definition;
        Some(Self {
            // The names of skills have hyphens only.
            name: prompt.name.replace('_', "-"),
            title: prompt.title.as_ref()?,
            description: prompt.description.as_ref()?,
            text: SkillText::Task(row.skill.as_ref()?),
        })
    }

    fn uri(&self, path: &str) -> String {
        format!("skill://{}/{path}", self.name)
    }

    fn manifest(&self) -> Resource {
        Resource {
            description: Some(self.description.to_owned()),
            ..resource(self.uri(MANIFEST), &self.name, MARKDOWN)
        }
    }

    fn entry(&self, engine: &Engine, call: &Call) -> Value {
        let files = self.files(engine, &call.context.who);
        let files = files.iter().map(|file| {
            let bytes = file.text.as_bytes();
            json!({ "uri": self.uri(file.path), "digest": sha256(bytes), "size": bytes.len() })
        });
        json!({
            "uri": self.uri(MANIFEST),
            "frontmatter": { "name": self.name, "description": self.description },
            "resources": files.collect::<Vec<_>>(),
        })
    }

    /// Writes the files.
    fn files(&self, engine: &Engine, who: &Principal) -> Vec<SkillFile> {
        let catalog = &engine.catalog;
        // A string of JSON is one of YAML too.
        let mut text = format!(
            "---\nname: {}\ndescription: {}\n---\n\n# {}\n\n",
            self.name,
            json!(self.description),
            self.title
        );
        let mut further = None;
        match &self.text {
            SkillText::Guide => {
                text += &instructions(catalog, who).unwrap_or_default();
                text += "\n\n`references/tools.md` describes each tool.\n";
                further = Some(SkillFile {
                    path: "references/tools.md",
                    text: format!("# Tools\n{}", describe_listed(catalog, who)),
                });
            }
            SkillText::Task(skill) => {
                text = text + skill.task + "\n\nCall first:\n\n";
                for (name, arguments) in &skill.calls {
                    if catalog.tool(name).is_some_and(|tool| sees(who, tool)) {
                        // Writing to a string cannot fail.
                        let _ = writeln!(text, "- `{name}` with `{arguments}`");
                    }
                }
            }
        }
        let path = MANIFEST;
        let first = SkillFile { path, text };
        std::iter::once(first).chain(further).collect()
    }
}

/// Returns a digest as an entry of a skill has it.
fn sha256(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in digest(&SHA256, bytes).as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
