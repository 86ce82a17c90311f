//! Skills (SEP-2640): each agent gets those that it can use, with digests of the files that it reads.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::server::{shared, shared_fixtures};

const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// Returns the agent's skills.
fn listed(client: &Client) -> Vec<Value> {
    let result = client.modern("skills/list").send().result();
    result["skills"].as_array().unwrap().clone()
}

fn names(client: &Client) -> BTreeSet<String> {
    let skills = listed(client).into_iter();
    let name = |skill: Value| skill["frontmatter"]["name"].as_str().unwrap().to_owned();
    skills.map(name).collect()
}

/// Returns a file's text.
fn text(client: &Client, uri: &str) -> String {
    let result = client.modern("resources/read").uri(uri).send().result();
    let contents = &result["contents"][0];
    assert_eq!(contents["mimeType"], "text/markdown", "{uri}");
    assert_eq!(contents["uri"], uri);
    contents["text"].as_str().unwrap().to_owned()
}

/// Returns the directory's children: their URIs and media types.
fn children(client: &Client, uri: &str) -> Vec<(String, String)> {
    let answer = client.modern("resources/directory/read");
    let result = answer.param("uri", json!(uri)).send().result();
    let children = result["resources"].as_array().unwrap().iter();
    let text = |child: &Value, field: &str| child[field].as_str().unwrap().to_owned();
    children
        .map(|child| (text(child, "uri"), text(child, "mimeType")))
        .collect()
}

#[test]
fn y1_skills_are_declared_and_served_in_2026_alone() {
    let server = shared("observe");
    let client = server.client();
    let found = client.modern("server/discover").send().result();
    let settings = &found["capabilities"]["extensions"][EXTENSION];
    assert_eq!(*settings, json!({ "directoryRead": true }));
    let uri = "skill://gatewren/SKILL.md";
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = client.session(version);
        for method in ["skills/list", "skills/get", "resources/directory/read"] {
            let answer = session.request(method).param("uri", json!(uri)).send();
            assert_eq!(answer.verdict().1, -32_601, "{version}: {method}");
        }
        let read = session.request("resources/read").uri(uri).send().result();
        assert_eq!(read["contents"][0]["text"], text(&client, uri), "{version}");
    }
}

#[test]
fn y2_y3_an_entry_has_the_digest_and_size_of_each_file_that_is_read() {
    for client in [shared("operate").client(), shared_fixtures().client()] {
        let skills = listed(&client);
        assert!(!skills.is_empty());
        for skill in skills {
            let uri = skill["uri"].as_str().unwrap();
            let (name, words) = (
                &skill["frontmatter"]["name"],
                &skill["frontmatter"]["description"],
            );
            assert_eq!(uri, format!("skill://{}/SKILL.md", name.as_str().unwrap()));
            let head = format!(
                "---\nname: {}\ndescription: {words}\n---\n",
                name.as_str().unwrap()
            );
            assert!(text(&client, uri).starts_with(&head), "{uri}");
            let files = skill["resources"].as_array().unwrap();
            assert_eq!(files[0]["uri"], uri);
            for file in files {
                let read = text(&client, file["uri"].as_str().unwrap());
                let hash = digest(&SHA256, read.as_bytes());
                let hex = hash.as_ref().iter().fold(String::new(), |mut hex, byte| {
                    write!(hex, "{byte:02x}").unwrap();
                    hex
                });
                assert_eq!(file["digest"], format!("sha256:{hex}"), "{file}");
                assert_eq!(file["size"], read.len(), "{file}");
            }
            let one = client.modern("skills/get").param("uri", json!(uri)).send();
            assert_eq!(one.result()["skill"], skill);
        }
    }
}

#[test]
fn y4_what_is_no_skill_and_no_directory_is_refused() {
    let client = shared("operate").client();
    let refused = |method: &str, uri: &str| {
        let answer = client.modern(method).param("uri", json!(uri)).send();
        assert_eq!(answer.verdict().1, -32_602, "{method}: {uri}");
    };
    for uri in [
        "skill://none/SKILL.md",
        "skill://gatewren",
        "skill://gatewren/references/tools.md",
        "",
    ] {
        refused("skills/get", uri);
    }
    for uri in [
        "skill://gatewren/SKILL.md",
        "skill://none",
        "skill://",
        "skill://gatewren/",
        "skill://gatewre",
    ] {
        refused("resources/directory/read", uri);
    }
    let none = client
        .modern("resources/read")
        .uri("skill://gatewren/none.md");
    assert_eq!(none.send().verdict().1, -32_602);
}

#[test]
fn y5_a_directory_lists_its_files_and_directories() {
    let client = shared("operate").client();
    let pair = |uri: &str, kind: &str| (format!("skill://gatewren{uri}"), kind.to_owned());
    let (file, directory) = ("text/markdown", "inode/directory");
    let root = [pair("/SKILL.md", file), pair("/references", directory)];
    assert_eq!(children(&client, "skill://gatewren"), root);
    let below = [pair("/references/tools.md", file)];
    assert_eq!(children(&client, "skill://gatewren/references"), below);
}

#[test]
fn an_agent_has_the_skills_whose_tools_it_has() {
    let admin = shared("admin").client();
    let suggest = shared("suggest").client();
    for name in [
        "gatewren",
        "diagnose-container",
        "explain-change",
        "update-plan",
        "tidy-disk",
    ] {
        assert!(names(&admin).contains(name), "{name}");
    }
    assert!(names(&suggest).contains("gatewren"));
    for client in [&admin, &suggest] {
        let prompts = client.modern("prompts/list").send().names("prompts");
        let tasks: BTreeSet<String> = prompts.iter().map(|name| name.replace('_', "-")).collect();
        let mut skills = names(client);
        skills.remove("gatewren");
        assert_eq!(skills, tasks);
        let tools = client.modern("tools/list").send().names("tools");
        let reference = text(client, "skill://gatewren/references/tools.md");
        let titles = reference
            .lines()
            .filter_map(|line| line.strip_prefix("## "));
        assert_eq!(titles.collect::<Vec<_>>(), tools);
    }
    let steps = text(&admin, "skill://diagnose-container/SKILL.md");
    assert!(
        steps.contains("- `container_info` with `{\"container\":\"CONTAINER\"}`"),
        "{steps}"
    );
    let steps = text(&admin, "skill://explain-change/SKILL.md");
    assert!(
        steps.contains("`change_get`") && steps.contains("`changes_since`"),
        "{steps}"
    );
}
