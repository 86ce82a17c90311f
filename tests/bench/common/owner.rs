//! The owner in a browser: signs in with the one-time code, and asks for pages.

use super::Error;
use super::connection::Address;

const PASSWORD: &str = "four+words+of+mine";

/// A signed-in owner.
pub struct Owner {
    address: Address,
    cookie: String,
}

impl Owner {
    /// Sets the first password with the code of a fresh server, which signs in.
    pub async fn sign_in(address: &Address, code: &str) -> Result<Self, Error> {
        let host = address.socket();
        let form = format!("code={code}&password={PASSWORD}&again={PASSWORD}");
        let set_up = format!(
            "POST /owner/set-up HTTP/1.1\r\nhost: {host}\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            form.len()
        );
        let mut connection = address.open().await?;
        let answer = connection.exchange(set_up.as_bytes()).await?;
        let refused = || format!("nobody is signed in: {}", answer.status());
        let cookie = answer.header("set-cookie").ok_or_else(refused)?;
        Ok(Self {
            address: address.clone(),
            cookie: cookie.split(';').next().unwrap_or_default().to_owned(),
        })
    }

    /// Where the pages are.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The request for a page.
    pub fn request(&self, path: &str) -> String {
        let (host, cookie) = (self.address.socket(), &self.cookie);
        format!("GET {path} HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\n\r\n")
    }
}
