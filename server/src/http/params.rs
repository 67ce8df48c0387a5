//! Parameters of a query: from the URL, and from a POST body that is a form or a JSON object.

use super::body::read_small;
use super::problem::Problem;
use super::state::App;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use std::str::FromStr;

/// Names and values, in order; names may repeat.
#[derive(Debug, Default)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// The parameters in a URL's query or a form's body.
    pub fn from_form(text: &[u8]) -> Self {
        Params(form_urlencoded::parse(text).map(|(k, v)| (k.into_owned(), v.into_owned())).collect())
    }

    /// The parameters of a whole request; the body's come behind the URL's.
    pub async fn read(app: &App, request: Request<Body>) -> Result<(HeaderMap, Self), Problem> {
        let (head, body) = request.into_parts();
        let mut params = Params::from_form(head.uri.query().unwrap_or("").as_bytes());
        if head.method == Method::POST {
            let body = read_small(body, app.config.query_bytes_max, app.config.stall_max).await?;
            match media_type(&head.headers).as_str() {
                _ if body.is_empty() => {}
                "application/json" => params.0.extend(from_json(&body)?),
                "application/x-www-form-urlencoded" | "" => params.0.extend(Params::from_form(&body).0),
                other => {
                    let message = format!("parameters come as application/x-www-form-urlencoded or application/json, not {other:?}");
                    return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
                }
            }
        }
        Ok((head.headers, params))
    }

    /// The first value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The first value of `name` that is not empty.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.all(name).find(|v| !v.is_empty())
    }

    /// All values of `name`.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.0.iter().filter(move |(k, _)| k == name).map(|(_, v)| v.as_str())
    }

    /// The value of `name` as a number, or `default` when it is missing.
    pub fn number<T: FromStr>(&self, name: &str, default: T) -> Result<T, Problem> {
        match self.filled(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| Problem::bad(format!("{name}={text:?} is not a number in range"))),
        }
    }

    /// The value of `name` as one of `words`, by index; the first when it is missing.
    pub fn word(&self, name: &str, words: &[&str]) -> Result<usize, Problem> {
        match self.filled(name) {
            None => Ok(0),
            Some(text) => words
                .iter()
                .position(|w| w.eq_ignore_ascii_case(text))
                .ok_or_else(|| Problem::bad(format!("{name}={text:?}: it is one of {}", words.join(", ")))),
        }
    }
}

/// The media type of a body, lower case, without its parameters; empty when there is none.
pub fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

fn from_json(body: &[u8]) -> Result<Vec<(String, String)>, Problem> {
    use serde_json::Value;
    let object: serde_json::Map<String, Value> =
        serde_json::from_slice(body).map_err(|e| Problem::bad(format!("the body is not a JSON object of parameters: {e}")))?;
    let scalar = |name: &str, value: Value| match value {
        Value::String(s) => Ok(s),
        Value::Number(n) => Ok(n.to_string()),
        Value::Bool(b) => Ok(b.to_string()),
        _ => Err(Problem::bad(format!("the parameter {name:?} is neither text nor a number"))),
    };
    let mut pairs = Vec::new();
    for (name, value) in object {
        match value {
            Value::Null => {}
            Value::Array(items) => {
                for item in items {
                    pairs.push((name.clone(), scalar(&name, item)?));
                }
            }
            value => {
                let value = scalar(&name, value)?;
                pairs.push((name, value));
            }
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_json_give_the_same() {
        let form = Params::from_form(b"a=1&b=x+y%26&a=2&c=");
        assert_eq!(form.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!((form.get("b"), form.get("c"), form.filled("c"), form.get("d")), (Some("x y&"), Some(""), None, None));
        let json = Params(from_json(br#"{"a":[1,"2"],"b":"x y&","n":null,"t":true}"#).unwrap());
        assert_eq!(json.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!((json.get("b"), json.get("n"), json.get("t")), (Some("x y&"), None, Some("true")));
        assert!(from_json(b"[]").is_err() && from_json(br#"{"a":{}}"#).is_err());
        assert!(json.number::<u32>("b", 1).is_err() && json.word("b", &["p", "q"]).is_err());
    }
}
