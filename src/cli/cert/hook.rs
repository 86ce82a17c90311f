//! The environment of an ACME client's hook: the paths of the certificate that it has just obtained.

use std::env;
use std::path::PathBuf;

/// The variables of each client that hold full paths: the chain with the certificate first, and the key. lego
/// uses other names since its version 5; acme.sh sets its own for `--reloadcmd`.
const PATHS: [(&str, &str); 3] = [
    ("LEGO_HOOK_CERT_PATH", "LEGO_HOOK_CERT_KEY_PATH"),
    ("LEGO_CERT_PATH", "LEGO_CERT_KEY_PATH"),
    ("CERT_FULLCHAIN_PATH", "CERT_KEY_PATH"),
];

/// The variable of certbot: the directory of the certificate, such as /etc/letsencrypt/live/box.example.org.
const LINEAGE: &str = "RENEWED_LINEAGE";

/// Returns the paths of certificate and key.
pub fn find_made_files() -> Result<(PathBuf, PathBuf), String> {
    find_files(|name| {
        let value = env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    })
}

fn find_files(of: impl Fn(&str) -> Option<PathBuf>) -> Result<(PathBuf, PathBuf), String> {
    if let Some(lineage) = of(LINEAGE) {
        return Ok((lineage.join("fullchain.pem"), lineage.join("privkey.pem")));
    }
    let mut pairs = PATHS.iter().filter_map(|(cert, key)| of(cert).zip(of(key)));
    pairs.next().ok_or_else(|| {
        "no environment variable of an ACME client names a certificate: certbot sets RENEWED_LINEAGE for a \
         --deploy-hook, lego sets LEGO_HOOK_CERT_PATH or LEGO_CERT_PATH and the one of the key, acme.sh sets \
         CERT_FULLCHAIN_PATH and CERT_KEY_PATH for a --reloadcmd; without a hook, give the files with --cert and \
         --key"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_says_it_in_its_own_words() {
        let find_with = |variables: &[(&str, &str)]| {
            find_files(|name| {
                let value = variables.iter().find(|(other, _)| *other == name);
                value.map(|(_, value)| value.into())
            })
        };
        let both = |cert: &str, key: &str| Ok((PathBuf::from(cert), PathBuf::from(key)));
        let lineage = [("RENEWED_LINEAGE", "/l/box"), ("RENEWED_DOMAINS", "a b")];
        assert_eq!(
            find_with(&lineage),
            both("/l/box/fullchain.pem", "/l/box/privkey.pem")
        );
        for (cert, key) in PATHS {
            assert_eq!(find_with(&[(cert, "/c"), (key, "/k")]), both("/c", "/k"));
            assert!(
                find_with(&[(cert, "/c")]).is_err(),
                "half of a pair is none"
            );
        }
        // acme.sh: the chain, not the certificate without its chain.
        let acme = [
            ("CERT_PATH", "/leaf"),
            ("CERT_KEY_PATH", "/k"),
            ("CA_CERT_PATH", "/ca"),
            ("CERT_FULLCHAIN_PATH", "/chain"),
        ];
        assert_eq!(find_with(&acme), both("/chain", "/k"));
        assert!(find_with(&[]).unwrap_err().contains("--cert and --key"));
    }
}
