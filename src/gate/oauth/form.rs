//! Parameters of a query or a form: each at most once, and an empty one counts as absent (RFC 6749, 3.1).

use gatewren_base::sys::Secret;

/// The maximum number of parameters; more are refused.
const MOST: usize = 64;

/// The parameters of a request. Each value may be a secret: a code, a token, or the owner's password.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthParameters(Vec<(String, Secret)>);

impl OAuthParameters {
    /// Parses the parameters; the error describes the problem.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let mut all: Vec<(String, Secret)> = Vec::new();
        for (name, value) in form_urlencoded::parse(text) {
            if all.iter().any(|(known, _)| *known == name) {
                return Err("duplicate parameter; send each only once".to_owned());
            }
            if all.len() >= MOST {
                return Err(format!("too many parameters: at most {MOST} are allowed"));
            }
            all.push((name.into_owned(), Secret::new(value)));
        }
        Ok(Self(all))
    }

    /// The value of a parameter; `None` if it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.expose())
            .filter(|value| !value.is_empty())
    }

    /// All parameters in order, including empty ones.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter();
        all.map(|(name, value)| (name.as_str(), value.expose()))
    }

    /// The value of a required parameter.
    pub fn need(&self, name: &'static str) -> Result<&str, String> {
        self.get(name)
            .ok_or_else(|| format!("the parameter {name} is missing"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::ZeroizeOnDrop;

    #[test]
    fn each_stands_there_once_and_an_empty_one_is_none() {
        let form = OAuthParameters::read(b"a=1+2%26&b=&c").unwrap();
        assert_eq!(
            (form.get("a"), form.get("b"), form.get("c")),
            (Some("1 2&"), None, None)
        );
        assert!(form.need("b").unwrap_err().contains("b is missing"));
        assert!(
            OAuthParameters::read(b"a=1&b=2&a=1")
                .unwrap_err()
                .contains("duplicate")
        );
        let many: Vec<String> = (0..65).map(|n| format!("p{n}=")).collect();
        assert!(OAuthParameters::read(many.join("&").as_bytes()).is_err());
        assert_eq!(
            OAuthParameters::read(b"").unwrap(),
            OAuthParameters::default()
        );
    }

    #[test]
    fn values_are_overwritten_when_they_are_dropped() {
        fn assert_wiped(_: &[(String, impl ZeroizeOnDrop)]) {}
        let form = OAuthParameters::read(b"code=gw_1").unwrap();
        assert_wiped(&form.0);
    }
}
