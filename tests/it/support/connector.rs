//! A program that asks the owner for access over OAuth, and the owner's browser, both as plain requests.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use form_urlencoded::{Serializer, parse};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::answer::Answer;
use super::client::Client;
use super::request::Request;

/// The redirect URI of the program.
pub const BACK: &str = "http://127.0.0.1:3333/callback";

/// The PKCE code verifier.
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// A registered program.
pub struct Connector {
    pub client: Client,
    pub id: String,
}

/// The tokens that a program received.
pub struct Given {
    pub access: String,
    pub refresh: String,
}

/// Encodes parameters as a form.
pub fn form(parameters: &[(&str, &str)]) -> String {
    Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish()
}

/// Returns the query parameters of a URL.
pub fn parameters(url: &str) -> HashMap<String, String> {
    let (_, query) = url.split_once('?').unwrap();
    parse(query.as_bytes()).into_owned().collect()
}

impl Connector {
    /// Registers a program.
    pub fn register(client: &Client) -> Self {
        let body = json!({ "client_name": "Chat", "redirect_uris": [BACK] });
        let answer = registration(client, &body).send();
        assert_eq!(answer.status, 201, "{answer:?}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let said = answer.json();
        assert_eq!(said["token_endpoint_auth_method"], "none");
        assert_eq!(said["client_secret"], Value::Null);
        let id = said["client_id"].as_str().unwrap().to_owned();
        let client = client.clone();
        Self { client, id }
    }

    /// Returns the URL of the resource that it asks access to.
    pub fn resource(&self) -> String {
        format!("https://{}/connect/mcp", self.client.address)
    }

    /// Returns the parameters of its authorization request.
    pub fn question(&self) -> Vec<(&'static str, String)> {
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, VERIFIER.as_bytes()));
        vec![
            ("response_type", "code".to_owned()),
            ("client_id", self.id.clone()),
            ("redirect_uri", BACK.to_owned()),
            ("state", "a b&c".to_owned()),
            ("code_challenge", challenge),
            ("code_challenge_method", "S256".to_owned()),
            ("resource", self.resource()),
        ]
    }

    /// Returns the same parameters with one of them changed; an empty value means that it is left out.
    pub fn question_with(&self, name: &str, value: &str) -> Vec<(&'static str, String)> {
        let mut question = self.question();
        for (known, old) in &mut question {
            if *known == name {
                value.clone_into(old);
            }
        }
        question
    }

    /// Returns the browser's request for the authorization page.
    pub fn page(&self, question: &[(&'static str, String)]) -> Request {
        let query: Vec<(&str, &str)> = question.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let path = format!("/connect/authorize?{}", form(&query));
        self.client.request("GET", &path).without("authorization")
    }

    /// Returns the owner's decision on the authorization page. It loads the page first, for the proof in its form.
    pub fn word(
        &self,
        cookie: &str,
        question: &[(&'static str, String)],
        said: &[(&str, &str)],
    ) -> Request {
        let page = self.page(question).header("cookie", cookie).send();
        let (_, rest) = page.body.split_once("name=\"proof\" value=\"").unwrap();
        let proof = rest.split('"').next().unwrap();
        let mut all: Vec<(&str, &str)> = question.iter().map(|(n, v)| (*n, v.as_str())).collect();
        all.extend(said);
        all.push(("proof", proof));
        self.post("/connect/authorize", &form(&all))
            .header("cookie", cookie)
            .header("origin", &format!("https://{}", self.client.address))
    }

    /// Approves a new agent as the owner, and returns the code.
    pub fn approved(&self, cookie: &str, name: &str, policy: &str) -> String {
        let said = [
            ("decision", "approve"),
            ("name", name),
            ("policy", policy),
            ("space", "*"),
        ];
        let word = self.word(cookie, &self.question(), &said);
        self.code(&word.send())
    }

    /// Returns the code in the redirect to the program.
    pub fn code(&self, answer: &Answer) -> String {
        assert_eq!(answer.status, 303, "{answer:?}");
        let to = answer.header("location").unwrap();
        assert!(to.starts_with(&format!("{BACK}?")), "{to}");
        let carried = parameters(to);
        assert_eq!(carried["state"], "a b&c");
        assert_eq!(
            carried["iss"],
            format!("https://{}/connect", self.client.address)
        );
        assert_eq!(carried.get("error"), None, "{to}");
        carried["code"].clone()
    }

    /// Returns a form request to an endpoint, without a token.
    pub fn post(&self, path: &str, body: &str) -> Request {
        let request = self.client.request("POST", path).without("authorization");
        request
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.as_bytes())
    }

    /// Returns the request that exchanges a code for tokens.
    pub fn exchange(&self, code: &str) -> Request {
        let resource = self.resource();
        let body = form(&[
            ("grant_type", "authorization_code"),
            ("client_id", &self.id),
            ("code", code),
            ("redirect_uri", BACK),
            ("code_verifier", VERIFIER),
            ("resource", &resource),
        ]);
        self.post("/connect/token", &body)
    }

    /// Returns the request that exchanges a refresh token.
    pub fn renewal(&self, refresh: &str) -> Request {
        let body = form(&[
            ("grant_type", "refresh_token"),
            ("client_id", &self.id),
            ("refresh_token", refresh),
        ]);
        self.post("/connect/token", &body)
    }

    /// Returns a call with an access token, at the path for programs.
    pub fn call(&self, access: &str) -> Request {
        let call = self.client.call("whoami", json!({})).path("/connect/mcp");
        call.header("authorization", &format!("Bearer {access}"))
    }
}

/// Returns a registration request.
pub fn registration(client: &Client, body: &Value) -> Request {
    let request = client.request("POST", "/connect/register");
    let request = request.without("authorization");
    request
        .header("content-type", "application/json")
        .body(body.to_string().as_bytes())
}

/// Returns the tokens in a response.
pub fn given(answer: &Answer) -> Given {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let said = answer.json();
    assert_eq!(
        (&said["token_type"], &said["expires_in"]),
        (&json!("Bearer"), &json!(3600))
    );
    let text = |name: &str| said[name].as_str().unwrap().to_owned();
    Given {
        access: text("access_token"),
        refresh: text("refresh_token"),
    }
}
