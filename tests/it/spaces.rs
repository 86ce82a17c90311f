//! Agents in different spaces: what is outside an agent's space looks to it like what does not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::client::Client;
use crate::support::command::tell_by;
use crate::support::container::Containers;
use crate::support::cores::core;
use crate::support::engines::{Engine, EngineKind};
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::request::Request;
use crate::support::server::{Server, has_sqlite3, server};
use crate::support::stream::{Next, Stream};

/// The containers: their names occur in no text of gatewren's, and have the same length.
const FIRST: &str = "axolotl-x7q";
const SECOND: &str = "basilisk-9z";
const NEVER: &str = "cockatri-3q";

/// Returns the reference to a container that does not exist, of the same runtime as this one.
fn never(elsewhere: &str) -> String {
    match elsewhere.split_once(':') {
        Some((runtime, _)) => format!("{runtime}:{NEVER}"),
        None => NEVER.to_owned(),
    }
}

/// The schemes of the URI templates with a name in them.
const SCHEMES: [&str; 2] = ["gatewren://", "startos://"];

/// The host: two running containers, and a server with a space for each and one for the host.
struct Home {
    containers: Containers,
    server: Server,
    admin: Client,
}

impl Home {
    fn new() -> Option<Self> {
        let mut containers = Containers::new()?;
        for name in [FIRST, SECOND] {
            let root = containers.make(name);
            let release = format!("ID=wren\nNAME=\"{}\"\n", release_of(name));
            fs::write(root.join("usr/lib/os-release"), release).unwrap();
            containers.tool("lxc-start", name, &["-d"]);
            containers.until_ready(name);
        }
        let server = server()
            .policy("admin")
            .settings(&format!(
                "[lxc]\nlxcpath = \"{}\"\n\
                 [limits]\nupdate_interval = \"1ms\"\n\
                 [spaces.meadow-k4]\ncontainers = [\"{FIRST}\"]\n\
                 [spaces.cellar-w8]\ncontainers = [\"basilisk-*\"]\n\
                 [spaces.ground-u2]\nhost = true\n",
                containers.lxcpath().display()
            ))
            .start();
        Some(Self::with(containers, server, [FIRST, SECOND]))
    }

    /// The same with a container of Docker and one of Podman.
    fn with_engines() -> Option<Self> {
        let containers = Containers::new()?;
        let docker = Engine::shared(EngineKind::Docker)?;
        let podman = Engine::shared(EngineKind::Podman)?;
        for (engine, name) in [(&docker, FIRST), (&podman, SECOND)] {
            engine.cli(&["rm", "--force", name]);
            engine.run_staying(name);
            let release = format!("ID=wren\\nNAME=\"{}\"\\n", release_of(name));
            let write = format!("mkdir -p /usr/lib; printf '{release}' > /usr/lib/os-release");
            engine.cli(&["exec", name, "sh", "-c", &write]);
        }
        let sockets = [docker.socket(), podman.socket()].map(|path| path.display().to_string());
        let [docker, podman] = sockets;
        let server = server()
            .policy("admin")
            .bounds(&format!(
                "runtimes = [\"docker\", \"podman\"]\ndocker_socket = \"{docker}\"\n\
                 podman_socket = \"{podman}\"\nhost_shell = \"full\"\ncontainer_files = \"on\"\n\
                 lxc_manage = \"on\"\nunits = \"on\"\n"
            ))
            .settings(&format!(
                "[limits]\nupdate_interval = \"1ms\"\n\
                 [spaces.meadow-k4]\ncontainers = [\"docker:{FIRST}\"]\n\
                 [spaces.cellar-w8]\ncontainers = [\"podman:basilisk-*\"]\n\
                 [spaces.ground-u2]\nhost = true\n"
            ))
            .start();
        let names = [format!("docker:{FIRST}"), format!("podman:{SECOND}")];
        Some(Self::with(containers, server, [&names[0], &names[1]]))
    }

    /// Waits until the state has all of these containers.
    fn with(containers: Containers, server: Server, names: [&str; 2]) -> Self {
        let admin = server.client();
        for name in names {
            let pointer = json!({ "pointer": format!("/public/packageData/{name}/os") });
            let look = admin.call("state_get", pointer);
            wait_until("the state tells of it", IN_TIME, || {
                look.send().result()["isError"] != true
            });
        }
        Self {
            containers,
            server,
            admin,
        }
    }

    fn add(&self, name: &'static str, space: &'static str) -> Agent {
        // The agent may use everything, so only the space hides things.
        let args = ["agent", "add", name, "--policy", "admin", "--space", space];
        let modes = [
            "read", "scan", "write", "disrupt", "execute", "reveal", "persist",
        ];
        let modes = modes.map(|class| format!("{class}=allow"));
        let modes = modes.iter().flat_map(|mode| ["--mode", mode.as_str()]);
        let args: Vec<&str> = args.into_iter().chain(modes).collect();
        let said = tell_by(&self.server.settings_file(), &args);
        let text = |key: &str| said[key].as_str().unwrap().to_owned();
        let client = self.admin.elsewhere().with_token(&text("token"));
        let list = client.modern("tools/list");
        wait_until("it comes in", IN_TIME, || list.send().status == 200);
        Agent {
            client,
            marks: vec![name.to_owned(), space.to_owned(), text("id"), text("token")],
            secret: Vec::new(),
        }
    }

    /// Returns the items of a list for an agent that reaches everything.
    fn all(&self, method: &str, list: &str) -> Vec<Value> {
        let result = self.admin.modern(method).send().result();
        assert!(result.get("nextCursor").is_none(), "{method}: read on");
        result[list].as_array().unwrap().clone()
    }

    /// Returns the value at a pointer of the state, for an agent that reaches everything.
    fn state(&self, pointer: &str) -> Value {
        let call = self.admin.call("state_get", json!({ "pointer": pointer }));
        call.send().data()["value"].clone()
    }
}

impl Home {
    /// Returns the revisions that changed a container's state, for an agent that reaches everything.
    fn revisions_of(&self, container: &str) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        let mut after = 0;
        loop {
            let pointer = format!("/public/packageData/{container}");
            let since = json!({ "revision": after, "pointer": pointer });
            let history = self.admin.call("changes_since", since).send().data();
            assert_eq!(history["resync"], false, "{history}");
            let revisions = history["revisions"].as_array().unwrap().iter();
            found.extend(revisions.map(|revision| revision["id"].as_u64().unwrap()));
            after = history["revision"].as_u64().unwrap();
            if history["more"] == false {
                return found;
            }
        }
    }

    /// Writes to a container's state as another program, and returns the new revision.
    fn mark(&self, container: &str, number: u64) -> u64 {
        let path = format!("/public/packageData/{container}/marked");
        let add = json!([{ "op": "add", "path": path, "value": number }]);
        self.server.patch_from_outside(&add)
    }
}

/// A stream, and the request that opened it.
struct Listening<'a> {
    agent: &'a Agent,
    stream: Stream,
    sent: String,
}

impl Listening<'_> {
    /// Reads up to the update of this resource with this revision; returns each message with the id of its event.
    fn until(&mut self, uri: &str, revision: u64) -> Vec<(Option<String>, Value)> {
        let mut said = Vec::new();
        loop {
            let event = self.stream.event();
            self.agent.check(&self.sent, &format!("{event:?}"));
            let message = event.json();
            let params = message["params"].clone();
            said.push((event.id, message));
            let upto = params["_meta"]["gatewren/revision"].as_u64();
            if params["uri"] == uri && upto >= Some(revision) {
                return said;
            }
        }
    }
}

fn release_of(name: &str) -> String {
    format!("Wren within {}", name.chars().rev().collect::<String>())
}

/// An agent, and the marks that it must never receive.
struct Agent {
    client: Client,
    /// Texts that identify its own resources.
    marks: Vec<String>,
    secret: Vec<String>,
}

impl Agent {
    /// Sets the marks that the agent must not receive.
    fn never_hears_of(mut self, marks: &[&[String]]) -> Self {
        self.secret = marks.iter().flat_map(|marks| marks.to_vec()).collect();
        self
    }

    /// Sends a request and checks the whole response. Text of the request may be repeated in it.
    fn hear(&self, request: &Request) -> Answer {
        let answer = request.send();
        let sent = format!("{request:?}");
        self.check(&sent, &format!("{:?}\n{}", answer.headers, answer.body));
        answer
    }

    fn check(&self, sent: &str, heard: &str) {
        for mark in self.secret.iter().filter(|mark| !sent.contains(*mark)) {
            assert!(
                !heard.contains(mark),
                "{mark} in the answer to\n{sent}\n{heard}"
            );
        }
    }

    /// Asserts that a name that exists in another space and one that does not exist get the same bytes as a response.
    ///
    /// Values that change by themselves may change in between, so the requests may be repeated.
    fn cannot_tell(&self, what: &str, elsewhere: &str, ask: &dyn Fn(&str) -> Request) {
        let mut last = (String::new(), String::new());
        let answer = |name: &str| {
            let answer = self.hear(&ask(name));
            // Some responses take longer than a second, which the date header shows.
            let mut headers = answer.headers.clone();
            headers.remove("date");
            let text = format!("{} {headers:?}\n{}", answer.status, answer.body);
            text.replace(name, "NAME")
        };
        wait_until(&format!("{what} is answered alike"), IN_TIME, || {
            last = (answer(elsewhere), answer(&never(elsewhere)));
            last.0 == last.1
        });
    }
}

/// Returns a value for a parameter of a tool or template, about the container if possible. Add new parameters here.
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn value(parameter: &str, container: &str) -> Value {
    let uri = format!("gatewren:///public/packageData/{container}");
    match parameter {
        "container" | "stack" | "query" | "target" | "text" | "table" | "new_container"
        | "grep" => {
            json!(container)
        }
        "pointer" => json!(format!("/public/packageData/{container}")),
        "id" | "uri" => json!(uri),
        "unit" => json!(format!("lxc@{container}.service")),
        "name" => json!(format!("*{container}*")),
        "change" | "boot" => json!("0"),
        "job" => json!("job_0123456789abcdef0123456789abcdef"),
        "limit_bytes" => json!(100),
        "tool" => json!("container_info"),
        "arguments" => json!({ "container": container }),
        "reason" => json!("because"),
        "command" => json!("true"),
        "host" | "server" => json!("127.0.0.1"),
        "type" => json!("A"),
        "kind" => json!("container"),
        "at" => json!("daily"),
        "schedule" => json!("nightly"),
        "sessions" => json!(["6ba7b810-9dad-41d1-80b4-00c04fd430c8"]),
        "account" => json!("nosuchuser"),
        "key" => {
            json!(
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEj0lSdKlYVp6ZNLlGWhQoWWaHGMYSH7+k4ZlTmN3izj"
            )
        }
        "fingerprint" => json!("SHA256:/hFyLEs2hVjV5i2Vr2fgDYLD1F724Cx2axHUn6ZN+WQ"),
        "ids" => json!([1]),
        "up_to" | "below" | "port" | "depth" | "count" => json!(1),
        "tunnel" => json!("nosuchtunnel"),
        "ssid" => json!("nosuchnetwork"),
        "interface" => json!("lo"),
        // Back to what the network provides.
        "servers" => json!([]),
        "device" => json!("0123456789012345678901234567890123456789"),
        "disk" | "array" | "pool" => json!("nosuchdisk0"),
        "argv" => json!(["true"]),
        "user" => json!("root"),
        "cwd" => json!("/"),
        "env" => json!({ "A": "b" }),
        "database" | "base64" => json!(""),
        "state" => json!("active"),
        "status" => json!("pending"),
        "priority" => json!("err"),
        "failed" => json!("with"),
        "sort_by" => json!("memory"),
        "since" | "until" => json!("2026-07-28"),
        "cursor" => json!("s=1"),
        "open" | "only_new" | "freeze" | "seen" => json!(true),
        "packages" => json!(["nosuchpackage"]),
        "timezone" => json!("No/Where"),
        "language" | "layout" | "variant" | "model" | "set" => json!("xx"),
        "options" => json!(["xx"]),
        "metrics" => json!(["cpu_percent"]),
        "pretty_name" => json!("a box"),
        "path" => json!(format!("/nonexistent/{container}")),
        "value" => json!({ "a": 1 }),
        "json" => json!("1"),
        "revision" | "grace_s" | "offset" | "memory_limit_bytes" | "cpu_limit_percent"
        | "processes_limit" | "start_order" => json!(0),
        "timeout_s" | "for_s" | "every_s" | "limit" | "lines" | "bytes" | "start_delay_s" => {
            json!(20)
        }
        "mode" => json!("0644"),
        "snapshot" => json!("snap0"),
        "to" => json!("big"),
        "items" => json!([{ "id": format!("snapshot:{container}/snap0"), "bytes": 0 }]),
        "keep" => json!({ "last": 1 }),
        "containers" => json!([container]),
        "targets" => json!([{ "container": container }]),
        "protect" => json!("none"),
        "backup_target" => json!("nosuchtarget"),
        "template" => json!("busybox"),
        "source" => json!("lxc"),
        "hostname" | "comment" | "after" | "root" | "title" | "message" | "channel" => {
            json!("abcd")
        }
        "backup" => json!(format!("{container}@2026-07-28T09-30-00.000Z")),
        // These would stop or change what runs.
        "soft" | "force" | "with_snapshots" | "before" | "refresh" | "security_only"
        | "allow_removal" | "remove_old" | "stop_on_failure" | "undo_on_failure" | "enabled"
        | "catch_up" | "paused" => json!(false),
        other => panic!("a new parameter, {other}: say here what fits it"),
    }
}

/// Returns the arguments to try a tool with: the required ones, and these with each other parameter.
pub fn arguments(tool: &Value, container: &str) -> Vec<Value> {
    let schema = &tool["inputSchema"];
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let required: Vec<&str> = required.iter().map(|name| name.as_str().unwrap()).collect();
    let object = |names: &[&str]| -> Value {
        let members = names
            .iter()
            .map(|name| ((*name).to_owned(), value(name, container)));
        let mut object = Value::Object(members.collect());
        if tool["name"] == "logs_wait" {
            // Nothing will come, so the wait is short.
            object["timeout_s"] = json!(1);
        }
        let name = tool["name"].as_str().unwrap();
        if name == "ssh_key_add" || name == "ssh_key_remove" {
            // The account does not exist: no user's keys may change.
            object["account"] = value("account", container);
        }
        if tool["name"] == "dns_query" {
            // An outside name server may respond slowly.
            object["server"] = json!("127.0.0.1");
        }
        object
    };
    let properties = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let others = properties
        .keys()
        .filter(|name| !required.contains(&name.as_str()));
    let more = others.map(|name| object(&[required.as_slice(), &[name.as_str()]].concat()));
    std::iter::once(object(&required)).chain(more).collect()
}

/// Returns the URI for a template, about the container where possible.
fn expanded(template: &str, container: &str) -> String {
    let (before, rest) = template.split_once('{').unwrap();
    let (variable, after) = rest.split_once('}').unwrap();
    let value = match variable {
        "+pointer" => json!(format!("packageData/{container}")),
        other => value(other, container),
    };
    format!("{before}{}{after}", value.as_str().unwrap())
}

/// The answer without the similar name in it, which is one of the agent's own tools.
fn without_suggestion(body: &str) -> String {
    match (body.find(" did you mean"), body.find("If not:")) {
        (Some(begin), Some(end)) => body[..begin].to_owned() + &body[end + "If not:".len()..],
        _ => body.to_owned(),
    }
}

fn walk_tools(home: &Home, agent: &Agent, own: Option<&str>, elsewhere: &str) {
    let own_list = agent
        .hear(&agent.client.modern("tools/list"))
        .names("tools");
    for tool in home.all("tools/list", "tools") {
        let name = tool["name"].as_str().unwrap();
        if !own_list.iter().any(|own| own == name) {
            let call = |called: &str| agent.client.call(called, json!({}));
            let hidden = agent.hear(&call(name));
            let absent = agent.hear(&call("no_such_tool"));
            let words = without_suggestion(&hidden.body).replace(name, "no_such_tool");
            assert_eq!(words, without_suggestion(&absent.body));
            continue;
        }
        let sets = arguments(&tool, elsewhere).len();
        for at in 0..sets {
            let call = |container: &str| {
                agent
                    .client
                    .call(name, arguments(&tool, container)[at].clone())
            };
            if let Some(own) = own {
                agent.hear(&call(own));
            }
            let what = format!("{name}, {at}");
            let never = never(elsewhere);
            if arguments(&tool, elsewhere)[at] == arguments(&tool, &never)[at] {
                agent.hear(&call(&never));
            } else {
                agent.cannot_tell(&what, elsewhere, &call);
            }
        }
    }
}

/// Collects every pointer of a document, down to two levels below the containers' names.
fn places(document: &Value, above: &str, depth: usize, found: &mut Vec<String>) {
    found.push(above.to_owned());
    if let (Value::Object(members), true) = (document, depth > 0) {
        for (key, value) in members {
            let key = key.replace('~', "~0").replace('/', "~1");
            places(value, &format!("{above}/{key}"), depth - 1, found);
        }
    }
}

fn walk_resources(home: &Home, agent: &Agent, own: Option<&str>, elsewhere: &str) {
    let read = |uri: &str| agent.client.modern("resources/read").uri(uri);
    agent.hear(&agent.client.modern("resources/list"));
    agent.hear(&agent.client.modern("resources/templates/list"));
    for resource in home.all("resources/list", "resources") {
        agent.hear(&read(resource["uri"].as_str().unwrap()));
    }
    for template in home.all("resources/templates/list", "resourceTemplates") {
        let template = template["uriTemplate"].as_str().unwrap();
        let (_, path) = template.split_once("://").unwrap();
        for template in SCHEMES.map(|scheme| format!("{scheme}{path}")) {
            let uri = |name: &str| expanded(&template, name);
            if let Some(own) = own {
                agent.hear(&read(&uri(own)));
            }
            if uri(elsewhere) != uri(&never(elsewhere)) {
                agent.cannot_tell(&template, elsewhere, &|name| read(&uri(name)));
            }
        }
    }
    let mut all = Vec::new();
    places(&home.state("/public"), "/public", 3, &mut all);
    assert!(all.len() > 20, "{all:?}");
    for place in all {
        let path: String = place
            .bytes()
            .map(|b| match b {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                    char::from(b).to_string()
                }
                other => format!("%{other:02X}"),
            })
            .collect();
        agent.hear(&read(&format!("gatewren://{path}")));
    }
}

fn walk_the_rest(home: &Home, agent: &Agent, elsewhere: &str) {
    let client = &agent.client;
    for path in ["/health", "/metrics", "/", "/owner"] {
        agent.hear(&client.request("GET", path));
    }
    agent.hear(&client.modern("server/discover"));
    agent.hear(&client.modern("prompts/list"));
    let session = client.session("2025-11-25");
    agent.check(
        "",
        &format!("{:?}{}", session.opened.headers, session.opened.body),
    );
    agent.hear(&session.request("ping"));
    for list in [
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    ] {
        agent.hear(&session.request(list));
    }
    let templates = home.all("resources/templates/list", "resourceTemplates");
    let templates = templates.iter().map(|template| &template["uriTemplate"]);
    for template in templates {
        let complete = |name: &str| {
            let typed = name.get(..3).unwrap();
            let completing = client.modern("completion/complete");
            let completing =
                completing.param("ref", json!({ "type": "ref/resource", "uri": template }));
            completing.param("argument", json!({ "name": "container", "value": typed }))
        };
        let same = [elsewhere, &never(elsewhere)].map(|name| agent.hear(&complete(name)).body);
        assert_eq!(same[0], same[1]);
    }
    let prompt = |name: &str| {
        let get = client.modern("prompts/get").name("diagnose_container");
        get.param("arguments", json!({ "container": name }))
    };
    agent.cannot_tell("a prompt", elsewhere, &prompt);
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        for scheme in SCHEMES {
            let uri = |name: &str| format!("{scheme}/public/packageData/{name}");
            let ask = |name: &str| session.request(method).uri(&uri(name)).id(json!("one"));
            agent.cannot_tell(method, elsewhere, &ask);
        }
    }
}

#[test]
fn nothing_of_one_space_is_ever_sent_to_another() {
    let _core = core();
    let Some(home) = Home::new() else { return };
    let (first, second, host) = (
        home.add("ada-lark", "meadow-k4"),
        home.add("bert-wader", "cellar-w8"),
        home.add("cora-finch", "ground-u2"),
    );
    let marks = [&first, &second, &host].map(|agent| agent.marks.clone());
    let of = |name: &str| vec![name.to_owned(), release_of(name)];
    let kernel = home.state("/public/serverInfo/kernel");
    let kernel = vec![kernel.as_str().unwrap().to_owned()];
    let first = first.never_hears_of(&[&of(SECOND), &marks[1], &marks[2], &kernel]);
    let second = second.never_hears_of(&[&of(FIRST), &marks[0], &marks[2], &kernel]);
    let host = host.never_hears_of(&[&of(FIRST), &of(SECOND), &marks[0], &marks[1]]);
    for (agent, own, elsewhere) in [
        (&first, Some(FIRST), SECOND),
        (&second, Some(SECOND), FIRST),
        (&host, None, FIRST),
    ] {
        walk_the_rest(&home, agent, elsewhere);
        walk_resources(&home, agent, own, elsewhere);
        walk_tools(&home, agent, own, elsewhere);
    }
    // The values that were hidden existed all the time.
    let info = json!({ "container": FIRST });
    let data = first.client.call("container_info", info).send().data();
    let os = data["os"].to_string();
    assert!(os.contains(&release_of(FIRST)), "{data}");
    assert_eq!(
        second
            .client
            .call("container_list", json!({}))
            .send()
            .data()["containers"][0]["name"],
        SECOND
    );
}

#[test]
#[ignore = "long: every tool with every argument, for two agents"]
fn nothing_of_a_space_with_containers_of_an_engine_is_ever_sent_to_another() {
    let _core = core();
    let Some(home) = Home::with_engines() else {
        return;
    };
    let (first, second) = (
        home.add("ada-lark", "meadow-k4"),
        home.add("bert-wader", "cellar-w8"),
    );
    let marks = [&first, &second].map(|agent| agent.marks.clone());
    let of = |name: &str| vec![name.to_owned(), release_of(name)];
    let first = first.never_hears_of(&[&of(SECOND), &marks[1]]);
    let second = second.never_hears_of(&[&of(FIRST), &marks[0]]);
    let (docker, podman) = (format!("docker:{FIRST}"), format!("podman:{SECOND}"));
    // What is hidden from the other is there; the walk stops the container.
    let info = json!({ "container": docker });
    let data = first.client.call("container_info", info).send().data();
    assert!(
        data["os"].to_string().contains(&release_of(FIRST)),
        "{data}"
    );
    for (agent, own, elsewhere) in [(&first, &docker, &podman), (&second, &podman, &docker)] {
        walk_the_rest(&home, agent, elsewhere);
        walk_resources(&home, agent, Some(own), elsewhere);
        walk_tools(&home, agent, Some(own), elsewhere);
        // Its name alone is that of nothing, too.
        let name = elsewhere.split_once(':').unwrap().1;
        let info = |name: &str| {
            agent
                .client
                .call("container_info", json!({ "container": name }))
        };
        agent.cannot_tell("a name without its runtime", name, &info);
    }
}

/// Returns every revision number in an event.
fn revisions_in((id, message): &(Option<String>, Value)) -> Vec<u64> {
    let meta = &message["params"]["_meta"];
    let mut found = Vec::new();
    for key in ["gatewren/revision", "gatewren/after"] {
        found.extend(meta[key].as_u64());
    }
    if let Some(patches) = meta["gatewren/patches"].as_array() {
        found.extend(patches.iter().map(|patch| patch["id"].as_u64().unwrap()));
    }
    if let Some(id) = id {
        found.push(id.split('.').nth(3).unwrap().parse().unwrap());
    }
    found
}

#[test]
fn what_changes_elsewhere_is_heard_by_nobody_and_moves_no_number() {
    if !has_sqlite3() {
        return;
    }
    let Some(home) = Home::new() else { return };
    let (first, second) = (
        home.add("ada-lark", "meadow-k4"),
        home.add("bert-wader", "cellar-w8"),
    );
    let secret = [SECOND.to_owned(), release_of(SECOND)];
    let first = first.never_hears_of(&[&secret, &second.marks]);
    let uri = |place: &str| format!("gatewren:///public{place}");
    let own = uri(&format!("/packageData/{FIRST}"));
    let uris: Vec<String> = ["", "/packageData", "/serverInfo", "/units", "/free"]
        .iter()
        .map(|place| uri(place))
        .chain([SECOND, NEVER, FIRST].map(|name| uri(&format!("/packageData/{name}"))))
        .collect();
    let heard_of = [uri(""), uri("/packageData"), own.clone()];

    let begun = newest(&first);
    let mut streams = listening(&first, &uris);
    let elsewhere = much_happens_elsewhere(&home, &second);
    let between = newest(&first);
    let mark = home.mark(FIRST, 1);

    let mut numbers = BTreeMap::from([("before", begun), ("between", between)]);
    for (name, stream) in ["session", "listen"].iter().zip(&mut streams) {
        for said in stream.until(&own, mark) {
            let told = said.1["params"]["uri"].as_str().unwrap();
            assert!(heard_of.iter().any(|uri| uri == told), "{name}: {}", said.1);
            for number in revisions_in(&said) {
                numbers.insert(name, number);
                let ours = home.revisions_of(FIRST);
                assert!(
                    number == begun || ours.contains(&number),
                    "{name}: {number} {}",
                    said.1
                );
            }
        }
    }
    let ours = home.revisions_of(FIRST);
    assert!(
        between == begun || ours.contains(&between),
        "{numbers:?} {ours:?}"
    );
    assert!(between < elsewhere, "{numbers:?}");

    its_history_is_its_own(&home, &first, begun);
    follows_its_space(&home, &first, streams);
}

/// Opens a session's stream and a `subscriptions/listen`, both for these resources.
fn listening<'a>(first: &'a Agent, uris: &[String]) -> [Listening<'a>; 2] {
    let wants_patches = json!({ "experimental": { "gatewren/patches": {} } });
    let session = first
        .client
        .session_with("2025-06-18", wants_patches.clone());
    for uri in uris {
        session.subscribe(uri);
    }
    let listen = first
        .client
        .modern("subscriptions/listen")
        .mcp_meta("clientCapabilities", wants_patches)
        .param(
            "notifications",
            json!({ "resourceSubscriptions": uris, "toolsListChanged": true }),
        );
    let open = |request: &Request| Listening {
        agent: first,
        stream: request.open(),
        sent: format!("{request:?} {uris:?}"),
    };
    let mut streams = [open(&session.get()), open(&listen)];
    let acknowledged = streams[1].stream.message();
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    streams
}

/// Returns the newest revision of the agent's part of the state.
fn newest(agent: &Agent) -> u64 {
    let get = agent.client.call("state_get", json!({}));
    agent.hear(&get).data()["revision"].as_u64().unwrap()
}

/// Makes changes of every kind in the other space, before any change in this one; returns their last revision.
fn much_happens_elsewhere(home: &Home, second: &Agent) -> u64 {
    home.server.put("free", &json!(SECOND));
    for number in 1..=5 {
        home.mark(SECOND, number);
    }
    let restart = json!({ "container": SECOND, "grace_s": 0 });
    second
        .client
        .call("container_restart", restart)
        .send()
        .data();
    home.containers.until_ready(SECOND);
    let elsewhere = home.mark(SECOND, 6);
    let seen = second.client.call("state_get", json!({}));
    wait_until("it is seen there", IN_TIME, || {
        seen.send().data()["revision"].as_u64() >= Some(elsewhere)
    });
    elsewhere
}

/// Asserts that `changes_since` returns only the agent's own revisions, and does not reveal others.
fn its_history_is_its_own(home: &Home, first: &Agent, begun: u64) {
    let since = first
        .client
        .call("changes_since", json!({ "revision": begun }));
    let history = first.hear(&since).data();
    // Read afterwards, because the observer may have written another revision.
    let ours = home.revisions_of(FIRST);
    for revision in history["revisions"].as_array().unwrap() {
        assert!(
            ours.contains(&revision["id"].as_u64().unwrap()),
            "{revision}"
        );
    }
    for beyond in [1, 1_000_000] {
        let since = json!({ "revision": newest(first) + beyond });
        let since = first.client.call("changes_since", since);
        assert_eq!(first.hear(&since).data()["floor"], Value::Null);
    }
}

/// Asserts that an agent's streams end when it moves to another space.
fn follows_its_space(home: &Home, agent: &Agent, streams: [Listening<'_>; 2]) {
    let name = &agent.marks[0];
    let edit = ["agent", "edit", name, "--space", "cellar-w8"];
    tell_by(&home.server.settings_file(), &edit);
    for mut listening in streams {
        while let Next::Event(event) = listening.stream.next(IN_TIME) {
            agent.check(&listening.sent, &format!("{event:?}"));
        }
    }
    let list = agent.client.call("container_list", json!({}));
    assert_eq!(list.send().data()["containers"][0]["name"], SECOND);
}
